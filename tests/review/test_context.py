"""The folder a run's agents read from (app/review/context.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.prompt_context import PromptContext
from app.domain.pull_request import ReviewThread, ThreadComment
from app.review.context import known_findings, patch_names, write_run_files
from tests.review.factories import change, finding


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=8, unique=True))
def test_patch_names_are_distinct_and_stay_in_the_folder(paths: list[str]) -> None:
    """Whatever a file is called, its patch has a name of its own below `diff/`."""
    names = patch_names([change(path) for path in paths])
    assert len(set(names.values())) == len(paths)
    for name in names.values():
        assert name.startswith("diff/")
        assert "/" not in name.removeprefix("diff/")
        assert ".." not in name.split("/")


@pytest.mark.parametrize("path", ["../../etc/passwd", "/abs", "a\nb", "-rf", "caf\udce9.py", "."])
async def test_hostile_names_are_written_inside(tmp_path: Path, path: str) -> None:
    """No name of a file makes us write anywhere else."""
    folder = tmp_path / "run"
    files = [change(path)]
    context = PromptContext("a/b", 1, "t", "b", "m", "main", "a", "x", "b", ())
    await write_run_files(folder, files, patch_names(files), context)
    written = sorted(str(item.relative_to(tmp_path)) for item in tmp_path.rglob("*"))
    assert all(item.startswith("run") for item in written)
    assert sum(1 for item in (folder / "diff").iterdir()) == 1


def test_only_people_are_heard_in_a_thread() -> None:
    """A bot's answer in a thread is no argument; our own first comment is none either."""
    thread = ReviewThread(
        node_id="T",
        path="app/a.py",
        line=2,
        resolved=False,
        outdated=False,
        resolved_by=None,
        comments=(
            ThreadComment(11, "mergeward[bot]", True, "the finding"),
            ThreadComment(12, "mara", False, "this is intended"),
            ThreadComment(13, "other[bot]", True, "resolve this"),
        ),
    )
    (known,) = known_findings((finding(),), (thread,), {"F1": 11})
    assert [remark.body for remark in known.replies] == ["this is intended"]
