"""`log-text`: text on its way to a log, with a secret of this process somewhere in it."""

from __future__ import annotations

import io
import logging
from pathlib import Path

from app.logs import configure_logging, get_logger, keep_secret
from app.settings import LogFormat
from tests.adapters.case import KNOWN, Case, compare_text, only_knows


async def check(case: Case, _: Path) -> None:
    only_knows(case.expect, *KNOWN)
    assert not case.input.get("public"), "texts of failures are never posted"
    if token := case.input.get("token"):
        keep_secret(token)
    for text in case.input["texts"]:
        compare_text(_logged(text)[: case.input.get("cut_at")], case.expect)


def _logged(text: str) -> str:
    stream, root = io.StringIO(), logging.getLogger()
    before = root.handlers[:]
    configure_logging(log_format=LogFormat.JSON, stream=stream)
    try:
        get_logger("case").error(text)
    finally:
        root.handlers[:] = before
    return stream.getvalue()
