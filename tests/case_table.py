"""How many cases of each category pass: `make cases`, or with a folder of other cases

    MERGEWARD_CASES_DIR=/path/to/cases .venv/bin/python -m tests.case_table

Prints a line per category and each case that fails. Exit code 1 if one does.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO

import pytest

from tests.test_cases import FOLDER, load


class _Outcomes:
    """Listens to a run of pytest: which cases passed."""

    def __init__(self) -> None:
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid.rpartition("[")[2].rstrip("]"))


def main() -> int:
    outcomes = _Outcomes()
    with redirect_stdout(StringIO()):
        pytest.main(["tests/test_cases.py::test_case", "-q", "--tb=no"], plugins=[outcomes])
    totals: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    failed: list[str] = []
    for case in load(FOLDER):
        category = case.file.parent.name
        totals[category] += 1
        if f"{case.kind}-{case.file.stem}" in outcomes.passed:
            passed[category] += 1
        else:
            failed.append(f"{category}/{case.file.stem} ({case.kind})")
    for category, total in sorted(totals.items()):
        print(f"{category:24}{passed[category]:4} of {total}")
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed or not totals else 0


if __name__ == "__main__":
    sys.exit(main())
