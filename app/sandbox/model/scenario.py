"""The YAML scenario: what is planted, how it is fixed, and how the provider misbehaves.

A scenario holds words and needles, never a place in a repository: whether a line is there, and on
which line, the server learns only from the conversation it is asked to continue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.sandbox.model.errors import ScenarioError

ReviewerName = Literal[
    "general",
    "code_quality",
    "security",
    "performance",
    "documentation",
    "release",
    "compliance",
    "agents_md",
]
AgentName = Literal["coordinator", "fixer", ReviewerName]

MODELS: tuple[str, ...] = (
    "claude-fable-5-2",
    "claude-fable-5-1",
    "claude-fable-5",
    "claude-mythos-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5",
    "claude-mythos-preview",
    "claude-opus-5-5",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-opus-4-5",
    "claude-opus-4-5-20251101",
    "claude-sonnet-5-5",
    "claude-sonnet-5",
    "claude-sonnet-4-6",
    "claude-sonnet-4-5",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-5-5",
    "claude-haiku-4-5",
    "claude-haiku-4-5-20251001",
    "gpt-5.4",
    "gpt-5.3-codex",
    "kimi-k2.5",
)
"""Models that answer unless the scenario lists its own: those that Anthropic's SDK names, and what
Mergeward ships of others."""


class FaultKind(StrEnum):
    """How one call goes wrong."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    UNAVAILABLE = "unavailable"
    CONTEXT_OVERFLOW = "context_overflow"
    AUTH = "auth"
    LENGTH = "length"
    NONSENSE = "nonsense"
    EMPTY = "empty"
    STALL = "stall"
    STALL_MIDWAY = "stall_midway"
    CUT = "cut"
    NO_FINISH = "no_finish"
    STREAM_ERROR = "stream_error"

    @property
    def spoils_stream(self) -> bool:
        """Whether the answer is right and its way is not; only a stream can go wrong so."""
        return self in _OF_STREAMS


_OF_STREAMS = frozenset(
    {
        FaultKind.STALL,
        FaultKind.STALL_MIDWAY,
        FaultKind.CUT,
        FaultKind.NO_FINISH,
        FaultKind.STREAM_ERROR,
    }
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Planted(_Strict):
    """One finding that `agents` make when `needle` stands in a line they read.

    `path` is a glob in which `*` matches `/` too. `needle` is a part of one line. With
    `added_only`, lines that the change does not add (context, plain files) do not count.
    `title` is how the other agents know the finding again.
    """

    id: str = Field(min_length=1)
    path: str = Field(min_length=1)
    needle: str = Field(min_length=1, pattern=r"^[^\r\n]*\S[^\r\n]*$")
    agents: tuple[ReviewerName, ...] = Field(min_length=1)
    severity: Literal["critical", "warning", "suggestion"]
    category: str = Field(min_length=1)
    title: str = Field(min_length=1)
    body: str = Field(min_length=1)
    evidence: str | None = None
    suggestion: str | None = None
    trivial: bool = False
    production_risk: str | None = None
    also: tuple[str, ...] = ()
    added_only: bool = False


class Fix(_Strict):
    """How the fixer answers the finding with that planted id: one exact replacement.

    `path` is the file to edit where that is not the finding's own.
    """

    finding: str = Field(min_length=1)
    find: str = Field(min_length=1)
    replace: str
    path: str | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.find == self.replace:
            raise ValueError("find and replace are the same text")
        return self


class Fault(_Strict):
    """A provider's failure, from the `call`-th request on, for `times` requests.

    With `per: agent` requests of that agent are counted over the life of the server, whatever
    conversation they belong to; with `per: conversation` the `call`-th turn of a conversation is
    meant. `agent: "*"` is any. `retry_after` is in seconds and goes with `rate_limit` alone.
    """

    agent: AgentName | Literal["*"]
    kind: FaultKind
    model: str | None = None
    call: int = Field(default=1, ge=1)
    times: int | Literal["always"] = 1
    per: Literal["agent", "conversation"] = "agent"
    retry_after: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if isinstance(self.times, int) and self.times < 1:
            raise ValueError("times must be at least 1, or 'always'")
        if self.retry_after is not None and self.kind is not FaultKind.RATE_LIMIT:
            raise ValueError("retry_after goes with kind: rate_limit alone")
        return self


class Counting(_Strict):
    """How tokens are counted: characters a token, rounded up. Four is the usual rule of thumb."""

    input_chars_per_token: float = Field(default=4.0, gt=0)
    output_chars_per_token: float = Field(default=4.0, gt=0)


class Scenario(_Strict):
    """A whole script. Every list may be empty: then every change is clean.

    `roles` says what becomes of two user messages in a row: one turn, as the provider does it, or
    a 400, as some compatible servers answer. With `search`, whoever judges code searches for that
    expression before answering, as models look around.
    """

    description: str = ""
    models: tuple[str, ...] = Field(default=MODELS, min_length=1)
    roles: Literal["combined", "alternating"] = "combined"
    planted: tuple[Planted, ...] = ()
    fixes: tuple[Fix, ...] = ()
    faults: tuple[Fault, ...] = ()
    usage: Counting = Counting()
    search: str | None = None

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for what, names in (
            ("id", [entry.id for entry in self.planted]),
            ("title", [normal_title(entry.title) for entry in self.planted]),
        ):
            doubled = [name for name, count in Counter(names).items() if count > 1]
            if doubled:
                raise ValueError(f"planted: {what} {doubled[0]!r} is used twice")
        known = {entry.id for entry in self.planted}
        for index, fix in enumerate(self.fixes):
            if fix.finding not in known:
                raise ValueError(f"fixes[{index}].finding: no planted id {fix.finding!r}")
        return self

    def titled(self, title: str) -> Planted | None:
        """The planted entry of that title, however it is spaced or capitalised."""
        wanted = normal_title(title)
        matches = (entry for entry in self.planted if normal_title(entry.title) == wanted)
        return next(matches, None)

    def fixes_of(self, entry: Planted) -> tuple[Fix, ...]:
        """Every way to fix it, in the scenario's order."""
        return tuple(fix for fix in self.fixes if fix.finding == entry.id)


def normal_title(title: str) -> str:
    """A title as it is compared: without case, doubled spaces and invisible characters."""
    visible = "".join(char for char in title if char.isprintable() or char.isspace())
    return " ".join(visible.casefold().split())


def shipped_scenarios() -> tuple[str, ...]:
    """Names of the scenarios that travel in this package, without `.yaml`."""
    found = (entry.name for entry in _shipped().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def load_scenario(source: str | Path) -> Scenario:
    """Load a scenario from a path, or by the name of a shipped one (`demo`, `review`).

    Raises `ScenarioError`, which names the file and every wrong key.
    """
    name, text = _read(source)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScenarioError(f"{name}: not valid YAML: {_yaml_problem(error)}") from error
    return parse_scenario(data if data is not None else {}, name=name)


def parse_scenario(data: Any, *, name: str = "scenario") -> Scenario:
    """Check parsed YAML. Raises `ScenarioError`, which names `name` and every wrong key."""
    if not isinstance(data, dict):
        raise ScenarioError(f"{name}: the file must hold a mapping at its top")
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        lines = "; ".join(_problems(error))
        raise ScenarioError(f"{name}: {lines}") from error


def _shipped() -> Any:
    return files("app.sandbox.model").joinpath("scenarios")


def _read(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and source in shipped_scenarios():
        entry = _shipped().joinpath(f"{source}.yaml")
        return f"{source}.yaml", entry.read_text(encoding="utf-8")
    path = Path(source)
    try:
        return str(path), path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(shipped_scenarios())
        raise ScenarioError(
            f"{path}: cannot be read ({error}). Give a path, or a shipped name: {names}"
        ) from error


def _yaml_problem(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())


def _problems(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False, include_input=False):
        key = _key(item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        yield f"{key}: {message}" if key else message


def _key(location: Iterable[int | str]) -> str:
    key = ""
    for part in location:
        key += f"[{part}]" if isinstance(part, int) else f".{part}"
    return key.removeprefix(".")
