"""Hostile text on its way into a prompt (`untrusted`) and onto a page (`outgoing`). Pure, linear.

In: nothing a stranger writes may look like our own markup to a model, and nothing may be said to
the model that people looking at the page would not see. Out: no credential, no mention, no trigger
phrase of ours, no markup that changes what stands around it.
"""

from __future__ import annotations

import re
from html.entities import html5
from unicodedata import normalize

from app.agents.hidden_markup import drop_hidden_markup
from app.agents.invisible import is_hidden, show_hidden, without_hidden
from app.agents.markdown import balance_fences, cap, outside_code
from app.agents.redact import redact

BOUNDARY_TAGS = (
    "pr_input",
    "pr_details",
    "pr_body",
    "pr_comments",
    "changed_files",
    "existing_inline_findings",
    "previous_review",
    "custom_review_instructions",
    "agents_md_template_instructions",
    "fix_task",
    "review_remarks",
    "reviewer_results",
)
"""The tags that mark what is data in a prompt. Wrapper and sanitiser both read this."""

REMOVED_TAG = "(tag removed)"
GITHUB_BODY_LIMIT = 65_536
OUTGOING_LIMIT = GITHUB_BODY_LIMIT - 5_536
"""What is left of GitHub's limit once markers and frame have their place."""


def untrusted(text: str) -> str:
    """`text` as it may stand between boundary tags: cleaned, then XML-escaped. Idempotent.

    Invisible characters go first, entities are decoded until none is left, then what a page would
    not show (comments, alt texts, hidden elements) is dropped, then boundary tags in any spelling.
    """
    return escape(_clean(text))


def attribute(text: str) -> str:
    """`text` as a double-quoted attribute's value, on one line.

    Nothing is decoded, and nothing dropped but boundary tags, so that a path still names its file;
    what is invisible is shown.
    """
    line = show_hidden(text).replace("\r", " ").replace("\n", " ").replace("\t", " ")
    return escape(_without_boundary_tags(line)).replace('"', "&quot;")


def label(text: str) -> str:
    """A name or a word as an attribute's value: cleaned like `untrusted`, on one line."""
    return attribute(" ".join(_clean(text).split()))


def escape(text: str) -> str:
    """The three characters that are markup in XML text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def wrap(tag: str, text: str) -> str:
    """Untrusted text between a pair of boundary tags; "" for blank text."""
    return enclose(tag, untrusted(text).strip())


def enclose(tag: str, rendered: str) -> str:
    """Text that is already safe between a pair of boundary tags; "" for blank text."""
    if tag not in BOUNDARY_TAGS:
        raise ValueError(f"{tag!r} is not a boundary tag")
    return f"<{tag}>\n{rendered}\n</{tag}>" if rendered.strip() else ""


def outgoing(text: str, *, limit: int = OUTGOING_LIMIT) -> str:
    """A piece of a model's or user's text as it may be posted. Idempotent.

    Credentials are redacted before anything is cut. Outside code, mentions, references to issues
    (which link and close them), our trigger phrases and raw HTML are defused; inside code they are
    inert and stay letter by letter, so that suggestions still apply. Our hidden markers are defused
    everywhere. Fences are closed. Not for text that holds our own markers or HTML: put those around
    the result.
    """
    text = redact(without_hidden(text.replace("\r\n", "\n").replace("\r", "\n")))
    text = _MARKER.sub("<!-", text)
    room = limit
    while True:
        posted = outside_code(cap(balance_fences(text), room), _defuse)
        excess = len(posted) - limit
        if excess <= 0 or room == 0:
            return posted
        room = max(0, min(room, len(text)) - max(excess, limit // 8))


_MARKER = re.compile(r"<!--(?=\s*/?\s*mergeward)", re.IGNORECASE)
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])")
_REFERENCE = re.compile(r"(?<![\w&])(#|GH-)(?=\d)", re.IGNORECASE)
_COMMAND = re.compile(r"/(?=mergeward\b)", re.IGNORECASE)
_BREAK_GLASS = re.compile(r"\b(break)(\s+)(?=glass\b)", re.IGNORECASE)
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_GAP = "&#8203;"


def _defuse(prose: str) -> str:
    prose = _HTML.sub("&lt;", prose)
    prose = _MENTION.sub(f"@{_GAP}", prose)
    prose = _REFERENCE.sub(rf"\1{_GAP}", prose)
    prose = _COMMAND.sub(f"/{_GAP}", prose)
    return _BREAK_GLASS.sub(rf"\1{_GAP}\2", prose)


def _clean(text: str) -> str:
    text = without_hidden(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = drop_hidden_markup(_decode_entities(text))
    return _without_boundary_tags(text)


_ENTITY_AT_END = re.compile(
    r"&(?:#(\d{1,9})|#[xX]([0-9a-fA-F]{1,8})|([A-Za-z][A-Za-z0-9]{1,31}));\Z"
)
_LONGEST_ENTITY = 40


def _decode_entities(text: str) -> str:
    """Decode character references until none is left, also those that decoding brings about.

    Works from semicolon to semicolon on the text's tail, so nesting costs no extra passes.
    """
    if "&" not in text:
        return text
    done: list[str] = []
    tail = ""
    *pieces, rest = text.split(";")
    for piece in pieces:
        tail = _reduce(f"{tail}{piece};")
        done.append(tail[:-_LONGEST_ENTITY])
        tail = tail[-_LONGEST_ENTITY:]
    return "".join((*done, tail, rest))


def _reduce(tail: str) -> str:
    while (match := _ENTITY_AT_END.search(tail, max(0, len(tail) - _LONGEST_ENTITY))) is not None:
        character = _character(match)
        if character is None:
            return tail
        tail = tail[: match.start()] + "".join(c for c in character if not is_hidden(c))
        if not tail.endswith(";"):
            return tail
    return tail


def _character(match: re.Match[str]) -> str | None:
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        return html5.get(f"{name};") or html5.get(f"{name.lower()};")
    code = int(decimal) if decimal else int(hexadecimal, 16)
    valid = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code).replace("\r", "\n") if valid else "\ufffd"


def _look_alikes() -> dict[int, str]:
    """Characters that read like those our tags are made of, one to one, so positions stay."""
    pairs = {
        "&": "＆﹠",
        "<": "＜﹤‹〈⟨〈˂ᐸ❮❰⧼≺«",
        ">": "＞﹥›〉⟩〉˃ᐳ❯❱⧽≻»",
        "/": "／⁄∕╱⧸",
        "_": "＿‗﹍﹎﹏ˍ-‐‑‒–—−",
        "a": "аɑα",
        "b": "ЬƄ",
        "c": "сϲ",
        "d": "ԁɗ",
        "e": "еєҽ",
        "g": "ɡց",
        "h": "һհ",
        "i": "іıɩι",
        "k": "κк",
        "l": "ӏⅼ|",
        "m": "м",
        "n": "ոп",
        "o": "оοօσ",
        "p": "рρ",
        "r": "гꭇ",
        "s": "ѕ",
        "t": "тτ",
        "u": "υս",
        "v": "νѵ",
        "w": "ԝш",
        "x": "хχ",
        "y": "уγү",
    }
    return {ord(alike): plain for plain, alikes in pairs.items() for alike in alikes}


_SKELETON = _look_alikes()


def _skeleton(text: str) -> str:
    """`text` as it looks, of the same length: look-alikes replaced, letters small."""
    if text.isascii():
        return text.lower().replace("-", "_").replace("|", "l")
    return "".join(_plain(char) for char in text)


def _plain(char: str) -> str:
    plain = _SKELETON.get(ord(char))
    if plain is None and not char.isascii():
        folded = normalize("NFKD", char)[:1].lower()
        plain = _SKELETON.get(ord(folded), folded) if folded else char
    if plain is None:
        plain = char.lower()
    return plain if len(plain) == 1 else char


def _tag_pattern() -> re.Pattern[str]:
    names = "|".join(r"[\s_]{0,3}".join(tag.split("_")) for tag in BOUNDARY_TAGS)
    return re.compile(
        rf"(?:<|&lt;?|&\#0{{0,6}}60;?|&\#x0{{0,6}}3c;?)[\s/\\]{{0,20}}(?:{names})(?![a-z0-9_])"
        r"(?:[^<>]{0,300}?>)?"
    )


_TAG = _tag_pattern()


def _without_boundary_tags(text: str) -> str:
    """Each boundary tag, whole or torn, replaced by words that nothing can be joined to."""
    parts: list[str] = []
    position = 0
    for match in _TAG.finditer(_skeleton(text)):
        parts += [text[position : match.start()], REMOVED_TAG]
        position = match.end()
    return "".join((*parts, text[position:]))
