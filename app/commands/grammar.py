"""What a comment asks of Mergeward. Pure: text in, commands out; who may ask is not decided here.

A command stands on a line of its own and starts with `/mergeward`. Quotes, code and what the page
does not show are somebody showing a command, not giving one (`app.commands.shown`). Breaking the
glass is no command among others: it is the whole comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.commands.shown import spoken_lines

TRIGGER = "/mergeward"
"""The word a command starts with, in any case."""

MOST_COMMANDS = 10
"""Commands that one comment may give; what goes beyond is refused, and said."""

_SHORT_ID = re.compile(r"F[1-9][0-9]{0,5}", re.IGNORECASE)
_GLASS = re.compile(
    r"(?:[^\S\r\n]*+[\r\n])*+ {0,3}break[^\S\r\n]+glass(?=[\s.,:;!]|\Z)(?P<why>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WHY_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Review:
    """`/mergeward review`: review the head of now."""


@dataclass(frozen=True, slots=True)
class Fix:
    """`/mergeward fix F1 F3` or `/mergeward fix all`. No ids means all open findings."""

    short_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unfix:
    """`/mergeward unfix F1`: take findings out of the queue, or off their task."""

    short_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dismiss:
    """`/mergeward dismiss F2 <why>`. `why` is untrusted, and "" if nobody said."""

    short_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Explain:
    """`/mergeward explain F1`."""

    short_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """`/mergeward why`: why things stand as they do."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`/mergeward stop`: no automation goes on here."""


@dataclass(frozen=True, slots=True)
class Resume:
    """`/mergeward resume`: it goes on."""


@dataclass(frozen=True, slots=True)
class Status:
    """`/mergeward status`: how things stand."""


@dataclass(frozen=True, slots=True)
class Help:
    """`/mergeward help`, or `/mergeward` alone."""


@dataclass(frozen=True, slots=True)
class BreakGlass:
    """The whole comment is `break glass` and an optional reason, which is untrusted."""

    why: str


@dataclass(frozen=True, slots=True)
class GlassNotAlone:
    """`break glass` with commands below it: which of the two is meant is not guessed."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that starts with the trigger and says nothing we know. `text` is untrusted."""

    text: str


@dataclass(frozen=True, slots=True)
class TooMany:
    """The comment gives `count` commands beyond the first MOST_COMMANDS."""

    count: int


Command = (
    Review
    | Fix
    | Unfix
    | Dismiss
    | Explain
    | Why
    | Stop
    | Resume
    | Status
    | Help
    | BreakGlass
    | GlassNotAlone
    | Unknown
    | TooMany
)

_BARE: dict[str, Command] = {
    "review": Review(),
    "why": Why(),
    "stop": Stop(),
    "resume": Resume(),
    "status": Status(),
    "help": Help(),
}
_WITH_IDS: dict[str, type[Fix | Unfix | Explain]] = {
    "fix": Fix,
    "unfix": Unfix,
    "explain": Explain,
}


def parse(body: str) -> tuple[Command, ...]:
    """The commands of a comment, in order, each once. Never raises; linear in the text."""
    found: dict[Command, None] = {}
    for line in spoken_lines(body):
        words = line.split()
        if words and words[0].casefold() == TRIGGER:
            found.setdefault(_command(words[1:]))
    glass = _GLASS.match(body)
    if glass is not None:
        return (GlassNotAlone(), *_bounded(found)) if found else (BreakGlass(_why(glass)),)
    return _bounded(found)


def _bounded(found: dict[Command, None]) -> tuple[Command, ...]:
    commands = tuple(found)
    more = len(commands) - MOST_COMMANDS
    return (*commands[:MOST_COMMANDS], TooMany(more)) if more > 0 else commands


def _command(words: list[str]) -> Command:
    match [word.casefold() for word in words]:
        case []:
            return Help()
        case [verb] if verb in _BARE:
            return _BARE[verb]
        case ["fix", "all"]:
            return Fix(())
        case [verb, *ids] if verb in _WITH_IDS and ids and all(map(_SHORT_ID.fullmatch, ids)):
            return _WITH_IDS[verb](tuple(dict.fromkeys(word.upper() for word in words[1:])))
        case ["dismiss", name, *_] if _SHORT_ID.fullmatch(name):
            return Dismiss(name.upper(), " ".join(words[2:])[:_WHY_CHARS])
        case _:
            return Unknown(" ".join(words)[:200])


def _why(glass: re.Match[str]) -> str:
    return " ".join(glass["why"].lstrip(" .,:;!").split())[:_WHY_CHARS]
