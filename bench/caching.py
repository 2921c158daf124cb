"""What of the reviewers' prompts the providers' caches hold, and what a naive layout would cost.

    .venv/bin/python bench/caching.py

A pull request of the full tier is reviewed cold, again two minutes later (after a push), and again
twenty minutes after that, in both wire formats; the model server counts as the providers publish
it. The naive variant puts the whole diff and the shared context into each prompt and caches
nothing. Real pipeline, ledger, git and HTTP; the clock of the caches is moved by hand. Exit code 1
if a bound is missed.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.agents.port import AgentResult, AgentTask, EventSink, Runtime, ignore_events
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.plugins.runtimes import OneRuntime
from app.sandbox.model import ModelServer, load_scenario
from app.sandbox.model.service import RecordedCall
from app.store.migrate import upgrade
from app.store.session import open_store
from bench.staff import everybody
from tests.review.story import BASE, Story, open_story

KEY = "a-key-of-the-benchmark"
CACHED = 0.85
NAIVE = 0.25
MINUTE = 60.0
FILES, LINES = 12, 120


@dataclass(slots=True)
class Time:
    """The clock of the caches."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Tokens:
    """Input tokens of one review: at full price, written to the cache, read from it."""

    calls: int
    fresh: int
    written: int
    read: int

    @property
    def all(self) -> int:
        return self.fresh + self.written + self.read

    @property
    def cached(self) -> float:
        return self.read / self.all

    @classmethod
    def of(cls, calls: Sequence[RecordedCall]) -> Tokens:
        return cls(
            len(calls),
            sum(call.input_tokens for call in calls),
            sum(call.cache_write_tokens for call in calls),
            sum(call.cache_read_tokens for call in calls),
        )


class Naive:
    """A runtime that puts the whole diff and the shared context into each prompt."""

    def __init__(self, runtime: Runtime, runs: Path) -> None:
        self._runtime, self._runs = runtime, runs

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        texts = await asyncio.to_thread(self._texts)
        return await self._runtime.run(replace(task, prompt=f"{texts}\n{task.prompt}"), on_event)

    def _texts(self) -> str:
        newest = max(self._runs.iterdir(), key=lambda folder: int(folder.name))
        files = sorted(path for path in newest.rglob("*") if path.suffix in (".patch", ".txt"))
        return "\n".join(path.read_text("utf-8", "replace") for path in files)


def tree(version: int) -> dict[str, bytes]:
    """The head after so many pushes: each push adds one line to one file."""
    code = b"".join(
        b"    total_%03d = price(item_%03d) * rate(%d)  # as agreed\n" % (n, n, n)
        for n in range(LINES)
    )
    files = {f"src/part{at:02}.py": b"def part_%02d():\n%s" % (at, code) for at in range(FILES)}
    pushed = b"".join(b"extra_%d = %d\n" % (n, n) for n in range(version))
    return {
        **BASE,
        **files,
        "src/auth/login.py": b"def login(name):\n" + code,
        "src/late.py": b"first = 1\n" + pushed,
        "CHANGELOG.md": b"# Changes\n\n## 1.1\n\n- Faster.\n",
        "AGENTS.md": b"# Rules\n\nRun `make test`.\n",
    }


async def reviews(wire: WireFormat, *, naive: bool = False) -> list[Tokens]:
    """The same pull request, cold, after two minutes, and after twenty more."""
    time = Time()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mergeward-bench-")))
        scenario = load_scenario("review").model_copy(update={"search": "def login"})
        server = await stack.enter_async_context(ModelServer(scenario, api_key=KEY, monotonic=time))
        url = server.url if wire is WireFormat.ANTHROPIC else f"{server.url}/v1"
        provider = ProviderSettings(wire.value, wire, KEY, url)
        runtime = await stack.enter_async_context(DirectRuntime([provider]))
        story = await _story(folder, wire, runtime, naive=naive)
        found = []
        for version, pause in enumerate((0.0, 2 * MINUTE, 20 * MINUTE)):
            time.now += pause
            before = len(server.calls)
            if version == 0:
                story.open_pull(tree(0))
                await story.review()
            else:
                story.push(tree(version))
                await story.review(action="synchronize")
            found.append(Tokens.of(server.calls[before:]))
        runs = await story.runs()
        if any(run.state != "done" or run.incomplete for run in runs):
            raise SystemExit(
                f"not whole: {[(run.state, run.reason, run.incomplete) for run in runs]}"
            )
        await story.store.close()
    return found


async def _story(folder: Path, wire: WireFormat, runtime: Runtime, *, naive: bool) -> Story:
    url = f"sqlite+aiosqlite:///{folder / 'ledger.db'}"
    await asyncio.to_thread(upgrade, url)
    story = await open_story(open_store(url), folder)
    chosen = Naive(runtime, story.services.runs) if naive else runtime
    story.services = replace(
        story.services,
        runtimes=OneRuntime(chosen),
        plugins=await asyncio.to_thread(everybody, folder, wire.value),
    )
    return story


def main() -> int:
    kept = True
    print(f"{'':34}{'calls':>6}{'full price':>12}{'written':>10}{'read':>10}{'cached':>8}")
    for wire in WireFormat:
        naive = asyncio.run(reviews(wire, naive=True))[0]
        ours = asyncio.run(reviews(wire))
        for name, tokens in zip(("cold", "after 2 minutes", "after 20 more"), ours, strict=True):
            _row(f"{wire.value}, {name}", tokens)
        everything = replace(naive, fresh=naive.all, written=0, read=0)
        _row(f"{wire.value}, naive, cold", everything)
        share = ours[1].cached
        kept &= _bound("cached after 2 minutes", share, CACHED, at_least=True)
        paid = (ours[0].fresh + ours[0].written) / naive.all
        kept &= _bound("cold, not read from the cache, of naive", paid, NAIVE, at_least=False)
        print(f"  {'cold, all input tokens, of naive':42}{ours[0].all / naive.all:6.2f}")
    return 0 if kept else 1


def _row(name: str, tokens: Tokens) -> None:
    print(
        f"{name:34}{tokens.calls:6}{tokens.fresh:12,}{tokens.written:10,}{tokens.read:10,}"
        f"{tokens.cached:8.1%}"
    )


def _bound(name: str, figure: float, bound: float, *, at_least: bool) -> bool:
    kept = figure >= bound if at_least else figure <= bound
    sign = ">=" if at_least else "<="
    print(f"  {name:42}{figure:6.2f}   ({sign} {bound}: {'ok' if kept else 'MISSED'})")
    return kept


if __name__ == "__main__":
    sys.exit(main())
