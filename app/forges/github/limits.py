"""GitHub's size limits, and our texts made to fit them. Pure."""

from __future__ import annotations

from typing import Any

from app.domain.effects import Annotation, SetCheckRun
from app.domain.markers import shortened

MAX_BODY = 65_536
"""Characters of a comment, a review or a pull request's body."""
MAX_CHECK_TEXT = 65_535
"""Characters of a check run's summary and of its text."""
MAX_TITLE = 255
MAX_ANNOTATIONS = 50
"""Annotations per request; further requests append."""
_MAX_MESSAGE_BYTES = 64 * 1024
_MAX_ALL_ANNOTATIONS = 1000
"""Ours: nobody reads more, and each fifty cost a write."""


def short_line(text: str, limit: int = MAX_TITLE) -> str:
    """`text` as one line within `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def check_text(text: str) -> str:
    return shortened(text, MAX_CHECK_TEXT)


def annotation(item: Annotation) -> dict[str, Any]:
    """One annotation as the API takes it."""
    message = item.message.encode()[:_MAX_MESSAGE_BYTES].decode(errors="ignore")
    sent: dict[str, Any] = {
        "path": item.path,
        "start_line": item.start_line,
        "end_line": item.end_line,
        "annotation_level": item.level.value,
        "message": message or "(no text)",
    }
    if item.title:
        sent["title"] = short_line(item.title)
    return sent


def annotation_chunks(check: SetCheckRun, already: int) -> list[list[dict[str, Any]]]:
    """The annotations that are not there yet, in portions of one request each."""
    missing = [annotation(item) for item in check.annotations[already:_MAX_ALL_ANNOTATIONS]]
    starts = range(0, len(missing), MAX_ANNOTATIONS)
    return [missing[start : start + MAX_ANNOTATIONS] for start in starts]
