"""A pull request's two trees as a repository, read by the pipeline's own gathering."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.domain.policy import Policy
from app.review.filter import FilterResult, filter_files
from app.review.source import file_facts, open_source
from tests.git.repos import BareRepo

Texts = Mapping[str, str | None]


async def filtered(tmp_path: Path, base: Texts, head: Texts) -> FilterResult:
    """What the filter says of the change from `base` to `head`; a text of None: no such file."""
    repo = BareRepo.create(tmp_path / "repo.git")
    trees = [
        {path: text.encode() for path, text in side.items() if text is not None}
        for side in (base, head)
    ]
    commits = repo.commits(trees)
    source = await open_source(repo.repository, *commits)
    return filter_files(await file_facts(source, Policy()))
