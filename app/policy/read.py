"""The policy of a repository as git holds it."""

from __future__ import annotations

from app.domain.policy import POLICY_PATH
from app.git.mirror import Repository
from app.policy.load import EffectivePolicy, effective_policy

_OLDER_POLICIES = 20
"""So many earlier versions of a broken file are looked at for the last valid one."""


async def read_policy(repository: Repository, branch: str) -> EffectivePolicy:
    """The policy on a branch; a file that can't be used falls back to its last valid version."""
    tip = await repository.resolve(branch)
    text = await repository.tree(tip).read(POLICY_PATH)
    found = effective_policy(text, None)
    if found.problem is None:
        return found
    for commit in (await repository.history(tip, POLICY_PATH, limit=_OLDER_POLICIES))[1:]:
        older = await repository.tree(commit).read(POLICY_PATH)
        if older is not None and effective_policy(older, None).problem is None:
            return effective_policy(text, older)
    return found
