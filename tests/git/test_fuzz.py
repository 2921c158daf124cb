"""The fuzzing of the diff reader and of anchors runs, and notices what is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("subject", ["diff", "anchors"])
def test_a_short_run_finds_nothing(subject: str) -> None:
    """It says how many inputs were tried, and ends well."""
    done = subprocess.run(
        [sys.executable, "bench/fuzz.py", subject, "--iterations", "60", "--seed", "5"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    tried = re.match(rf"{subject}: ([\d,]+) iterations, ([\d,]+) checks, 0 problems", done.stdout)
    assert tried is not None, done.stdout
    assert int(tried[1].replace(",", "")) >= 60
    assert int(tried[2].replace(",", "")) > 100
