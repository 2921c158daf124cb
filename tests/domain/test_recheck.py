"""The merged tree decides whether a finding is still there (app/domain/recheck.py)."""

from __future__ import annotations

import pytest

from app.domain.recheck import still_there


@pytest.mark.parametrize(
    ("code", "merged", "there"),
    [
        pytest.param("x = eval(s)", b"import os\nx = eval(s)\n", True, id="unchanged"),
        pytest.param("  x = eval(s)", b"if s:\n        x = eval(s)\r\n", True, id="re-indented"),
        pytest.param("x = eval(s)", b"x = parse(s)\n", False, id="rewritten"),
        pytest.param("eval(s)", b"# never eval(s)\n", False, id="part-of-another-line"),
        pytest.param("x = eval(s)", None, False, id="file-gone"),
        pytest.param("", b"anything\n", True, id="whole-file"),
        pytest.param("", None, False, id="whole-file-gone"),
        pytest.param("caf\udce9", b"caf\xe9\n", True, id="not-utf-8"),
    ],
)
def test_still_there(code: str, merged: bytes | None, there: bool) -> None:
    """Only a line that stands in the merged file keeps its finding."""
    assert still_there(code, merged) is there
