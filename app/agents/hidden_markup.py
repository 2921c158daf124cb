"""Drops from Markdown what a reader of the page does not see. Pure and linear.

What is invisible to people but read by a model is where orders to the model are hidden: comments,
alternative texts, titles, attributes, definitions of links, elements that are not displayed.
"""

from __future__ import annotations

import re

_PASSES = 5
_VALUE = r"(?:\"[^\"<>]{0,2000}\"|'[^'<>]{0,2000}'|[^\s\"'<>=`]{1,2000})"
_ATTRIBUTE = rf"\s+[A-Za-z_:@][\w:.@-]{{0,60}}(?:\s{{0,5}}=\s{{0,5}}{_VALUE})?"
_TAG_WITH_ATTRIBUTES = re.compile(
    rf"<(?P<name>[A-Za-z][A-Za-z0-9-]{{0,30}})(?P<attributes>(?:{_ATTRIBUTE}){{1,40}})\s{{0,5}}/?>"
)
_NOT_SHOWN = re.compile(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|font-size\s{0,3}:\s{0,3}0|\shidden\b",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[[^\[\]]{0,2000}\](?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\])")
_LINK_TITLE = re.compile(
    r"(?<=\])\((?P<to>[^\s()]{0,2000})\s+(?:\"[^\"]{0,2000}\"|'[^']{0,2000}')\s{0,5}\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[[^\[\]\n]{1,999}\]:[^\n]*(?:\n[ \t]+[\"'(][^\n]*)?", re.MULTILINE
)


def drop_hidden_markup(text: str) -> str:
    """`text` without comments, hidden elements, attributes, pictures and link definitions.

    Repeated until nothing is found, at most five times; what then still opens a comment is cut.
    """
    for _ in range(_PASSES):
        cleaned = _one_pass(text)
        if cleaned == text:
            return text
        text = cleaned
    return text.replace("<!--", "[").replace("![", "[")


def _one_pass(text: str) -> str:
    text = _without_comments(text)
    if "<" in text:
        text = _without_hidden_elements(text)
        text = _TAG_WITH_ATTRIBUTES.sub(lambda match: f"<{match['name']}>", text)
    if "](" in text or "![" in text:
        text = _IMAGE.sub("(picture)", text)
        text = _LINK_TITLE.sub(lambda match: f"({match['to']})", text)
    return _DEFINITION.sub("", text) if "]:" in text else text


def _without_comments(text: str) -> str:
    """Closed comments go; one that never closes hides the rest, if it begins a line."""
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        end = text.find("-->", start + 2)
        if end < 0:
            line_start = text.rfind("\n", 0, start) + 1
            if text[line_start:start].strip() == "":
                return "".join((*parts, text[position:start]))
            break
        parts.append(text[position:start])
        position = end + 3
    return "".join((*parts, text[position:]))


def _without_hidden_elements(text: str) -> str:
    """Elements that are not displayed go with what they hold, up to their first closing tag."""
    parts: list[str] = []
    position = 0
    lowered = text.lower()
    for match in _TAG_WITH_ATTRIBUTES.finditer(text):
        if match.start() < position or _NOT_SHOWN.search(match["attributes"]) is None:
            continue
        closing = f"</{match['name'].lower()}>"
        end = lowered.find(closing, match.end())
        parts.append(text[position : match.start()])
        position = len(text) if end < 0 else end + len(closing)
    return "".join((*parts, text[position:]))
