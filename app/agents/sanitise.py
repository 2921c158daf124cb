"""The two doors of hostile text: into a prompt (`untrusted` and its kin), and out (`outgoing`).

In: nothing a stranger writes may look like our own markup to a model, and nothing may be said to
the model that people looking at the page would not see. Out: no credential, no mention, no command,
no markup that changes what stands around it. Pure, linear, and twice is once.
"""

from __future__ import annotations

import re

from app.agents.defuse import defuse
from app.agents.entities import decode_entities
from app.agents.hidden_markup import drop_hidden_markup
from app.agents.invisible import show_hidden, without_hidden
from app.agents.lookalikes import skeleton
from app.agents.markdown import balance_fences, cap, outside_code
from app.domain.redaction import redact, without_internals

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
    "added_context",
    "fix_task",
    "review_remarks",
    "reviewer_results",
)
"""The tags that mark what is data in a prompt. Wrapper and sanitiser both read this."""

GITHUB_BODY_LIMIT = 65_536
OUTGOING_LIMIT = GITHUB_BODY_LIMIT - 5_536
"""What is left of GitHub's limit once markers and frame have their place."""
FAILURE_LIMIT = 600
"""Characters of an error on a page."""

REMOVED_TAG = "(tag removed)"
_PASSES = 4
"""Honest text is settled after one or two; what is nested deeper was built to be."""


def untrusted(text: str) -> str:
    """`text` as it may stand between boundary tags: cleaned, then XML-escaped.

    Invisible characters go first. Then, until nothing changes: entities are decoded, boundary tags
    in any spelling are replaced, and what a page would not show (comments, alt texts, hidden
    elements) is dropped. Escaping adds what decoding takes away, so twice is once.
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


def code(text: str) -> str:
    """Code between tags: it is no Markdown, so it is escaped and made visible, never cleaned."""
    return escape(show_hidden(text))


def reported(text: str) -> str:
    """Another model's words between tags. It may speak of comments and attributes, which are what a
    finding is about, so they stay; invisible characters and boundary tags do not."""
    return escape(_without_boundary_tags(without_hidden(text)))


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
    """A piece of a model's or user's text as it may be posted.

    Credentials are redacted before anything is cut. Outside code everything that GitHub or a bot
    would act on is defused; inside code it is inert and stays letter by letter, so that suggestions
    still apply. Our hidden markers are defused everywhere. Fences are balanced. Not for text that
    holds our own markers or HTML: put those around the result.
    """
    text = redact(without_hidden(text.replace("\r\n", "\n").replace("\r", "\n")))
    text = _MARKER.sub("<!-", text)
    room = limit
    while True:
        posted = _defused(cap(text, room))
        excess = len(posted) - limit
        if excess <= 0 or room == 0:
            return posted
        room = max(0, min(room, len(text)) - max(excess, limit // 8))


def _defused(text: str) -> str:
    """Until nothing changes: what is taken out of prose may part or join what stood around it."""
    for _ in range(_PASSES):
        defused = outside_code(balance_fences(text), defuse)
        if defused == text:
            break
        text = defused
    return text


def outgoing_line(text: str, *, limit: int = OUTGOING_LIMIT) -> str:
    """A title or some words in the middle of a line of ours. There no fence can begin, so none is
    closed either: that would open one."""
    start = ": "
    posted = outgoing(start + " ".join(text.split()), limit=limit + len(start))
    return " ".join(posted.removeprefix(start).split())


def outgoing_failure(words: str) -> str:
    """The words of an error as they may be posted: on one line, without anything that tells of our
    machines. Whoever runs them finds the whole in the log."""
    return outgoing_line(without_internals(words), limit=FAILURE_LIMIT)


def _clean(text: str) -> str:
    """The fixed point of decoding, replacing and dropping; text that hides it is taken apart."""
    text = without_hidden(text.replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(_PASSES):
        cleaned = drop_hidden_markup(_without_boundary_tags(decode_entities(text)))
        if cleaned == text:
            return text
        text = cleaned
    # With none of these left there is nothing to decode, to drop or to open a tag with.
    return _without_boundary_tags(text.translate(_TAKEN_APART))


_MARKER = re.compile(r"<!--(?=\s*+(?:/\s*+)?mergeward)", re.IGNORECASE)
_TAKEN_APART = {ord("<"): "(", ord(">"): ")", ord("&"): "+", ord("["): "(", ord("]"): ")"}


def _tag_pattern() -> re.Pattern[str]:
    names = "|".join(r"[\s_]{0,3}".join(tag.split("_")) for tag in BOUNDARY_TAGS)
    return re.compile(
        rf"(?:<|&lt;?|&\#0{{0,6}}60;?|&\#x0{{0,6}}3c;?)[\s/\\!?]*+(?:{names})(?![a-z0-9_])"
        r"(?:[^<>]{0,300}+>)?"
    )


_TAG = _tag_pattern()


def _without_boundary_tags(text: str) -> str:
    """Each boundary tag, whole or torn, replaced by words that nothing can be joined to."""
    parts: list[str] = []
    position = 0
    for match in _TAG.finditer(skeleton(text)):
        parts += [text[position : match.start()], REMOVED_TAG]
        position = match.end()
    return "".join((*parts, text[position:])) if parts else text
