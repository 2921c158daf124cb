"""Takes the power out of prose that GitHub and other bots would act on. Pure, linear, idempotent.

What is broken up stays readable: an invisible character stands between the sign and the name. Only
for prose as `app.agents.markdown` finds it; inside code all of this is inert.
"""

from __future__ import annotations

import re

from app.agents.entities import decode_entities
from app.domain.redaction import redact, without_internal_addresses

_GAP = "&#8203;"
_READ_AS_ITSELF = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@#;:-/ ")
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_MENTION = re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9])")
_REFERENCE = re.compile(r"&#\d{1,9};|(?:#|(?<![A-Za-z0-9])GH-)(?=\d)", re.IGNORECASE)
_CLOSING = re.compile(
    r"\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?)([ \t]{1,20})(?=https?://)", re.IGNORECASE
)
_COMMAND = re.compile(r"/(?=mergeward)", re.IGNORECASE)
_SLASH_COMMAND = re.compile(r"^([ \t>*+-]{0,20}+)/(?=[A-Za-z][\w-]{0,60}+(?:\s|$))", re.MULTILINE)
_BREAK_GLASS = re.compile(r"\b(break)(\s{1,20})(?=glass\b)", re.IGNORECASE)


def defuse(prose: str) -> str:
    """`prose` that mentions nobody, refers to and closes no issue, commands no bot, holds no HTML,
    and names no address inside a network."""
    if "&" in prose:
        # What was written with references may be a credential without them.
        prose = redact(decode_entities(prose, _READ_AS_ITSELF.__contains__))
    prose = _HTML.sub("&lt;", without_internal_addresses(prose))
    if "@" in prose:
        prose = _MENTION.sub(f"@{_GAP}", prose)
    prose = _REFERENCE.sub(_apart, prose)
    if "/" in prose:
        prose = _CLOSING.sub(rf"\1\2{_GAP}\3", prose)
        prose = _SLASH_COMMAND.sub(rf"\1/{_GAP}", _COMMAND.sub(f"/{_GAP}", prose))
    return _BREAK_GLASS.sub(rf"\1{_GAP}\2", prose)


def _apart(match: re.Match[str]) -> str:
    """A number behind `&#` is a character, our own gap for one."""
    found = match.group()
    return found if found[0] == "&" else f"{found}{_GAP}"
