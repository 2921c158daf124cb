"""How commands speak: exit codes, text that cannot harm a terminal, and progress on stderr."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TextIO

from app.agents.invisible import show_hidden, without_hidden
from app.domain.redaction import redact


class Exit(IntEnum):
    """What a command ends with."""

    CLEAN = 0
    FINDINGS = 1
    FAILED = 2


# A whole control sequence goes: without its first character the rest would stand there as litter.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,100}[ -/]{0,10}[@-~]?"  # colours, cursor
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]{0,10}[0-~]?"
)


def plain(text: str) -> str:
    """A stranger's text as it may be printed: no control sequence, nothing invisible, no secret.

    New lines and tabs stay.
    """
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return redact(without_hidden(text))


def one_line(text: str) -> str:
    """The same for a title or a sentence: on one line."""
    return " ".join(plain(text).split())


def shown(text: str) -> str:
    """A path or code, letter by letter: what is invisible is written out, `<U+202E>`."""
    return redact(show_hidden(text.replace("\r\n", "\n")).replace("\r", "<U+000D>"))


def path_name(path: str) -> str:
    """A path on one line, whatever its name is made of."""
    return shown(path).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def warn(text: str) -> None:
    """One line to the person, apart from the results."""
    print(f"mergeward: {plain(text)}", file=sys.stderr, flush=True)


def tolerate(*streams: TextIO) -> None:
    """Let a terminal that knows few characters show the others as `\\u2026` instead of failing."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def results_only_on_stdout() -> Iterator[TextIO]:
    """Whatever prints meanwhile prints to stderr; the yielded stream is the real stdout."""
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        yield out
    finally:
        sys.stdout = out
