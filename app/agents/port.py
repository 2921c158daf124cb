"""The one port every runtime implements: an agent task in, events and a result out.

A runtime never raises for what a provider does: that is a classified value in the result. What does
come out of `Runtime.run` as an exception is cancellation, an error of the caller's own event sink,
and a `JobError` of a host tool (the job is no longer ours, so nothing may go on).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from app.domain.runs import AgentName, Booked, Usage


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model by the name of its provider's entry and the name the provider knows it by."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> ModelRef:
        """Read `provider/name`. Raises ValueError when one half is missing."""
        provider, slash, name = text.strip().partition("/")
        if not (slash and provider and name):
            raise ValueError(f"a model is written provider/name, not {text!r}")
        return cls(provider, name)


class ToolError(Exception):
    """A host tool could not do what was asked; the message is told to the model as it is."""


@dataclass(frozen=True, slots=True)
class HostTool:
    """A capability we run ourselves on the model's behalf.

    `parameters` is the JSON schema of the arguments (an object). `call` gets whatever the model
    sent and must check it. `timeout_s` None means the tool bounds its own time; time inside a tool
    never counts against the session's timeouts.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    call: Callable[[Mapping[str, object]], Awaitable[str]]
    timeout_s: float | None = 60.0


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What one session may use. Seconds, tokens and characters.

    `timeout_s` bounds the session's own time (model calls and waits between them),
    `start_timeout_s` the silence before its first output, `chunk_timeout_s` the silence on the wire
    after that. `session_tokens` bounds uncached input, cache writes and output together.
    """

    model_calls: int = 40
    timeout_s: float = 300.0
    start_timeout_s: float = 60.0
    chunk_timeout_s: float = 120.0
    max_output_tokens: int = 16_000
    session_tokens: int = 2_000_000
    tool_result_chars: int = 60_000


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One agent session to run.

    `models` is the failback chain, first choice first; entries of another family than the first are
    not used. `key` names the session in logs and events, unique within its review run.
    `prompt_version` names the prompt files in `system`; findings carry it. `headers` go with each
    request to the provider of that name (gateways tell whose request it is).
    """

    agent: AgentName
    system: str
    prompt: str
    models: tuple[ModelRef, ...]
    tools: tuple[HostTool, ...] = ()
    limits: AgentLimits = field(default_factory=AgentLimits)
    key: str = ""
    prompt_version: str = ""
    headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)


class FinishReason(StrEnum):
    """Why the model stopped, or ERROR when the session did not get that far."""

    STOP = "stop"
    LENGTH = "length"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    ERROR = "error"


class AgentErrorKind(StrEnum):
    """What went wrong, by who could do something about it."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONNECTION = "connection"
    CUT_STREAM = "cut_stream"
    BREAKER_OPEN = "breaker_open"
    NO_START = "no_start"
    STALLED = "stalled"
    TIMEOUT = "timeout"
    AUTH = "auth"
    QUOTA = "quota"
    UNKNOWN_MODEL = "unknown_model"
    CONTEXT_OVERFLOW = "context_overflow"
    REJECTED = "rejected"
    REFUSED = "refused"
    MALFORMED = "malformed"
    ABORTED = "aborted"
    LIMIT = "limit"
    NO_MODEL = "no_model"

    @property
    def is_retryable(self) -> bool:
        """Whether another attempt, or a sibling model, may do better without any change of ours."""
        return self in _RETRYABLE


_RETRYABLE = frozenset(
    {
        AgentErrorKind.RATE_LIMITED,
        AgentErrorKind.OVERLOADED,
        AgentErrorKind.SERVER,
        AgentErrorKind.CONNECTION,
        AgentErrorKind.CUT_STREAM,
        AgentErrorKind.BREAKER_OPEN,
        AgentErrorKind.NO_START,
        AgentErrorKind.STALLED,
    }
)


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """A classified failure. `message` is for logs: it may name hosts and models, never a key.

    `retry_after` is the provider's own wish in seconds, when it gave one.
    """

    kind: AgentErrorKind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What a session gave. `text` is the model's last answer, untrusted, also when it was cut off.

    `error` is None exactly when the model finished by itself (also by `length`). `model` is the one
    that was asked last.
    """

    text: str
    usage: Usage
    finish: FinishReason
    error: AgentFailure | None = None
    model: ModelRef | None = None
    tool_calls: int = 0

    @property
    def succeeded(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class Started:
    """The session exists; no model has been called yet."""

    key: str


@dataclass(frozen=True, slots=True)
class ModelCallStarted:
    """A request is about to leave. `number` counts from 1 within the session.

    Awaited before the request is sent, so what must be recorded before money is spent can be.
    """

    key: str
    number: int
    model: ModelRef

    @property
    def begins_session(self) -> bool:
        """Whether the session costs something from now on: what counts sessions counts these."""
        return self.number == 1


@dataclass(frozen=True, slots=True)
class ModelCallFinished:
    """A response is complete. `usage` is of this call alone."""

    key: str
    number: int
    model: ModelRef
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A host tool has answered (or failed: `failed`)."""

    key: str
    name: str
    arguments: Mapping[str, object]
    result_chars: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Text:
    """Text of one response, untrusted."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model has said nothing for `silent_s`: told every 30 s of it. Time in tools is none."""

    key: str
    silent_s: float


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call failed and is repeated after `wait_s`, on `model`."""

    key: str
    failure: AgentFailure
    wait_s: float
    model: ModelRef


@dataclass(frozen=True, slots=True)
class Finished:
    """The session is over."""

    key: str
    result: AgentResult


@dataclass(frozen=True, slots=True)
class ReviewerDone:
    """A reviewer is through with all that it was to read, in however many sessions. `reason` says
    why its result is not whole, "" if it is."""

    key: str
    findings: int
    reason: str = ""


AgentEvent: TypeAlias = (
    Started
    | ModelCallStarted
    | ModelCallFinished
    | ToolCalled
    | Text
    | Thinking
    | Retrying
    | Finished
    | ReviewerDone
)
EventSink: TypeAlias = Callable[[AgentEvent], Awaitable[None]]


def booked_by(event: AgentEvent) -> Booked | None:
    """What the event costs, if anything: a session is booked when it begins, a call when it ends,
    so that what is cut off has paid for what it used."""
    match event:
        case ModelCallStarted() if event.begins_session:
            return Booked(sessions=1)
        case ModelCallFinished(usage=usage):
            return Booked(usage=usage)
        case _:
            return None


async def ignore_events(event: AgentEvent) -> None:
    """The sink of those who want only the result."""


class Runtime(Protocol):
    """Runs agent sessions. Safe to use from many tasks at once."""

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        """Run one session to its end. See the module's text for what may be raised."""
        ...
