"""The coordinator judges from the reviewers' words and its own reads."""

from __future__ import annotations

from typing import Any

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sandbox.model import Scenario
from tests.sandbox.model.builders import (
    NEEDLE,
    PATH,
    body,
    changed_files,
    named,
    numbered,
    planted,
    run,
    scenario,
    system,
    tool,
)

TITLE = "A name goes into a command"
OPEN = {"id": "F1", "path": PATH, "title": TITLE, "line": 3}
SCENARIO = scenario(planted=[planted(production_risk="Files are lost.", trivial=False)])


def raised(ref: str, **changes: str) -> str:
    fields = {
        "path": PATH,
        "line": "4",
        "severity": "critical",
        "category": "security",
        "title": TITLE,
        "body": "b",
    } | changes
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f'<finding ref="{ref}">{inner}<also><path>b.py</path></also></finding>'


def results(*findings: str, more: str = "") -> str:
    inner = "".join(findings)
    return (
        f'<reviewer_results><reviewer name="security" status="ok">{inner}</reviewer>{more}'
        "</reviewer_results>"
    )


def judge(
    spawned: str, read: str = "", *, existing: tuple[Any, ...] = (), script: Scenario = SCENARIO
) -> Any:
    """The review, parsed, in which the tools answer with `spawned` and `read`."""
    prompt = changed_files(PATH) + named("existing_inline_findings", *existing)
    request = body(
        system=system("coordinator"),
        messages=[{"role": "user", "content": prompt}],
        tools=[tool("spawn_reviewers"), tool("read_file")],
    )
    tools = {"spawn_reviewers": lambda _: spawned, "read_file": lambda _: read}
    text, replies = run(script, request, tools)
    assert replies[0].tools == ("spawn_reviewers",)
    return fromstring(text)


def states(review: Any) -> list[tuple[str, str]]:
    return [(item.get("id"), item.get("state")) for item in review.iterfind("carried/item")]


def findings(review: Any) -> list[Any]:
    return list(review.iterfind("findings/finding"))


def test_findings_of_one_path_and_title_become_one_with_all_sources() -> None:
    """Two reviewers who saw the same thing are told once, with both refs."""
    review = judge(results(raised("security-1"), raised("general-2", title=TITLE.upper())))
    (finding,) = findings(review)
    assert finding.get("source") == "security-1 general-2"
    assert finding.get("id") is None
    assert finding.findtext("line") == "4"
    assert finding.findtext("also/path") == "b.py"
    assert finding.findtext("production_risk") == "Files are lost."
    assert finding.find("trivial") is None


def test_different_findings_stay_apart() -> None:
    """Another title or another path is another finding; unknown ones are passed on unmarked."""
    review = judge(results(raised("a-1"), raised("a-2", title="Other"), raised("a-3", path="c")))
    assert [item.get("source") for item in findings(review)] == ["a-1", "a-2", "a-3"]
    assert [item.find("production_risk") is None for item in findings(review)] == [
        False,
        True,
        False,
    ]


def test_a_trivial_entry_is_marked() -> None:
    """What the scenario calls trivial is told as trivial."""
    review = judge(results(raised("a-1")), script=scenario(planted=[planted(trivial=True)]))
    assert findings(review)[0].findtext("trivial") == "true"


@pytest.mark.parametrize(
    ("read", "state"),
    [
        pytest.param(numbered(f"a\n{NEEDLE}"), "open", id="still there"),
        pytest.param(numbered("a\nb"), "fixed", id="gone"),
        pytest.param("", "fixed", id="file is empty now"),
        pytest.param("src/job.py does not exist", "fixed", id="file is gone"),
        pytest.param("src/job.py is withheld", "open", id="could not be read"),
        pytest.param(numbered("a") + "\n… truncated", "open", id="not read whole"),
    ],
)
def test_the_state_of_an_earlier_finding_is_what_the_read_shows(read: str, state: str) -> None:
    """Fixed needs a whole read without the line; doubt leaves it open."""
    review = judge(results(), read, existing=(OPEN,))
    assert states(review) == [("F1", state)]
    assert [item.get("id") for item in findings(review)] == (["F1"] if state == "open" else [])


def test_an_open_finding_is_given_where_it_stands_now_and_its_duplicates_are_folded() -> None:
    """Raised again by a reviewer, it is the same finding, not a new one."""
    review = judge(results(raised("security-1")), numbered(f"\n\n{NEEDLE}"), existing=(OPEN,))
    (finding,) = findings(review)
    assert (finding.get("id"), finding.get("source")) == ("F1", "security-1")
    assert finding.findtext("line") == "3"


def test_a_finding_that_a_reviewer_raises_again_is_not_fixed() -> None:
    """The reviewers' word against a read that shows nothing leaves it open."""
    review = judge(results(raised("security-1")), numbered("x"), existing=(OPEN,))
    assert states(review) == [("F1", "open")]


def test_an_unknown_earlier_finding_stays_open_as_it_was() -> None:
    """What the scenario does not know, it cannot call fixed."""
    review = judge(results(), numbered("x"), existing=(OPEN | {"title": "Mystery"},))
    assert states(review) == [("F1", "open")]
    (finding,) = findings(review)
    assert finding.findtext("title") == "Mystery"
    assert finding.findtext("line") == "3"


def test_a_line_in_another_file_keeps_nothing_open() -> None:
    """The needle counts in the finding's own file only."""
    other = OPEN | {"id": "F2", "path": "src/other.py"}
    request = body(
        system=system("coordinator"),
        messages=[{"role": "user", "content": named("existing_inline_findings", OPEN, other)}],
        tools=[tool("read_file")],
    )
    script = scenario(planted=[planted(path="src/*")])
    shown = {PATH: numbered("x"), "src/other.py": numbered(NEEDLE)}
    text, replies = run(script, request, {"read_file": lambda use: shown[use["path"]]})
    assert len(replies[0].tools) == 2
    assert states(fromstring(text)) == [("F1", "fixed"), ("F2", "open")]


@pytest.mark.parametrize(
    "spawned",
    [
        pytest.param("", id="nothing"),
        pytest.param("<reviewer_results><reviewer", id="broken"),
        pytest.param(
            '<reviewer_results><reviewer name="security" status="failed" reason="timeout"/>'
            "</reviewer_results>",
            id="all failed",
        ),
    ],
)
def test_without_reviewers_there_are_no_findings(spawned: str) -> None:
    """The coordinator invents nothing, and says that nobody answered."""
    review = judge(spawned)
    assert findings(review) == []
    assert "No reviewer answered" in review.findtext("summary")


def test_failed_reviewers_are_named() -> None:
    """A reviewer that did not answer is told of."""
    more = '<reviewer name="general" status="failed" reason="timeout"/>'
    review = judge(results(raised("security-1"), more=more))
    assert review.findtext("summary") == "security answered: 1 new. No answer from general."


def test_results_in_the_prompt_count_when_there_is_no_tool() -> None:
    """When the reviewers were started for it, the coordinator judges what it is handed."""
    request = body(
        system=system("coordinator"),
        messages=[{"role": "user", "content": results(raised("security-1"))}],
        tools=None,
    )
    text, _ = run(SCENARIO, request, {})
    assert len(findings(fromstring(text))) == 1


words = st.text(st.characters(codec="utf-8", categories=("L", "P", "S", "N")), min_size=1)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), words), max_size=6))
def test_every_ref_is_accounted_for_exactly_once(items: list[tuple[str, str]]) -> None:
    """Nothing that a reviewer said is lost or told twice, whatever characters it holds."""
    from html import escape

    refs = [f"r-{index}" for index in range(len(items))]
    raw = [
        raised(ref, path=path, title=escape(title))
        for ref, (path, title) in zip(refs, items, strict=True)
    ]
    told = [item.get("source") for item in findings(judge(results(*raw)))]
    assert sorted(ref for source in told for ref in source.split()) == sorted(refs)
