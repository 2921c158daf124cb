"""What an analyzer is. Other packages add theirs through the entry point `mergeward.analyzers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from app.domain.runs import AgentName
from app.logs import get_logger, redact

log = get_logger(__name__)

GROUP = "mergeward.analyzers"
"""Each entry names an `Analyzer`, or a function without arguments that makes one."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One result: `file` is the name that the analyzer was given, `line` counts from 1.

    `message` never quotes a secret: who finds one gives its kind alone.
    """

    file: str
    line: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Analyzer:
    """A program that reads files and prints what it found; it must not run them.

    `program` is looked up beside our own interpreter, then on PATH. `arguments` get the names of
    the files, which are plain (`f0001.py`) and lie in the working folder; they must switch off
    every configuration that is not theirs, and comments that silence. `suffixes` are those of the
    files it reads (None: all). `parse` reads its standard output and raises ValueError, KeyError or
    TypeError for what it does not understand. `agents` are told.
    """

    name: str
    program: str
    suffixes: frozenset[str] | None
    arguments: Callable[[Sequence[str]], Sequence[str]]
    parse: Callable[[bytes], Iterable[Remark]]
    agents: tuple[AgentName, ...]
    exit_codes: frozenset[int] = frozenset({0})


def installed_analyzers(entries: Sequence[EntryPoint] | None = None) -> tuple[Analyzer, ...]:
    """Those of other packages, by name. One that cannot be loaded is logged and left out."""
    found = entry_points(group=GROUP) if entries is None else entries
    loaded = map(_loaded, sorted(found, key=lambda entry: entry.name))
    return tuple(one for one in loaded if one is not None)


def _loaded(entry: EntryPoint) -> Analyzer | None:
    try:
        made = entry.load()
        analyzer = made if isinstance(made, Analyzer) else made()
    except Exception as error:
        why = f"{type(error).__name__}: {redact(str(error))}"
    else:
        if isinstance(analyzer, Analyzer):
            return analyzer
        why = "it gives no Analyzer"
    log.warning("analyzer_not_loaded", analyzer=entry.name, why=why)
    return None
