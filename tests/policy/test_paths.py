"""Single paths are ignored, withheld or given instructions as the policy says."""

from __future__ import annotations

import pytest

from app.domain.policy import Policy
from app.policy.load import parse_policy
from app.policy.paths import ignored_by, instructions_for, withheld_by

POLICY = parse_policy("""\
instructions: Be brief.
path_rules:
  - {paths: [src/payments/], instructions: Cents.}
  - {paths: ["*.sql", "!seed.sql"], instructions: Locks.}
ignore_paths: [gen/]
never_send: ["*.secret", "!.npmrc"]
""")


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(["README.md"], ("Be brief.",), id="general only"),
        pytest.param(["src/payments/a.py"], ("Be brief.", "Cents."), id="one rule"),
        pytest.param(["db/a.sql", "src/payments/b"], ("Be brief.", "Cents.", "Locks."), id="order"),
        pytest.param(["db/seed.sql"], ("Be brief.",), id="taken back"),
        pytest.param([], ("Be brief.",), id="no path"),
    ],
)
def test_instructions_follow_the_paths(paths: list[str], expected: tuple[str, ...]) -> None:
    """General instructions come first, then each rule that meets a path, once, in file order."""
    assert instructions_for(POLICY, paths) == expected


def test_no_instructions_by_default() -> None:
    """The default policy adds nothing to a prompt."""
    assert instructions_for(Policy(), ["a"]) == ()


def test_ignored_paths() -> None:
    """Only what the policy names is ignored, and the glob is the reason."""
    assert ignored_by(POLICY, "gen/a.py") == "gen/"
    assert ignored_by(POLICY, "src/a.py") is None
    assert ignored_by(Policy(), "gen/a.py") is None


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        pytest.param("A.SECRET", "*.secret", id="the policy's own, in any case"),
        pytest.param("deep/.env", ".env*", id="the built-in list still holds"),
        pytest.param(".npmrc", None, id="taken back"),
        pytest.param("a.py", None, id="code"),
    ],
)
def test_withheld_paths(path: str, glob: str | None) -> None:
    """A policy adds to what is withheld, and takes back only what it names."""
    assert withheld_by(POLICY, path) == glob
