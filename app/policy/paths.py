"""What a policy says about single paths. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from app.domain.policy import Policy
from app.policy.globs import selected_by


def ignored_by(policy: Policy, path: str) -> str | None:
    """The glob by which `path` is not reviewed; None: it is."""
    return selected_by(path, policy.ignore_paths)


def withheld_by(policy: Policy, path: str) -> str | None:
    """The glob by which the contents of `path` may reach no model; None: they may.

    In any case of letters, since file systems differ about it and a key is a key.
    """
    return selected_by(path, policy.withheld_globs, ignore_case=True)


def instructions_for(policy: Policy, paths: Iterable[str]) -> tuple[str, ...]:
    """The repository's instructions for a change of `paths`: the general ones, then by rule.

    Untrusted text, like everything a repository says: it may guide reviewers and decides nothing.
    """
    changed = tuple(paths)
    general = (policy.instructions,) if policy.instructions is not None else ()
    ruled = tuple(
        rule.instructions
        for rule in policy.path_rules
        if any(selected_by(path, rule.paths) is not None for path in changed)
    )
    return general + ruled
