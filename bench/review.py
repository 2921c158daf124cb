"""What a review costs this machine besides git and the models' own time.

    .venv/bin/python bench/review.py [--runs 10] [--in-flight 300]

Real pipeline, ledger (SQLite), git and HTTP; the forge is in memory, and the model is a process of
its own that thinks 0.2 s a call (`bench/model_double.py`). Prints, per full-tier review: wall time
less the longest chain of model calls, CPU seconds of this process, and for scale the CPU of a bare
pydantic-ai agent with as many model calls; then the memory with many reviews in flight. Exit code 1
if a bound is missed.
"""

# ruff: noqa: S603, S310, T201 - a program that starts a program of ours, asks it, and prints
from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.domain.jobs import JobKind
from app.jobs.worker import WorkerOptions
from app.plugins.runtimes import OneRuntime
from app.store.migrate import upgrade
from app.store.session import open_store
from bench.staff import everybody
from tests.review.story import BASE, Story, open_story

DOUBLE = Path(__file__).resolve().with_name("model_double.py")
OVERHEAD_S = 0.3
CPU_S = 0.25
MEMORY_MIB = 1536
DELAY_S = 0.2
FILES = 12
"""Changed files of the pull request; with 40 lines each it is of the full tier."""


@dataclass(frozen=True, slots=True)
class Model:
    """A running model double."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def calls(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/calls") as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def runtime(self) -> DirectRuntime:
        key = "a-key-of-the-benchmark"
        return DirectRuntime([ProviderSettings("anthropic", WireFormat.ANTHROPIC, key, self.url)])


@contextmanager
def model(delay: float, hold: int = 0) -> Iterator[Model]:
    """A model double of its own, ended with the block."""
    command = (sys.executable, str(DOUBLE))
    options = ("--delay", str(delay), "--hold", str(hold))
    with subprocess.Popen((*command, *options), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield Model(int(process.stdout.readline()))
        finally:
            process.terminate()


def change(number: int) -> dict[str, bytes]:
    """A pull request that every reviewer has something to do in."""
    code = b"".join(b"value_%02d = compute(%d)\n" % (line, line) for line in range(40))
    files = {f"src/part{at:02}.py": b"# %d %d\n%s" % (number, at, code) for at in range(FILES)}
    return {
        **BASE,
        **files,
        "src/auth/login.py": code,
        "CHANGELOG.md": b"# Changes\n\n## 1.1\n\n- Faster.\n",
        "AGENTS.md": b"# Rules\n\nRun `make test`.\n",
    }


@dataclass(frozen=True, slots=True)
class Cost:
    """One review, in seconds. `chain` is the longest chain of model calls."""

    wall: float
    chain: float
    cpu: float
    calls: int

    @property
    def overhead(self) -> float:
        return self.wall - self.chain


async def one_by_one(folder: Path, runs: int) -> list[Cost]:
    """Reviews of pull requests, one after the other; the first two only warm up."""
    with model(DELAY_S) as double:
        async with double.runtime() as runtime:
            story = await _story(folder, runtime)
            costs = []
            for number in range(1, runs + 3):
                story.number = number
                story.open_pull(change(number), number=number)
                await story.ask()
                before = double.calls()["seconds"]
                wall, cpu = time.perf_counter(), time.process_time()
                await story.work()
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                costs.append(_cost(before, double.calls()["seconds"], wall, cpu))
            await _all_done(story, runs + 2)
            await story.store.close()
    return costs[2:]


def _cost(
    before: dict[str, list[float]], after: dict[str, list[float]], wall: float, cpu: float
) -> Cost:
    spent = {agent: seconds[len(before.get(agent, ())) :] for agent, seconds in after.items()}
    own = sum(spent.pop("coordinator"))
    chain = own + max(map(sum, spent.values()))
    return Cost(wall, chain, cpu, 3 + sum(map(len, spent.values())))


async def side_by_side(folder: Path, count: int) -> tuple[int, int]:
    """Many reviews at once in this process: (model calls at once, peak of memory in MiB)."""
    reviewers = len((await _tried(folder / "tried")) - {"coordinator"})
    with model(DELAY_S, hold=count * reviewers) as double:
        async with double.runtime() as runtime:
            story = await _story(folder / "many", runtime)
            for number in range(1, count + 1):
                story.open_pull(change(number), number=number)
                await story.ask()
            await story.work(WorkerOptions(concurrency=count, per_installation=count))
            await _all_done(story, count)
            await story.store.close()
        return double.calls()["most"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def _tried(folder: Path) -> set[str]:
    """Which agents a review has."""
    with model(0.0) as double:
        async with double.runtime() as runtime:
            story = await _story(folder, runtime)
            story.open_pull(change(1), number=1)
            await story.review()
            await story.store.close()
        return set(double.calls()["seconds"])


async def _story(folder: Path, runtime: DirectRuntime) -> Story:
    await asyncio.to_thread(folder.mkdir, parents=True)
    url = f"sqlite+aiosqlite:///{folder / 'ledger.db'}"
    await asyncio.to_thread(upgrade, url)
    story = await open_story(open_store(url), folder)
    plugins = await asyncio.to_thread(everybody, folder, "anthropic")
    story.services = replace(story.services, runtimes=OneRuntime(runtime), plugins=plugins)
    return story


async def _all_done(story: Story, count: int) -> None:
    """A review that was not whole says nothing about what a review costs."""
    jobs = await story.jobs(JobKind.REVIEW_PULL_REQUEST)
    runs = await story.runs()
    whole = [run for run in runs if run.state == "done" and not run.incomplete]
    if len(whole) != count:
        states = sorted({f"{run.state}: {run.reason} {run.incomplete}" for run in runs})
        raise SystemExit(f"only {len(whole)} of {count} reviews were whole: {states} {len(jobs)}")


async def bare_agents(agents: int) -> float:
    """CPU seconds of so many bare pydantic-ai agents of three model calls each."""
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    with model(DELAY_S) as double:
        client = AsyncAnthropic(api_key="k", base_url=double.url, max_retries=0)
        provider = AnthropicProvider(anthropic_client=client)

        def make() -> Agent[None, str]:
            agent = Agent(AnthropicModel("claude-sonnet-4-6", provider=provider))
            agent.tool_plain(name="read_patch")(_read_patch)
            agent.tool_plain(name="grep")(_grep)
            return agent

        async def run() -> None:
            async with make().run_stream('Review <file path="a.py">') as result:
                await result.get_output()

        await run()
        before = time.process_time()
        await asyncio.gather(*(run() for _ in range(agents)))
        spent = time.process_time() - before
        await client.close()
    return spent


async def _read_patch(path: str) -> str:
    return "+value = 1\n" * 40


async def _grep(pattern: str) -> str:
    return "a.py:1: value\n" * 40


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--in-flight", type=int, default=300, help="0 leaves it out")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("--runs must be at least 1")
    with tempfile.TemporaryDirectory(prefix="mergeward-bench-") as folder:
        kept = _print_costs(asyncio.run(one_by_one(Path(folder) / "one", arguments.runs)))
        if arguments.in_flight:
            most, memory = asyncio.run(side_by_side(Path(folder), arguments.in_flight))
            kept &= _row(
                f"memory, {arguments.in_flight} reviews ({most} model calls at once)",
                memory, MEMORY_MIB, "MiB",
            )  # fmt: skip
    return 0 if kept else 1


def _print_costs(costs: list[Cost]) -> bool:
    agents = costs[0].calls // 3
    bare = asyncio.run(bare_agents(agents))
    print(f"a full-tier review: {agents} agents, {costs[0].calls} model calls of {DELAY_S} s")
    overhead = statistics.median(cost.overhead for cost in costs)
    cpu = statistics.median(cost.cpu for cost in costs)
    chain = statistics.median(cost.chain for cost in costs)
    print(f"  longest chain of model calls     {chain * 1000:8.0f} ms")
    kept = _row("wall time beyond it, median", overhead * 1000, OVERHEAD_S * 1000, "ms")
    print(f"  the worst of {len(costs):<3}                  "
          f"{max(cost.overhead for cost in costs) * 1000:8.0f} ms")  # fmt: skip
    kept &= _row("CPU of this process, median", cpu * 1000, CPU_S * 1000, "ms")
    print(f"  CPU of {agents} bare pydantic-ai agents  {bare * 1000:8.0f} ms")
    print(f"  a review by that                 {cpu / bare:8.2f} x")
    return kept


def _row(what: str, figure: float, bound: float, unit: str) -> bool:
    kept = figure <= bound
    print(f"  {what:32} {figure:8.0f} {unit}   (<= {bound:.0f}: {'ok' if kept else 'MISSED'})")
    return kept


if __name__ == "__main__":
    sys.exit(main())
