"""Whether words are in another language than the one our agents are told to write. Pure.

A guess, wrong in neither direction with harm: an answer in another language is asked for once more,
and stands if it stays. Short texts are never guessed about.
"""

from __future__ import annotations

import re
import unicodedata

_CODE = re.compile(r"```[\s\S]*?```|`[^`\n]*`")
_WORD = re.compile(r"[^\W\d_]+")
_FEWEST_LETTERS = 6
_FEWEST_WORDS = 7
_IDEOGRAPHS = 0x2E80
_LETTERS_OF_AN_IDEOGRAPH = 3
_ENGLISH = frozenset(
    _WORD.findall(
        "the a an is are be was not no of to and or in on at by for with from this that it its if"
        " when then which can so but has have does never only without before after"
    )
)
_OTHERS = frozenset(
    _WORD.findall(
        "der die das und ist nicht ein eine einen wird werden mit auf von dem den wenn fehlt hier"
        " le la les des est une pas que dans pour sur qui ne el los las es una por con del al se"
        " não uma para com em os da che non per di un een het niet van voor wordt jest nie się bir"
    )
)
"""Small words that no sentence of some length does without; no more languages than that."""


def is_other_language(text: str) -> bool:
    """Whether most of the letters are of another script, or none of the small words is English."""
    prose = _CODE.sub(" ", text)
    words = _WORD.findall(prose)
    latin = other = 0
    for word in words:
        if _is_latin(word[0]):
            latin += len(word)
        else:
            wide = ord(word[0]) >= _IDEOGRAPHS
            other += len(word) * (_LETTERS_OF_AN_IDEOGRAPH if wide else 1)
    if other > latin and other >= _FEWEST_LETTERS:
        return True
    small = [word.lower() for word in words]
    if len(small) < _FEWEST_WORDS or any(word in _ENGLISH for word in small):
        return False
    return sum(word in _OTHERS for word in small) > 1


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")
