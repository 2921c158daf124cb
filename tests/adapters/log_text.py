"""`log-text`: text of an error on its way to a log, or (`public`) to a page."""

from __future__ import annotations

import io
import logging
from pathlib import Path

from app.logs import configure_logging, get_logger, keep_secret
from app.review.render import failed_text, unpublished_text
from app.settings import LogFormat
from tests.adapters.case import KNOWN, Case, compare_text, only_knows


async def check(case: Case, _: Path) -> None:
    only_knows(case.expect, *KNOWN)
    if token := case.input.get("token"):
        keep_secret(token)
    written = _posted if case.input.get("public") else _logged
    for text in case.input["texts"]:
        compare_text(written(text)[: case.input.get("cut_at")], case.expect)


def _posted(text: str) -> str:
    """What the check of a failed review says, whichever way it failed."""
    return f"{failed_text(text)}\n{unpublished_text(text)}"


def _logged(text: str) -> str:
    stream, root = io.StringIO(), logging.getLogger()
    before = root.handlers[:]
    configure_logging(log_format=LogFormat.JSON, stream=stream)
    try:
        get_logger("case").error(text)
    finally:
        root.handlers[:] = before
    return stream.getvalue()
