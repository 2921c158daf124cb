"""Asks an agent until its answer can be read, within bounds: the same rules for every agent.

An unreadable answer is asked for once more with what was wrong; one that was cut off, once more
with twice the room; one in another language once more, and then it stands; and never more often
than one agent may be asked for one answer. Nothing is asked again with too little time left. What
was good in the first answer is kept when the second is worse.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeAlias, TypeVar

from app.agents.failback import MINIMUM_LEFT_S
from app.agents.findings_xml import ParseOutcome
from app.agents.port import (
    AgentEvent,
    AgentFailure,
    AgentTask,
    EventSink,
    FinishReason,
    ModelCallFinished,
    ModelRef,
    Runtime,
    ignore_events,
)
from app.agents.prompts import note
from app.agents.rationed import SESSIONS_PER_AGENT
from app.agents.sanitise import untrusted
from app.domain.runs import Usage
from app.errors import JobError

MORE_ROOM = 2
"""By how much the output allowance grows when an answer was cut off."""


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Bounds of one question. `sessions` (≥ 1) are all it may take, the first included.

    `within_s` bounds the wall clock of all of them; with less than `minimum_left_s` left of that,
    or of the task's own time, nothing is asked again.
    """

    sessions: int = SESSIONS_PER_AGENT
    within_s: float = float("inf")
    minimum_left_s: float = MINIMUM_LEFT_S


DEFAULT_LIMITS = AskLimits()


class Parsed(Protocol):
    """What the readers of `findings_xml` give."""

    @property
    def outcome(self) -> ParseOutcome: ...

    @property
    def problems(self) -> tuple[str, ...]: ...

    @property
    def other_language(self) -> bool: ...


P = TypeVar("P", bound=Parsed)
Parser: TypeAlias = Callable[[str, FinishReason], P]


@dataclass(frozen=True, slots=True)
class Answer(Generic[P]):
    """The best reading of an agent's answers.

    `reason` says why it is not OK (`malformed`, `length`, `incomplete`, or an error's kind), else
    "". `usage` covers all `sessions`, also a cancelled one as far as its calls had ended.
    """

    parsed: P
    text: str
    usage: Usage
    sessions: int
    reason: str = ""
    failure: AgentFailure | None = None
    model: ModelRef | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class _Tap:
    """Passes events on, counts what calls used, and remembers an error of the sink itself."""

    sink: EventSink
    usage: Usage = field(default_factory=Usage)
    model: ModelRef | None = None
    error: Exception | None = None

    async def __call__(self, event: AgentEvent) -> None:
        if isinstance(event, ModelCallFinished):
            self.usage += event.usage
            self.model = event.model
        try:
            await self.sink(event)
        except Exception as error:
            self.error = error
            raise


@dataclass(frozen=True, slots=True)
class _Session(Generic[P]):
    """One session's end: a reading of its text, and why that is not the whole."""

    parsed: P
    text: str
    reason: str
    failure: AgentFailure | None = None

    @property
    def rank(self) -> tuple[int, bool]:
        order = (ParseOutcome.FAILED, ParseOutcome.PARTIAL, ParseOutcome.OK)
        return order.index(self.parsed.outcome), not self.parsed.other_language


async def ask(
    task: AgentTask,
    runtime: Runtime,
    parse: Parser[P],
    *,
    on_event: EventSink = ignore_events,
    limits: AskLimits = DEFAULT_LIMITS,
) -> Answer[P]:
    """Run the task, and again where the rules above say so.

    All sessions together get the task's `timeout_s` of their own time and `within_s` of the wall
    clock. Host tools must bear being called again. Raises what `Runtime.run` may raise.
    """
    tap = _Tap(on_event)
    began = time.monotonic()
    best: _Session[P] | None = None
    tried: set[str] = set()
    sessions = 0
    while True:
        sessions += 1
        left = limits.within_s - (time.monotonic() - began)
        session = await _one_session(task, runtime, parse, tap, left)
        best = session if best is None or session.rank >= best.rank else best
        spent = tap.usage.model_seconds
        wall = limits.within_s - (time.monotonic() - began)
        left = min(wall, task.limits.timeout_s - spent)
        following = _following(task, session, tried, left, limits.minimum_left_s)
        if following is None or sessions >= limits.sessions:
            break
        task = following
    seconds = time.monotonic() - began
    return Answer(
        best.parsed,
        best.text,
        tap.usage,
        sessions,
        "" if best.reason == _LANGUAGE else best.reason,
        best.failure,
        tap.model,
        seconds,
    )


async def _one_session(
    task: AgentTask, runtime: Runtime, parse: Parser[P], tap: _Tap, left_s: float
) -> _Session[P]:
    try:
        async with asyncio.timeout(None if left_s == float("inf") else left_s):
            result = await runtime.run(task, tap)
    except JobError:
        raise
    except TimeoutError:
        return _Session(parse("", FinishReason.ERROR), "", "timeout")
    except Exception as error:
        if tap.error is error:
            raise
        # A defect of ours in one session is that session's failure, not the whole run's.
        return _Session(parse("", FinishReason.ERROR), "", f"internal_{type(error).__name__}")
    parsed = parse(result.text, result.finish)
    if result.error is not None:
        return _Session(parsed, result.text, result.error.kind.value, result.error)
    return _Session(parsed, result.text, _reason(parsed, result.finish))


_LANGUAGE = "language"
_REMEDIED = frozenset({"length", "malformed", "incomplete", _LANGUAGE})


def _reason(parsed: Parsed, finish: FinishReason) -> str:
    if parsed.outcome is ParseOutcome.OK:
        return _LANGUAGE if parsed.other_language else ""
    if finish is FinishReason.LENGTH:
        return "length"
    return "malformed" if parsed.outcome is ParseOutcome.FAILED else "incomplete"


def _following(
    task: AgentTask, session: _Session[P], tried: set[str], left_s: float, minimum_left_s: float
) -> AgentTask | None:
    """The task to run next, or None when the answer stands. Each remedy is tried once."""
    if session.reason not in _REMEDIED - tried or left_s < minimum_left_s:
        return None
    tried.add(session.reason)
    limits = replace(task.limits, timeout_s=left_s)
    if session.reason == "length":
        more = replace(limits, max_output_tokens=limits.max_output_tokens * MORE_ROOM)
        return replace(task, prompt=f"{task.prompt}\n{note('truncated')}\n", limits=more)
    if session.reason == _LANGUAGE:
        return replace(task, prompt=f"{task.prompt}\n{note('other_language')}\n", limits=limits)
    problem = untrusted("; ".join(session.parsed.problems)[:500])
    prompt = f"{task.prompt}\n{note('malformed', problem=problem)}\n"
    return replace(task, prompt=prompt, limits=limits)
