"""What a policy does is said in sentences that name its numbers."""

from __future__ import annotations

import pytest

from app.domain.policy import Policy
from app.policy.explain import explain
from app.policy.load import PolicySource, effective_policy


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(None, "There is no policy file; the defaults hold.", id="no file"),
        pytest.param("", "The policy file on the default branch holds.", id="a file"),
        pytest.param("mode: shadow", "nothing is written to GitHub", id="shadow"),
        pytest.param("human_prs: gate", "gate: the check passes only when", id="gate"),
        pytest.param(
            "handoff: {bases: [next], minimum_severity: critical}",
            "A merge into the default branch, next hands off open findings of severity critical",
            id="handoff",
        ),
        pytest.param("handoff: {mode: manual}", "hands nothing off by itself", id="manual"),
        pytest.param("limits: {max_review_iterations: 7}", "after 7 review rounds", id="the cap"),
        pytest.param("limits: {budget: {usd: 2.5}}", "$2.5 and 60 minutes", id="the budget"),
        pytest.param("escalate_to: octocat", "An escalation mentions octocat.", id="escalation"),
        pytest.param("reviewers: {security: false}", "are off: security.", id="a reviewer off"),
        pytest.param("ignore_paths: [a, b]", "Not reviewed: a, b.", id="ignored paths"),
        pytest.param("never_send: [a]", "besides keys and .env files: a.", id="withheld paths"),
        pytest.param("verify_command: [make, test]", "fixer runs: make test", id="verification"),
    ],
)
def test_says_what_the_policy_does(text: str | None, sentence: str) -> None:
    """Each setting has its sentence."""
    assert sentence in "\n".join(explain(effective_policy(text, None)))


def test_says_which_policy_holds_instead() -> None:
    """When the file is unusable, the first sentence says what holds and why."""
    last = explain(effective_policy("mode: x", "mode: shadow"))
    assert last[0].startswith("The last valid policy holds")
    assert "line 1: mode" in last[0]
    none = explain(effective_policy("mode: x", None))
    assert none[0].startswith("The defaults hold")


def test_the_default_is_explained_too() -> None:
    """The default policy hands off and names its numbers."""
    effective = effective_policy(None, None)
    assert (effective.policy, effective.source) == (Policy(), PolicySource.DEFAULT)
    text = "\n".join(explain(effective))
    assert "at most 10 a merge, to the target builtin" in text
    assert "2,000,000 uncached input tokens, $10 and 60 minutes" in text
