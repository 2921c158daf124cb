"""Ten minutes of 429 and 503 while reviews go on: what reaches the provider, and what is finished.

    .venv/bin/python bench/brownout.py [--every 10] [--minutes 20]

Real coordinator, reviewers, runtime, SDK, breakers and failback against the sandbox's model server,
all in one process under a clock that jumps to the next timer: the whole drill takes a minute or so.
A review begins every few seconds. From the second to the twelfth minute each request is answered
503 (odd minutes) or 429 with `retry-after: 20` (even ones), first for the first model of each
chain, then for all models. Each drill runs with breakers and without. A review that nobody answered
is taken up again by the rules of the job queue. Exit code 1 if a bound is missed.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import argparse
import asyncio
import itertools
import selectors
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2

from app.agents.breaker import Admission, Breakers, BreakerState, CallOutcome, LocalBreakers
from app.agents.port import AgentErrorKind, AgentEvent, ModelRef, Retrying
from app.agents.prompt_context import ChangedFile, PromptContext
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, Surroundings, WireFormat
from app.agents.workspace import Workspace
from app.control.routing import shipped_routing
from app.domain.runs import AgentName, Tier
from app.errors import AgentError
from app.jobs.retry import Stop, Wait, after_failure
from app.review.conduct import conduct
from app.review.reviewing import Brief, MemoryJournal
from app.sandbox.model.scenario import Fault, FaultKind, Scenario
from app.sandbox.model.service import ModelService
from tests.review.factories import EmptyTree

KEY = "a-key-of-the-drill"
BEGINS_S, ENDS_S = 120.0, 720.0
THINKS_S, REFUSES_S = 5.0, 0.2
GRACE_S = 0.002
"""Real seconds before each jump, for threads that a library starts past the loop."""
REVIEWERS = (AgentName.SECURITY, AgentName.CODE_QUALITY, AgentName.GENERAL)
FACTOR = 10
"""With breakers at most a tenth of the requests that fail without them."""


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting for a timer, the clock is moved to it; threads get a moment before."""

    now = 0.0
    threads = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or self.threads:
            return super().select(timeout if timeout is None else GRACE_S)
        ready = super().select(min(timeout, GRACE_S))
        if not ready and not self.threads:
            self.now += max(timeout, 0.0)
        return ready


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while it, or a thread of its, works."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        self._jumping.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _: object) -> None:
        self._jumping.threads -= 1


@dataclass
class Provider:
    """The model server's faces: healthy, overloaded, and out of patience."""

    browned: frozenset[str]
    clock: Callable[[], float]
    failed: Counter[str] = field(default_factory=Counter)
    answered: int = 0

    def __post_init__(self) -> None:
        self._healthy = self._face(())
        self._unavailable = self._face(_always(FaultKind.UNAVAILABLE))
        self._limiting = self._face(_always(FaultKind.RATE_LIMIT, retry_after=20.0))

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=_Through(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        now = self.clock()
        in_trouble = BEGINS_S <= now < ENDS_S and self._is_browned(await request.aread())
        if not in_trouble:
            await asyncio.sleep(THINKS_S)
            self.answered += 1
            return await self._healthy.handle_async_request(request)
        await asyncio.sleep(REFUSES_S)
        face = self._unavailable if int(now // 60) % 2 else self._limiting
        response = await face.handle_async_request(request)
        self.failed[str(response.status_code)] += 1
        return response

    def _is_browned(self, body: bytes) -> bool:
        return any(f'"{name}"'.encode() in body for name in self.browned)

    def _face(self, faults: tuple[Fault, ...]) -> httpx2.ASGITransport:
        service = ModelService(Scenario(faults=faults), KEY, self.clock)
        return httpx2.ASGITransport(app=service.asgi())


def _always(kind: FaultKind, retry_after: float | None = None) -> tuple[Fault, ...]:
    return (Fault(agent="*", kind=kind, times="always", retry_after=retry_after),)


class _Through(httpx2.AsyncBaseTransport):
    def __init__(self, answer: Callable[[httpx2.Request], Awaitable[httpx2.Response]]) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._answer(request)


class NoBreakers:
    """Lets everything go."""

    async def admit(self, model: ModelRef) -> Admission:
        return Admission(granted=True, period=0)

    async def record(self, model: ModelRef, admission: Admission, outcome: CallOutcome) -> None:
        pass

    async def state(self, model: ModelRef) -> BreakerState:
        return BreakerState()


class CountedBreakers(LocalBreakers):
    """The real ones; `probes` are the calls that went while the breaker was not closed."""

    probes = 0

    async def admit(self, model: ModelRef) -> Admission:
        before = await self.state(model)
        admission = await super().admit(model)
        self.probes += admission.granted and admission.period != before.period
        return admission


@dataclass
class Drill:
    """What came of one run. Seconds are of the fake clock."""

    provider: Provider
    breakers: Breakers
    failbacks: int = 0
    refusals: int = 0
    finished: int = 0
    whole: int = 0
    given_up: int = 0
    longest: float = 0.0

    async def watch(self, event: AgentEvent) -> None:
        if not isinstance(event, Retrying):
            return
        refused = event.failure.kind is AgentErrorKind.BREAKER_OPEN
        self.refusals += refused
        self.failbacks += event.wait_s == 0.0

    async def review(self, runtime: DirectRuntime, number: int) -> None:
        """One review, taken up again as the queue would."""
        clock = asyncio.get_running_loop().time
        began, journal = clock(), MemoryJournal()
        for attempt in itertools.count(1):
            try:
                conducted = await conduct(_brief(number), runtime, journal, self.watch)
            except AgentError as error:
                match after_failure(error, attempt):
                    case Wait(seconds):
                        await asyncio.sleep(seconds)
                        continue
                    case Stop():
                        self.given_up += 1
                        return
            self.finished += 1
            self.whole += not conducted.incomplete
            self.longest = max(self.longest, clock() - began)
            return


def _brief(number: int) -> Brief:
    path = "app/search.py"
    context = PromptContext(
        repository="acme/shop", number=number, title="Search", body="", author="mara",
        base_ref="main", base_sha="a" * 40, head_ref="feature", head_sha="b" * 40,
        changed_files=(ChangedFile(path, "modified", 1, 0, "diff/0001.patch"),),
    )  # fmt: skip
    return Brief(
        context=context,
        workspace=Workspace(tree=EmptyTree()),
        reviewers=REVIEWERS,
        models=models_of,
        known_paths=frozenset({path}),
    )


def models_of(agent: AgentName) -> tuple[ModelRef, ...]:
    chain = shipped_routing("anthropic").chain_for(agent, Tier.FULL)
    return tuple(ModelRef(chain.provider, name) for name in chain.models)


async def drill(browned: frozenset[str], *, guarded: bool, every: float, minutes: float) -> Drill:
    clock = asyncio.get_running_loop().time
    breakers: Breakers = CountedBreakers(clock) if guarded else NoBreakers()
    done = Drill(Provider(browned, clock), breakers)
    around = Surroundings(monotonic=clock, breakers=breakers)
    settings = ProviderSettings("anthropic", WireFormat.ANTHROPIC, KEY, "http://model.test")
    async with DirectRuntime(
        [settings], around=around, http_client=done.provider.client
    ) as runtime:
        await runtime.warm()
        async with asyncio.TaskGroup() as reviews:
            for number in range(1, int(minutes * 60 / every) + 1):
                reviews.create_task(done.review(runtime, number))
                await asyncio.sleep(every)
    return done


def run(browned: frozenset[str], *, guarded: bool, every: float, minutes: float) -> Drill:
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        return runner.run(drill(browned, guarded=guarded, every=every, minutes=minutes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between reviews")
    parser.add_argument("--minutes", type=float, default=20.0, help="how long reviews begin")
    arguments = parser.parse_args()
    agents = (AgentName.COORDINATOR, *REVIEWERS)
    chains = [models_of(agent) for agent in agents]
    first = frozenset(chain[0].name for chain in chains)
    every_model = frozenset(model.name for chain in chains for model in chain)
    kept = True
    for title, browned in (("first models", first), ("all models", every_model)):
        began = time.perf_counter()
        pair = [
            run(browned, guarded=guarded, every=arguments.every, minutes=arguments.minutes)
            for guarded in (True, False)
        ]
        took = time.perf_counter() - began
        total = int(arguments.minutes * 60 / arguments.every)
        print(f"brown-out of {title} ({', '.join(sorted(browned))}); {total} reviews of "
              f"{len(agents)} agents; {took:.0f} s of real time")  # fmt: skip
        kept &= _print(*pair, total)
    return 0 if kept else 1


def _print(with_them: Drill, without: Drill, total: int) -> bool:
    rows: dict[str, Callable[[Drill], object]] = {
        "calls reaching the browned models": lambda d: d.provider.failed.total(),
        "  of them answered 429": lambda d: d.provider.failed["429"],
        "  of them answered 503": lambda d: d.provider.failed["503"],
        "calls answered well": lambda d: d.provider.answered,
        "probes": lambda d: getattr(d.breakers, "probes", "-"),
        "refused by a breaker": lambda d: d.refusals,
        "failbacks to the next model": lambda d: d.failbacks,
        "reviews finished": lambda d: d.finished,
        "  of them whole": lambda d: d.whole,
        "reviews given up": lambda d: d.given_up,
        "longest review (min)": lambda d: f"{d.longest / 60:.1f}",
    }
    print(f"  {'':36} {'breakers':>9} {'without':>9}")
    for name, value in rows.items():
        print(f"  {name:36} {value(with_them)!s:>9} {value(without)!s:>9}")
    spared = with_them.provider.failed.total() * FACTOR <= without.provider.failed.total()
    finished = with_them.finished >= without.finished and with_them.whole >= without.whole
    print(f"  a tenth of the failed calls: {'ok' if spared else 'MISSED'}; "
          f"no review lost by breakers: {'ok' if finished else 'MISSED'} ({total})")  # fmt: skip
    return spared and finished


if __name__ == "__main__":
    sys.exit(main())
