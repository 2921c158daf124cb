"""Throws random input at a parser and compares what it says with somebody else's word.

    .venv/bin/python bench/fuzz.py diff|anchors --iterations 20000 [--seed 1]

Prints how many inputs were tried and, for each kind of problem, the first input that shows it.
Exit code 1 if there is a problem. The same seed tries the same inputs.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT.parent), str(ROOT)]

MODULES = ("fuzz_diff", "fuzz_text")
"""Each has `SUBJECTS`: by name, a function of iterations and seed that gives a `Result`."""


def main() -> int:
    present = [name for name in MODULES if (ROOT / f"{name}.py").is_file()]
    subjects = {
        name: run
        for module in present
        for name, run in importlib.import_module(module).SUBJECTS.items()
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("subject", choices=sorted(subjects))
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.iterations < 1:
        parser.error("--iterations must be at least 1")
    started = time.perf_counter()
    result = subjects[given.subject](given.iterations, given.seed)
    seconds = time.perf_counter() - started
    print(
        f"{given.subject}: {result.iterations:,} iterations, {result.checks:,} checks, "
        f"{len(result.problems)} problems, seed {given.seed}, {seconds:.0f} s"
    )
    for kind, example in result.problems.items():
        print(f"\n{kind}\n{example}")
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
