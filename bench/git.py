"""How long git's part of a review takes, beside plain git on the same repository.

    .venv/bin/python bench/git.py [--runs 15] [--files 5000] [--folder DIR]

Prints one row per scenario: the median milliseconds of Mergeward and of plain git, run by turns, so
that a busy machine is busy for both, and the median of the ratios of each turn. Exit code 1 if a
promise is broken: a pull request ready for `direct` in 150 ms on a warm mirror, a checkout in 1.2
times what `git worktree add` takes. `--folder` puts the repositories on another disk.
"""

# ruff: noqa: S603, S607, T201 - a program that starts programs and prints
from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.git.mirror import Mirrors, Repository  # noqa: E402 - found below ROOT
from app.git.process import Remote  # noqa: E402
from app.git.worktrees import checkout  # noqa: E402

CHANGED = 10
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """`ours` and `plain` give seconds. A bound of None is measured only."""

    name: str
    ours: Callable[[int], Awaitable[float]]
    plain: Callable[[int], float]
    milliseconds: float | None = None
    ratio: float | None = None


class Bench:
    """A repository with a pull request a turn, our mirror of it, and a plain bare clone."""

    def __init__(self, folder: Path, files: int, turns: int) -> None:
        self._folder = folder
        self._origin = folder / "origin.git"
        self._clone = folder / "clone.git"
        self._base, self._heads = _fill(self._origin, files, turns + 1)
        self._remote = Remote(self._origin.as_uri())
        self._mirrors = Mirrors(folder / "mirrors", 10**12)
        self._mirror: Repository | None = None
        _git("clone", "--quiet", "--bare", self._remote.url, str(self._clone), cwd=folder)

    async def warm(self) -> None:
        """What a first review leaves behind: the mirror, and the contents of one commit."""
        await self.ready(0)
        self.ready_plainly(0)
        await self.check_out(0)
        self.check_out_plainly(0)

    def scenarios(self) -> tuple[Scenario, ...]:
        """Everything that is measured."""
        return (
            Scenario(
                "pull request ready for direct", self.ready, self.ready_plainly, milliseconds=150
            ),
            Scenario("checkout, made", self.check_out, self.check_out_plainly, ratio=1.2),
            Scenario("checkout, made and removed", self.check_out_wholly, self.add_and_remove),
        )

    async def ready(self, turn: int) -> float:
        """From the job's facts to the diff and the first file read: a head never seen before."""
        started = time.perf_counter()
        head = self._heads[turn]
        mirror = await self._mirrors.ready(
            1, self._remote, branches=["main"], pulls=[turn + 1], commits=[self._base, head]
        )
        base = await mirror.merge_base(self._base, head)
        diff = await mirror.diff(base, head)
        content = await mirror.tree(head).read(diff.files[0].path)
        took = time.perf_counter() - started
        if len(diff.files) != CHANGED or not content:
            raise SystemExit("the mirror did not give the change")
        self._mirror = mirror
        return took

    def ready_plainly(self, turn: int) -> float:
        """The same questions to a whole clone."""
        started = time.perf_counter()
        head = self._heads[turn]
        spec = f"+refs/pull/{turn + 1}/head:refs/pull/{turn + 1}/head"
        branch = "+refs/heads/main:refs/heads/main"
        _git("fetch", "--quiet", "--no-tags", "origin", branch, spec, cwd=self._clone)
        base = _git("merge-base", self._base, head, cwd=self._clone).decode().strip()
        _git("diff", base, head, cwd=self._clone)
        first = _git("diff", "--name-only", base, head, cwd=self._clone).split(b"\n")[0].decode()
        _git("show", f"{head}:{first}", cwd=self._clone)
        return time.perf_counter() - started

    async def check_out(self, turn: int) -> float:
        """Until the files are on disk."""
        return (await self._check_out())[0]

    async def check_out_wholly(self, turn: int) -> float:
        """Until they are gone again."""
        return (await self._check_out())[1]

    async def _check_out(self) -> tuple[float, float]:
        if self._mirror is None:
            raise SystemExit("there is no mirror yet")
        started = time.perf_counter()
        async with checkout(self._mirror, self._heads[0], self._folder / "work"):
            made = time.perf_counter() - started
        return made, time.perf_counter() - started

    def check_out_plainly(self, turn: int) -> float:
        took = self._add()
        self._remove()
        return took

    def add_and_remove(self, turn: int) -> float:
        return self._add() + self._remove()

    def _add(self) -> float:
        started = time.perf_counter()
        where = str(self._folder / "plain")
        _git("worktree", "add", "--quiet", "--detach", where, self._heads[0], cwd=self._clone)
        return time.perf_counter() - started

    def _remove(self) -> float:
        started = time.perf_counter()
        _git("worktree", "remove", "--force", str(self._folder / "plain"), cwd=self._clone)
        return time.perf_counter() - started


async def measure(bench: Bench, runs: int) -> bool:
    """Print the table; whether the promises hold."""
    await bench.warm()
    kept = True
    print(f"{'':32}{'bound':>10}{'ours':>8}{'plain':>8}   (median milliseconds){'ratio':>9}")
    for scenario in bench.scenarios():
        pairs = []
        for turn in range(1, runs + 1):
            if turn % 2:  # neither always comes second
                ours, plain = await scenario.ours(turn), scenario.plain(turn)
            else:
                plain, ours = scenario.plain(turn), await scenario.ours(turn)
            pairs.append((ours, plain))
        kept &= _row(scenario, pairs)
    return kept


def _row(scenario: Scenario, pairs: Sequence[tuple[float, float]]) -> bool:
    ours = statistics.median(pair[0] for pair in pairs) * 1000
    plain = statistics.median(pair[1] for pair in pairs) * 1000
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    held = ours <= (scenario.milliseconds or ours) and ratio <= (scenario.ratio or ratio)
    bound = f"{scenario.milliseconds:.0f} ms" if scenario.milliseconds else "-"
    bound = f"{scenario.ratio:.1f} x" if scenario.ratio else bound
    print(
        f"{scenario.name:32}{bound:>10}{ours:8.1f}{plain:8.1f}{ratio:33.2f}"
        f"   {'' if held else 'over its bound'}",
        flush=True,
    )
    return held


def _fill(path: Path, files: int, pulls: int) -> tuple[str, list[str]]:
    """A bare repository: a commit of that many files, and pull requests that change ten each."""
    path.mkdir(parents=True)
    _git("init", "--quiet", "--bare", "--initial-branch=main", ".", cwd=path)
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        _git("config", name, "true", cwd=path)
    parts = [_commit("refs/heads/main", 1, None)]
    parts += [_file(number, _text(number, 60)) for number in range(files)]
    parts.append("\nget-mark :1\n")
    for pull in range(pulls):
        parts.append(_commit(f"refs/pull/{pull + 1}/head", pull + 2, 1))
        changed = range(pull * CHANGED, (pull + 1) * CHANGED)
        parts += [_file(number % files, _text(-pull, 80)) for number in changed]
        parts.append(f"\nget-mark :{pull + 2}\n")
    out = _git("fast-import", "--quiet", cwd=path, stdin="".join(parts).encode()).decode().split()
    return out[0], out[1:]


def _commit(ref: str, mark: int, parent: int | None) -> str:
    head = f"commit {ref}\nmark :{mark}\ncommitter A <a@example.com> {mark} +0000\ndata 1\nm\n"
    return head + (f"from :{parent}\n" if parent else "")


def _file(number: int, text: str) -> str:
    path = f"src/package{number % 250:03}/part{number // 250:02}/module{number}.py"
    return f"M 100644 inline {path}\ndata {len(text)}\n{text}\n"


def _text(number: int, lines: int) -> str:
    return "".join(f"line {line} of module {number}\n" for line in range(lines))


def _git(*arguments: str, cwd: Path, stdin: bytes | None = None) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, env=ENVIRONMENT, input=stdin, capture_output=True, check=True
    ).stdout


def main() -> int:
    """Measure, and say by the exit code whether the promises hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=15, help="turns per scenario")
    parser.add_argument("--files", type=int, default=5_000, help="files of the repository")
    parser.add_argument("--folder", type=Path, help="where the repositories are made")
    arguments = parser.parse_args()
    if arguments.folder is not None and not arguments.folder.is_dir():
        parser.error(f"--folder {arguments.folder} is no folder: make it first")
    folder = Path(tempfile.mkdtemp(prefix="mergeward-bench-", dir=arguments.folder))
    try:
        bench = Bench(folder, arguments.files, arguments.runs)
        return 0 if asyncio.run(measure(bench, arguments.runs)) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
