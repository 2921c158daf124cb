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
        pytest.param(
            "reviewers: {release: false, others: {acme_sql: false, acme_go: true}}",
            "are off: release, acme_sql.",
            id="a plugin's reviewer off",
        ),
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


ADDS = (
    "An order to fix a finding adds at most 1 fix PR, 5 rounds, 189 model runs; a resume adds at "
    "most 2 rounds, 54 model runs; a push to a PR that is no fix adds at most 4 rounds, 96 model "
    "runs."
)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param(
            "",
            [
                (
                    "With this policy one merged PR can cause at most 10 fix PRs, 50 rounds, 1,890 "
                    "model runs, before your budget stops it."
                ),
                ADDS,
            ],
            id="as shipped",
        ),
        pytest.param(
            "limits: {max_fix_tasks: 1, max_review_iterations: 1, pingpong_cap: 1}",
            [
                (
                    "With this policy one merged PR can cause at most 1 fix PR, 1 round, 81 model "
                    "runs, before your budget stops it."
                ),
                (
                    "An order to fix a finding adds at most 1 fix PR, 1 round, 81 model runs; "
                    "a resume adds at most 1 round, 27 model runs; a push to a PR that is no fix "
                    "adds at most 2 rounds, 48 model runs."
                ),
            ],
            id="one of each",
        ),
        pytest.param(
            "limits: {max_model_runs: 1}",
            [
                (
                    "With this policy one merged PR can cause at most 10 fix PRs, 50 rounds, 1,890 "
                    "model runs, before your budget stops it."
                ),
                (
                    "No round or turn of a fix begins once a PR with all its fixes has used "
                    "1 model run."
                ),
                ADDS,
            ],
            id="a cut",
        ),
        pytest.param(
            "handoff: {mode: manual}",
            ["With this policy a merged PR causes no fix PR by itself.", ADDS],
            id="manual",
        ),
        pytest.param(
            "handoff: {mode: off}",
            ["With this policy a merged PR causes no fix PR by itself.", ADDS],
            id="off",
        ),
        pytest.param(
            "limits: {max_fix_tasks: 0}",
            ["With this policy a merged PR causes no fix PR by itself.", ADDS],
            id="no tasks",
        ),
        pytest.param(
            "mode: shadow",
            [
                "In shadow mode a merged PR causes no fix PR, nor does an order.",
                "A push to a PR that is no fix adds at most 4 rounds, 96 model runs.",
            ],
            id="shadow",
        ),
    ],
)
def test_says_the_bound_aloud(text: str, sentences: list[str]) -> None:
    """What one merge can cause at most, what cuts that, and what each act of a person adds."""
    said = list(explain(effective_policy(text, None)))
    first = said.index(sentences[0])
    assert said[first : first + len(sentences)] == sentences
    assert not any("model run" in other for other in said[first + len(sentences) :])
