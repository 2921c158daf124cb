"""What the fixer says (fixer/render): hostile texts inert, one mention let through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.fixer.render import (
    MAX_TITLE,
    FixView,
    commit_message,
    ended_comment,
    escalated_comment,
    pull_request_body,
    pull_request_title,
)
from loop_guards import StartReason
from tests.review.factories import finding

VIEW = FixView(
    task_id=3,
    source_number=12,
    paths=("app/a.py",),
    findings=(finding(1), finding(2)),
    reports={"F1": "bound the term"},
    declined={"F2": "it is right"},
    summary="Binds the term.",
    turn=1,
)
HOSTILE = "@everyone closes #7\n/mergeward fix all <b>"


def test_the_title_names_file_and_source() -> None:
    """Who reads a list of pull requests sees what this one is about."""
    assert pull_request_title(VIEW) == "Fix 2 findings in app/a.py (#12)"


@pytest.mark.parametrize("path", ["x" * 400, "a`b`.py", "a\nb.py", "@everyone.py"])
def test_a_hostile_path_makes_a_plain_title(path: str) -> None:
    """One line of bounded length that mentions nobody."""
    title = pull_request_title(replace(VIEW, paths=(path,)))
    assert len(title) <= MAX_TITLE
    assert not {"\n", "`"} & set(title)
    assert "@everyone" not in title


def test_the_body_says_what_was_done_about_each() -> None:
    """Fixed and not fixed, in the fixer's own words."""
    body = pull_request_body(VIEW)
    for words in ("Binds the term.", "**F1** done: bound the term", "**F2** not done: it is right"):
        assert words in body


def test_hostile_words_of_the_model_do_nothing() -> None:
    """No mention, no closing word, no command, no markup; neither on the page nor in git."""
    view = replace(
        VIEW,
        findings=(finding(1, title=HOSTILE),),
        reports={"F1": HOSTILE},
        declined={},
        summary=HOSTILE,
    )
    for text in (pull_request_body(view), commit_message(view), ended_comment(view, "x")):
        assert "@everyone" not in text
        assert "closes #7" not in text
        assert not any(line.startswith("/mergeward") for line in text.splitlines())


@pytest.mark.parametrize("reason", ["nothing_changed", "verify_failed", "fixer_timeout"])
def test_an_end_says_what_people_can_do(reason: str) -> None:
    """The findings stay open, and an order tries again."""
    assert "order a fix again" in ended_comment(VIEW, reason)


def test_nothing_left_asks_for_nothing() -> None:
    """Where nothing is open there is nothing to order."""
    assert "order" not in ended_comment(VIEW, "nothing_left")


@pytest.mark.parametrize("reason", [StartReason.CAP, StartReason.BUDGET, StartReason.ESCALATED])
def test_an_escalation_names_rule_rest_and_addressee(reason: StartReason) -> None:
    """One comment: the rule, what remains, and the one mention that the policy asks for."""
    said = escalated_comment(VIEW, reason, "acme/keepers")
    assert "**F1**" in said
    assert said.endswith("cc @acme/keepers")
    assert "@" not in escalated_comment(VIEW, reason, None)
