"""Drops from Markdown what a reader of the page does not see. Pure and linear.

What is invisible to people but read by a model is where orders to the model are hidden: comments,
alternative texts, titles, attributes, definitions of links, elements that are not displayed. A text
that only looks like one of these goes as well; what a person wrote to be read says it twice.
"""

from __future__ import annotations

import re

_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9:-]{0,60})"
_TAG_WITH_ATTRIBUTES = re.compile(
    rf"<{_NAME}(?P<attributes>[\s/](?:=\s{{0,20}}\"[^\"]*+\"|=\s{{0,20}}'[^']*+'|[^<>])*+)>"
)
_TORN_TAG = re.compile(rf"<{_NAME}[\s/][^>]*+\Z")
_ANY_TAG = re.compile(r"<(?P<closing>/?)(?P<name>[A-Za-z][A-Za-z0-9:-]{0,60})")
_NO_CONTENT = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"}
    | {"param", "source", "track", "wbr"}
)
_NOT_SHOWN = re.compile(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}(?:hidden|collapse)"
    r"|(?:font-size|opacity)\s{0,3}:\s{0,3}0(?![.\d]*[1-9])|\shidden\b",
    re.IGNORECASE,
)
_OPENS = re.compile(r"<!--|<\?|<!\[CDATA\[|<!(?=[A-Za-z])")
_CLOSES = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>", "<!": ">"}

_LABEL = r"\[(?:\\.|[^\[\]\\]|\[[^\[\]]{0,500}\])*+\]"
_TITLE = r"(?:\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|\((?:\\.|[^()\\])*+\))"
_TARGET = r"(?:<[^<>\n]*+>|(?:\\.|[^\s()\\]|\([^\s()]{0,500}\))*+)"
_IMAGE = re.compile(
    rf"!{_LABEL}(?:\((?:\\.|[^()\\]|\([^()]{{0,500}}\))*+\)|\[[^\[\]\n]*+\]|(?=[(\[]))"
)
_SHORT_IMAGE = re.compile(rf"!{_LABEL}")
_LINK_TITLE = re.compile(rf"(?<=\])\(\s{{0,20}}(?P<to>{_TARGET})\s{{1,20}}{_TITLE}\s{{0,20}}\)")
_BREAK = r"\n(?![ \t]*+\n)"
_LONG_TITLE = rf"(?:\"(?:[^\"\n]|{_BREAK})*+\"|'(?:[^'\n]|{_BREAK})*+'|\((?:[^()\n]|{_BREAK})*+\))"
_DEFINITION = re.compile(
    r"^[ \t>*+.)\d-]{0,40}\[(?:\\.|[^\[\]\\\n]){1,999}+\]:[ \t]{0,20}\n?[ \t]{0,20}"
    rf"(?:<[^<>\n]*+>|\S+)(?:[ \t]{{0,20}}\n?[ \t]{{0,20}}{_LONG_TITLE})?[^\n]*",
    re.MULTILINE,
)


def drop_hidden_markup(text: str) -> str:
    """`text` without comments, hidden elements, attributes, pictures and link definitions.

    One pass: what only shows up afterwards is for the next one, until nothing changes.
    """
    if "<" in text:
        text = _without_hidden_elements(_without_comments(text))
        text = _TAG_WITH_ATTRIBUTES.sub(lambda match: f"<{match['name']}>", text)
        text = _without_torn_tag(text)
    if "](" in text or "![" in text:
        text = _IMAGE.sub("(picture)", text)
        text = _LINK_TITLE.sub(lambda match: f"({match['to']})", text)
    if "]:" in text:
        defined = _DEFINITION.sub("", text)
        text = _SHORT_IMAGE.sub("(picture)", defined) if defined != text else text
    return text


def _without_comments(text: str) -> str:
    """Comments, instructions and declarations go.

    A comment that never closes hides the rest where markup may begin: at the beginning of a line,
    or in a line of elements.
    """
    parts: list[str] = []
    position = 0
    unclosed: set[str] = set()
    for match in _OPENS.finditer(text):
        opening = match.group()
        if match.start() < position or opening in unclosed:
            continue
        # `<!-->` is a whole comment.
        inside = match.start() + 2 if opening == "<!--" else match.end()
        end = text.find(_CLOSES[opening], inside)
        if end < 0:
            unclosed.add(opening)
            if opening == "<!--" and _hides_the_rest(text, match.start()):
                return "".join((*parts, text[position : match.start()]))
            continue
        parts.append(text[position : match.start()])
        position = end + len(_CLOSES[opening])
    return "".join((*parts, text[position:])) if parts else text


def _hides_the_rest(text: str, start: int) -> bool:
    line_start = text.rfind("\n", 0, start) + 1
    return text[line_start:start].lstrip()[:1] in ("", "<")


def _without_hidden_elements(text: str) -> str:
    """Elements that are not displayed go with all that they hold."""
    parts: list[str] = []
    position = 0
    for match in _TAG_WITH_ATTRIBUTES.finditer(text):
        if match.start() < position or _NOT_SHOWN.search(match["attributes"]) is None:
            continue
        parts.append(text[position : match.start()])
        position = _end_of_element(text, match)
    return "".join((*parts, text[position:])) if parts else text


def _end_of_element(text: str, opening: re.Match[str]) -> int:
    """After the closing tag that belongs to `opening`, the end of the text when there is none."""
    name = opening["name"].lower()
    if name in _NO_CONTENT:
        return opening.end()
    depth = 1
    for tag in _ANY_TAG.finditer(text, opening.end()):
        if tag["name"].lower() != name:
            continue
        depth += -1 if tag["closing"] else 1
        if depth == 0:
            end = text.find(">", tag.end())
            return len(text) if end < 0 else end + 1
    return len(text)


def _without_torn_tag(text: str) -> str:
    """A last tag that never ends is no text either, if it has a quoted attribute."""
    start = text.rfind("<")
    match = _TORN_TAG.match(text, start) if start >= 0 else None
    if match is None or not re.search(r"=\s{0,20}[\"']", match.group()):
        return text
    return f"{text[:start]}<{match['name']}"
