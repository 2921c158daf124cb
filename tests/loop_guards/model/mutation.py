"""How good are the tests of the guards? Changes `loop_guards` one small mistake at a time and runs
the tests on each: a mistake that no test notices has survived. `make mutants` runs it.

The known tools change the bodies of functions; here the tables are the rules (which guard comes
first, which event moves which state), so rows, their order, members of enums and defaults are
changed too. Each mutant is tried in a child process that imports the changed module instead of the
one on disk; nothing is written.

Left alone, since a change there is none of behaviour: docstrings, annotations and type aliases,
imports and `__all__`, `slots` and `kw_only`, `@cache`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.util
import io
import os
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from tests.loop_guards.mutants import Mutant, enum_members, mutants_of

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "loop_guards"
TESTS = ROOT / "tests" / "loop_guards"
REASONS = ROOT / "docs" / "mutation.md"
CPU_SECONDS = 30
"""A mutant that needs more than this loops; the whole run needs about ten."""

# Tests of files, of time and of other processes say nothing about a mutant that is in memory.
LEFT_OUT = (
    "test_the_product_uses_the_public_surface_alone",
    "test_two_hundred_findings_are_decided_quickly",
    "test_the_guards_run_without_anything_installed",
    "test_the_guards_import_only_themselves_and_the_standard_library",
)
# The file whose tests are about a module is run first, so that most mutants end early.
FIRST = {
    "actors": "test_actors",
    "bound": "test_bound",
    "budget": "test_budget",
    "closing": "test_closing",
    "coalesce": "test_closing",
    "convergence": "test_verdicts",
    "dismissal": "test_human_answers",
    "evidence": "test_evidence",
    "handoff": "test_handoff",
    "lifecycle": "test_lifecycle",
    "orders": "test_orders",
    "pingpong": "test_progress",
    "progress": "test_progress",
    "reviewing": "test_reviewing",
    "rounds": "test_rounds",
    "rubric": "test_verdicts",
    "stopping": "test_human_answers",
    "threads": "test_evidence",
    "unqueue": "test_human_answers",
}


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module of the package as the mutant says, all others from disk."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = f"loop_guards.{mutant.module}"
        self._code = mutant.code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)  # noqa: S102 - a module of ours, changed by one mistake


OPTIONS = (
    *("-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"),
    # The parent has loaded the plugins already.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-k", " and ".join(f"not {name}" for name in LEFT_OUT)),
)


class _TablesFirst:
    """A pytest plugin: properties come last, for a table that fails is quicker."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.get_closest_marker("hypothesis") is not None)


def _test_files() -> list[Path]:
    """What asks everything comes last: the sooner a test fails the better."""
    files = set(TESTS.glob("test_*.py")) - {TESTS / "test_mutants.py"}
    return sorted(files, key=lambda path: (path.stem == "test_totality", path))


def _run_tests(mutant: Mutant | None) -> int:
    """Pytest's exit code; the process is spoilt afterwards."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    first = "test_decisions"
    if mutant is not None:
        sys.meta_path.insert(0, _Changed(mutant))
        first = FIRST.get(mutant.module, first)
    files = _test_files()
    for part in ([p for p in files if p.stem == first], [p for p in files if p.stem != first]):
        code = pytest.main([*OPTIONS, *map(str, part)], [_TablesFirst()]) if part else 0
        if code:
            return int(code)
    return 0


def _be_quiet() -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def _start(mutant: Mutant | None) -> int:
    child = os.fork()
    if child == 0:
        code = 3
        try:
            _be_quiet()
            code = _run_tests(mutant)
        finally:
            os._exit(code)
    return child


def _fate(status: int) -> str:
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "killed"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


@dataclass(frozen=True, slots=True)
class Tried:
    mutant: Mutant
    fate: str


def try_all(mutants: Sequence[Mutant], jobs: int) -> Iterator[Tried]:
    """Each mutant with its fate, as they end; at most `jobs` at a time."""
    running: dict[int, Mutant] = {}
    left = iter(mutants)
    while True:
        while len(running) < jobs and (mutant := next(left, None)) is not None:
            running[_start(mutant)] = mutant
        if not running:
            return
        child, status = os.wait()
        yield Tried(running.pop(child), _fate(status))


def explained() -> dict[str, str]:
    """Survivors that docs/mutation.md gives a reason for, by their label."""
    rows = re.findall(r"^- `(.+)`: (.+)$", REASONS.read_text("utf-8"), flags=re.MULTILINE)
    return dict(rows)


def all_mutants(modules: Sequence[str]) -> list[Mutant]:
    sources = {
        path.stem: path.read_text("utf-8")
        for path in sorted(PACKAGE.glob("*.py"))
        if path.stem != "__init__"
    }
    members = enum_members(sources.values())
    wanted = {name: text for name, text in sources.items() if not modules or name in modules}
    return [mutant for name, text in wanted.items() for mutant in mutants_of(name, text, members)]


def _warm_up() -> None:
    """What every child needs is imported once."""
    hypothesis.settings.register_profile(
        "mutation",
        max_examples=25,  # for speed: the same few inputs for every mutant
        derandomize=True,
        database=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )
    hypothesis.settings.load_profile("mutation")
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", *OPTIONS, *map(str, _test_files())])
    for name in [name for name in sys.modules if name.split(".")[0] in ("loop_guards", "tests")]:
        if "mutation" not in name and "mutants" not in name:
            del sys.modules[name]


def _be_green() -> None:
    """Without a mutant the tests pass: else each of them would seem to be caught."""
    begun = time.monotonic()
    _, status = os.waitpid(_start(None), 0)
    if status:
        raise SystemExit("the tests fail without any mutant: repair them first")
    _say(f"the tests are green without a mutant ({time.monotonic() - begun:.0f} s)")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("modules", nargs="*", help="modules of loop_guards; all if none is named")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    chosen = parser.parse_args()
    there = {path.stem for path in PACKAGE.glob("*.py")}
    if unknown := sorted(set(chosen.modules) - there):
        parser.error(f"loop_guards has no module {', '.join(unknown)}")
    mutants = all_mutants(chosen.modules)
    _warm_up()
    _be_green()
    begun = time.monotonic()
    tried = []
    for number, each in enumerate(try_all(mutants, chosen.jobs), 1):
        tried.append(each)
        if each.fate != "killed":
            _say(f"{each.fate}: {each.mutant.label}")
        if number % 50 == 0:
            _say(f"{number} of {len(mutants)}, {time.monotonic() - begun:.0f} s")
    seconds = time.monotonic() - begun
    _be_green()  # still: somebody may have worked on them meanwhile
    return _report(tried, seconds)


def _report(tried: Sequence[Tried], seconds: float) -> int:
    """Prints score and survivors; 1 unless exactly the explained ones survive."""
    modules = {each.mutant.module for each in tried}
    known = {label for label in explained() if label.partition(":")[0].split(".")[0] in modules}
    survivors = {each.mutant.label for each in tried if each.fate == "survived"}
    fates = Counter(each.fate for each in tried)
    score = (len(tried) - len(survivors)) / max(1, len(tried))
    _say(f"{len(tried)} mutants in {seconds:.0f} s, {score:.1%} caught: {dict(fates)}")
    for title, labels in (
        ("survived, explained in docs/mutation.md", survivors & known),
        ("survived, not explained", survivors - known),
        ("explained, but caught or gone", known - survivors),
    ):
        _say("\n".join((f"{len(labels)} {title}", *(f"- `{label}`: " for label in sorted(labels)))))
    return int(survivors != known)


if __name__ == "__main__":
    sys.exit(main())
