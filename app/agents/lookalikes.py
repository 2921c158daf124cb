"""How a text looks to somebody who reads letters and not code points. Pure, linear."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

_ALIKE = {
    "&": "＆﹠",
    "<": "＜﹤‹〈⟨〈˂ᐸ❮❰⧼≺«《⟪❬⦑⋖≪ᚲ",
    ">": "＞﹥›〉⟩〉˃ᐳ❯❱⧽≻»》⟫❭⦒⋗≫ᚳ",
    "/": "／⁄∕╱⧸",
    "_": "＿‗﹍﹎﹏ˍ‐‑‒–—−",
    "a": "аɑαᴀꓮ",
    "b": "ЬƄʙᏏꓐ",
    "c": "сϲᴄⅽꓚ",
    "d": "ԁɗᴅⅾꓒ",
    "e": "еєҽᴇꓰ",
    "f": "ꜰꓝ",
    "g": "ɡցɢꓖ",
    "h": "һհʜꓧ",
    "i": "іıɩιɪꓲ",
    "k": "κкᴋꓗ",
    "l": "ӏⅼʟꓡ",
    "m": "мᴍⅿꓟ",
    "n": "ոпɴꓠ",
    "o": "оοօσᴏꓳ",
    "p": "рρᴘᏢꓑ",
    "r": "гꭇʀꓣ",
    "s": "ѕꜱꓢ",
    "t": "тτᴛꓔ",
    "u": "υսᴜꓴ",
    "v": "νѵᴠꓦ",
    "w": "ԝшᴡꓪ",
    "x": "хχꓫ",
    "y": "уγүʏꓬ",
}
"""Characters that read like those our tags are made of, and Unicode does not call equivalent."""

_ENCLOSED = ((0x1F150, 26), (0x1F170, 26), (0x1F1E6, 26))
"""Letters in black circles, black squares, and of flags: each alphabet in a row."""

_NO_LATIN = ((0x3400, 0xA000), (0xAC00, 0xFB00))
"""Ideographs, syllables and surrogates: none of them looks like ASCII."""

_ASCII = {ord("-"): "_", ord("|"): "l"} | {code: chr(code + 32) for code in range(65, 91)}


@cache
def _table() -> dict[int, str]:
    plain = {ord(alike): letter for letter, alikes in _ALIKE.items() for alike in alikes}
    plain |= {start + n: chr(97 + n) for start, count in _ENCLOSED for n in range(count)}
    found = dict(plain)
    for code in range(0x80, 0x20000):
        if any(first <= code < end for first, end in _NO_LATIN) or code in plain:
            continue
        # The first letter of a composed one is what it looks like: `é` is read as `e`.
        folded = normalize("NFKD", chr(code))[:1].lower()[:1]
        looks = plain.get(ord(folded), folded) if folded else ""
        if looks.isascii() and looks:
            found[code] = looks
    return found | _ASCII


def skeleton(text: str) -> str:
    """`text` as it looks, of the same length: look-alikes replaced, letters small."""
    if text.isascii():
        return text.lower().replace("-", "_").replace("|", "l")
    return text.translate(_table())
