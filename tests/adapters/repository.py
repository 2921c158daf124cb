"""A pull request's two trees as a repository, read by the pipeline's own gathering."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.domain.policy import POLICY_PATH, Policy
from app.git.mirror import Mirrors
from app.git.process import Remote
from app.policy.paths import instructions_for
from app.policy.read import read_policy
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


async def rules(tmp_path: Path, head: Mapping[str, str]) -> tuple[str, ...]:
    """What agents are told to obey in a change that adds these files.

    Both sides have a policy; "base" and "head" stand for what each says.
    """
    repo = BareRepo.create(tmp_path / "rules.git")
    base = repo.commit({POLICY_PATH: b"instructions: base\n"})
    added = {path: text.encode() for path, text in head.items()}
    policies = {POLICY_PATH: b"instructions: head\n"}
    repo.commit(added | policies, parent=base, ref="refs/pull/1/head")
    mirrors = Mirrors(tmp_path / "mirrors")
    mirror = await mirrors.ready(1, Remote(repo.url), branches=["main"], pulls=[1])
    policy = (await read_policy(mirror, mirrors.branch_ref("main"))).policy
    return instructions_for(policy, head)
