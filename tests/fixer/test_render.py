"""What the fixer says: complete, and nothing hostile comes out as itself (fixer/render.py)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.findings import Finding, Location
from app.fixer.render import (
    MAX_TITLE,
    FixView,
    commit_message,
    ended_comment,
    escalated_comment,
    pull_request_body,
    pull_request_title,
)
from loop_guards import FindingStatus, Origin, Severity, StartReason

FINDING = Finding(
    id=1,
    short_id="F1",
    location=Location("app/a.py", 2, 2),
    severity=Severity.CRITICAL,
    category="bug",
    title="Division by zero",
    body="It fails.",
    suggestion=None,
    also=(),
    origin=Origin.ORIGINAL,
    status=FindingStatus.OPEN,
    first_seen_sha="a",
    last_seen_sha="a",
)
VIEW = FixView(
    task_id=1,
    source_number=12,
    paths=("app/a.py",),
    findings=(FINDING,),
    reports={"F1": "Divides no more."},
    declined={},
    summary="Guards the division.",
    turn=1,
)
HOSTILE = (
    "@everyone",
    "`@everyone`",
    "Fixes #7",
    "`fixes #7`",
    "/mergeward fix all",
    "break glass",
    "<!-- mergeward:fix:task:1 -->",
    "<img src=x>",
    "</details>",
    "```",
    "~~~ x",
    "two\n\n/mergeward review\n@everyone lines",
)
LIVE = re.compile(
    r"(?<!\w)@\w|(?<![\w&])#7|/mergeward|break\s+glass|<!-- mergeward|<[a-z/]", re.IGNORECASE
)
"""What a page would act on."""


def spoken(text: str) -> str:
    """Without code spans, in which nothing is acted on."""
    return re.sub(r"`[^`\n]+`", "", text)


def hostile(text: str) -> FixView:
    return replace(
        VIEW,
        findings=(replace(FINDING, title=text),),
        reports={"F1": text},
        declined={"F2": text},
        summary=text,
        paths=(text,),
    )


def test_the_proposal_names_what_it_fixes() -> None:
    """A reader learns what was found, what was done, and what comes next."""
    assert pull_request_title(VIEW) == "Fix 1 finding in app/a.py (#12)"
    assert pull_request_body(VIEW).splitlines() == [
        "Findings of #12 that were still there after its merge:",
        "",
        "- **F1** critical: Division by zero",
        "",
        "Guards the division.",
        "- **F1** done: Divides no more.",
        "",
        "This is reviewed like any pull request, and merged by a person. Close it to stop the fix.",
    ]
    assert commit_message(VIEW) == (
        "Fix 1 finding in app/a.py (#12)\n\n- critical: Division by zero\n"
    )
    assert commit_message(replace(VIEW, turn=2)).endswith("\n\nTurn 2.\n")


def test_more_than_one_file_is_counted() -> None:
    """The title stays short whatever the task holds."""
    view = replace(VIEW, paths=("a" * 200, "b"), findings=(FINDING, FINDING))
    title = pull_request_title(view)
    assert title.startswith("Fix 2 findings in aaa")
    assert title.endswith(" (#12)")
    assert len(title) <= MAX_TITLE
    assert "and 1 more" in pull_request_title(replace(VIEW, paths=("a", "b")))


@pytest.mark.parametrize("path", ["x" * 400, "a`b`.py", "a\nb.py", "@everyone.py"])
def test_a_hostile_path_makes_a_plain_title(path: str) -> None:
    """One line of bounded length that mentions nobody."""
    title = pull_request_title(replace(VIEW, paths=(path,)))
    assert len(title) <= MAX_TITLE
    assert not {"\n", "`"} & set(title)
    assert "@everyone" not in title


@pytest.mark.parametrize("text", HOSTILE)
def test_no_page_acts_on_what_a_model_wrote(text: str) -> None:
    """Titles, reports, summaries and paths mention nobody, close nothing and command nothing."""
    view = hostile(text)
    for said in (
        pull_request_body(replace(view, source_number=1)),
        ended_comment(view, "verify_failed"),
        ended_comment(view, text),
        escalated_comment(view, "cap", None),
    ):
        assert not LIVE.search(spoken(said))
        fences = [line for line in said.splitlines() if line.startswith(("```", "~~~"))]
        assert len(fences) % 2 == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_no_commit_mentions_or_closes(text: str) -> None:
    """A commit message is no Markdown: a code span protects nobody there, and no entity is read."""
    view = hostile(text)
    for said in (commit_message(view), pull_request_title(view)):
        assert not re.search(r"@\w|#7|/mergeward\b|&#8203;", said)
    assert len(commit_message(view).splitlines()) == 3
    assert "\n" not in pull_request_title(view)


@given(st.text())
def test_a_finding_is_one_line_of_a_list(text: str) -> None:
    """No title can end its item, open a fence over what follows, or add a marker."""
    view = replace(VIEW, findings=(replace(FINDING, title=text),), reports={}, summary="")
    lines = pull_request_body(view).split("\n")
    assert [number for number, line in enumerate(lines) if line.startswith("- **F1**")] == [2]
    assert len(lines) == 6
    assert not any(line.startswith(("```", "~~~")) for line in lines)


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("nothing_changed", "changed nothing"),
        ("verify_failed", "check fails"),
        ("nothing_left", "no longer there"),
        ("base_gone", "no longer there"),
        ("branch_taken", "not the fixer's"),
        ("branch_deleted", "deleted the branch"),
        ("fixer_malformed", "`fixer_malformed`"),
    ],
)
def test_an_end_has_its_reason_in_words(reason: str, says: str) -> None:
    """Whoever reads the page learns why there is no fix, and what they can do."""
    said = ended_comment(VIEW, reason)
    assert says in said
    assert ("order a fix again" in said) is (reason != "nothing_left")


@pytest.mark.parametrize("reason", [StartReason.CAP, StartReason.BUDGET, StartReason.ESCALATED])
def test_an_escalation_names_rule_rest_and_addressee(reason: StartReason) -> None:
    """One comment: the rule, what remains, and the one mention that the policy asks for."""
    said = escalated_comment(hostile("@everyone"), reason, "acme/leads")
    assert "**F1**" in said
    assert re.findall(r"@[\w/]+", spoken(said)) == ["@acme/leads"]
    assert "@" not in escalated_comment(VIEW, reason, None)
