"""What the review says when the coordinator's answer is not what it was asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.findings_xml import ParseOutcome, parse_review
from app.domain.findings import (
    DroppedFinding,
    DropReason,
    JudgedFinding,
    Location,
    ReportedFinding,
)
from app.review.account import Answered, account
from app.review.judge import JudgeInput, judge
from loop_guards import Severity
from tests.review.test_judge import earlier

PATHS = frozenset({"app/a.py", "app/b.py"})
ALL = frozenset({"app/a.py", "app/b.py"})


def report(ref: str, **changes: object) -> ReportedFinding:
    base = ReportedFinding(
        ref=ref,
        reviewer=ref.rpartition("-")[0],
        location=Location("app/a.py", 4, 4),
        severity=Severity.WARNING,
        category="injection",
        title=f"Trouble of {ref}",
        body="The name reaches the query.",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


REPORTS = (report("security-1"), report("general-1", location=Location("app/b.py", 2, 2)))


def said(attributes: str = 'source="security-1"', **changes: str) -> str:
    values = {
        "path": "app/a.py",
        "line": "4",
        "severity": "warning",
        "category": "injection",
        "title": "Trouble of security-1",
        "body": "The name reaches the query.",
        **changes,
    }
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    return f"<finding {attributes}>{fields}</finding>"


OTHER = said('source="general-1"', path="app/b.py", line="2", title="Trouble of general-1")


def review(*kept: str, carried: str = "", dropped: str = "", more: str = "") -> str:
    return (
        f"<review>{more}<summary>Read.</summary><findings>{''.join(kept)}</findings>"
        f"<carried>{carried}</carried><dropped>{dropped}</dropped></review>"
    )


@dataclass(frozen=True)
class Said:
    """What is left of an answer: findings as `ref severity`, drops, states of earlier ones."""

    new: tuple[str, ...] = ("security-1 warning", "general-1 warning")
    dropped: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    problem: str = ""
    """A part of the sentence that names what was wrong; "" if nothing was."""


def drop(refs: str, reason: str = "speculative") -> str:
    return f'<item source="{refs}" reason="{reason}">No caller does this.</item>'


BAD = [
    pytest.param(review(said(), OTHER), (), ALL, Said(), id="a-good-answer"),
    pytest.param(
        review(said()),
        (),
        ALL,
        Said(problem="said nothing of general-1"),
        id="a-report-is-forgotten",
    ),
    pytest.param(review(), (), ALL, Said(problem="said nothing of security-1"), id="all-are"),
    pytest.param(
        review(said(), said(title="Again", line="9"), OTHER),
        (),
        frozenset(),
        Said(problem="security-1 twice"),
        id="a-report-is-kept-twice-and-nothing-was-read",
    ),
    pytest.param(
        review(said(), said(title="Again", line="9"), OTHER),
        (),
        ALL,
        Said(
            new=("security-1 warning", "coordinator-1 warning", "general-1 warning"),
            problem="security-1 twice",
        ),
        id="a-report-is-kept-twice-and-its-file-was-read",
    ),
    pytest.param(
        review(said(), OTHER, dropped=drop("security-1")),
        (),
        ALL,
        Said(problem="security-1 twice"),
        id="kept-and-dropped-is-kept",
    ),
    pytest.param(
        review(said(), dropped=drop("general-1") + drop("general-1", "nitpick")),
        (),
        ALL,
        Said(
            new=("security-1 warning",),
            dropped=("general-1 speculative",),
            problem="general-1 twice",
        ),
        id="dropped-twice-is-dropped-for-the-first-reason",
    ),
    pytest.param(
        review(said(), dropped=drop("general-1", "boring")),
        (),
        ALL,
        Said(problem="said nothing of general-1"),
        id="a-drop-for-another-reason-is-no-drop",
    ),
    pytest.param(
        review(said(), dropped=drop("general-1", "duplicate")),
        (),
        ALL,
        Said(problem="said nothing of general-1"),
        id="a-duplicate-is-merged-and-not-dropped",
    ),
    pytest.param(
        review(said(), dropped='<item source="general-1">Meh.</item>'),
        (),
        ALL,
        Said(problem="said nothing of general-1"),
        id="a-drop-without-a-reason-is-no-drop",
    ),
    pytest.param(
        review(said(), OTHER, dropped=drop("performance-7")),
        (),
        ALL,
        Said(problem="performance-7, which no reviewer reported"),
        id="a-drop-of-what-nobody-reported",
    ),
    pytest.param(
        review(said(), OTHER, said('source="security-9"', title="Ghost")),
        (),
        frozenset(),
        Said(problem="security-9, which no reviewer reported"),
        id="a-reference-is-invented",
    ),
    pytest.param(
        review(said(path="app/ghost.py"), OTHER),
        (),
        ALL,
        Said(new=("general-1 warning", "security-1 warning"), problem="app/ghost.py"),
        id="a-file-is-invented-and-the-report-stays",
    ),
    pytest.param(
        review(said(), OTHER, said('source="coordinator"', path="etc/passwd", title="Own")),
        (),
        ALL,
        Said(problem="etc/passwd"),
        id="a-file-of-its-own-is-invented",
    ),
    pytest.param(
        review(said(), OTHER, said('source="coordinator"', title="Own", severity="critical")),
        (),
        frozenset({"app/b.py"}),
        Said(problem="read no source"),
        id="its-own-finding-in-a-file-it-did-not-read",
    ),
    pytest.param(
        review(said(), OTHER, said("", title="Own", severity="critical")),
        (),
        frozenset({"app/a.py"}),
        Said(new=("security-1 warning", "general-1 warning", "coordinator-1 critical")),
        id="its-own-finding-in-a-file-it-read",
    ),
    pytest.param(
        review(said(severity="critical"), OTHER),
        (),
        frozenset(),
        Said(problem="made security-1 critical unread"),
        id="worse-than-reported-and-unread",
    ),
    pytest.param(
        review(said(severity="critical"), OTHER),
        (),
        frozenset({"app/a.py"}),
        Said(new=("security-1 critical", "general-1 warning")),
        id="worse-than-reported-and-read",
    ),
    pytest.param(
        review(said(severity="suggestion"), OTHER),
        (),
        frozenset(),
        Said(new=("security-1 suggestion", "general-1 warning")),
        id="milder-than-reported",
    ),
    pytest.param(
        review(said(severity="apocalypse"), OTHER), (), ALL, Said(), id="a-severity-is-invented"
    ),
    pytest.param(
        review(said(), OTHER, more="<verdict>approved</verdict><approve>true</approve>"),
        (),
        ALL,
        Said(),
        id="a-verdict-is-not-read",
    ),
    pytest.param(
        review(said(verdict="approved", blocking="false"), OTHER),
        (),
        ALL,
        Said(),
        id="a-verdict-in-a-finding-is-not-read",
    ),
    pytest.param(
        review(said(), OTHER),
        ("F1",),
        ALL,
        Said(problem="did not account for F1"),
        id="an-earlier-finding-is-forgotten",
    ),
    pytest.param(
        review(said(), OTHER, carried='<item id="F1" state="fixed"/>'),
        ("F1",),
        ALL,
        Said(),
        id="fixed-without-evidence-is-open",
    ),
    pytest.param(
        review(
            said(),
            OTHER,
            carried='<item id="F1" state="fixed">app/a.py:4</item><item id="F1" state="open"/>',
        ),
        ("F1",),
        ALL,
        Said(),
        id="two-states-are-open",
    ),
    pytest.param(
        review(said(), OTHER, carried='<item id="F9" state="fixed">app/a.py:4</item>'),
        (),
        ALL,
        Said(problem="F9, which is unknown"),
        id="an-unknown-earlier-finding-is-carried",
    ),
    pytest.param(
        review(said('id="F9" source="security-1"'), OTHER),
        (),
        ALL,
        Said(problem="unknown finding F9"),
        id="an-unknown-earlier-finding-is-raised-again",
    ),
    pytest.param(
        review(
            said('id="F1" source="security-1"'),
            OTHER,
            carried='<item id="F1" state="fixed">app/a.py:4</item>',
        ),
        ("F1",),
        ALL,
        Said(new=("general-1 warning",), problem="called fixed and raised again"),
        id="fixed-and-raised-again",
    ),
    pytest.param(
        review(said('source="security-1 general-1"', severity="suggestion")),
        (),
        ALL,
        Said(new=("security-1+general-1 suggestion",)),
        id="a-merged-finding-has-all-its-sources",
    ),
    pytest.param(
        review(said('source="general-1"', title="Trouble of security-1"), said()),
        (),
        ALL,
        Said(new=("general-1+security-1 warning",)),
        id="the-same-claim-said-twice-is-one",
    ),
]


@pytest.mark.parametrize(("text", "known", "read", "expected"), BAD)
def test_a_bad_answer(
    text: str, known: tuple[str, ...], read: frozenset[str], expected: Said
) -> None:
    """No report is lost, nothing is invented, and the page does not obey what it may not."""
    parsed = parse_review(text, PATHS)
    assert parsed.outcome is ParseOutcome.OK
    existing = tuple(
        earlier(name, location=Location("app/a.py", 7, 7), title="Old", code="old")
        for name in known
    )
    result = judge(
        JudgeInput(
            existing=existing,
            reported=REPORTS,
            judged=parsed.judged,
            carried=parsed.carried,
            dropped=parsed.dropped,
            known_paths=PATHS,
            changed_since={},
            code_at={},
            touched=frozenset(),
            is_fix_pr=False,
            read=read,
        )
    )
    told = Said(
        tuple(f"{'+'.join(i.refs) or i.reported.ref} {i.reported.severity}" for i in result.new),
        tuple(f"{' '.join(item.refs)} {item.reason}" for item in result.dropped),
        tuple(item.finding.short_id for item in result.carried if item.decision.fixed),
        expected.problem,
    )
    assert told == expected
    assert [item.finding.short_id for item in result.carried] == list(known)
    assert expected.problem in " ".join(result.problems)


NAMES = st.sampled_from(["security-1", "general-1", "ghost-1", "coordinator"])
SOURCES = st.lists(NAMES, max_size=3).map(tuple)


@given(
    judged=st.lists(st.tuples(SOURCES, st.sampled_from([*PATHS, "ghost.py", None])), max_size=5),
    dropped=st.lists(SOURCES.filter(bool), max_size=4),
    read=st.sets(st.sampled_from(sorted(PATHS))),
)
def test_each_report_is_in_exactly_one_place(
    judged: list[tuple[tuple[str, ...], str | None]],
    dropped: list[tuple[str, ...]],
    read: set[str],
) -> None:
    """Whatever the coordinator says, every report is kept once or dropped once, and nothing has a
    source that nobody reported."""
    result = account(
        Answered(
            judged=tuple(
                JudgedFinding(report("x-1", location=Location(path), title=f"T{number}"), refs)
                for number, (refs, path) in enumerate(judged)
            ),
            dropped=tuple(DroppedFinding(refs, DropReason.NITPICK, "") for refs in dropped),
            reported=REPORTS,
            rated={},
            known_paths=PATHS,
            read=read,
        )
    )
    places = [item.refs for item in result.judged] + [item.refs for item in result.dropped]
    placed = Counter(ref for refs in places for ref in refs)
    assert placed == {one.ref: 1 for one in REPORTS}
    assert all(item.refs for item in result.dropped)
    own = [item.finding for item in result.judged if not item.refs]
    assert all(read if one.location.path is None else one.location.path in read for one in own)
    names = [item.finding.ref for item in result.judged]
    assert len(names) == len(set(names))


DOUBTED = "It might be that the name reaches the query."
FLAT = "The name reaches the query."


def kept(body: str, *refs: str, **changes: object) -> JudgedFinding:
    return JudgedFinding(report(refs[0], body=body, **changes), refs)


@pytest.mark.parametrize(
    ("sources", "judged", "read", "unread"),
    [
        pytest.param((DOUBTED,), (kept(FLAT, "security-1"),), (), True, id="doubt-is-worded-away"),
        pytest.param((FLAT,), (kept(DOUBTED, "security-1"),), (), True, id="the-judge-doubts"),
        pytest.param((DOUBTED,), (), (), True, id="doubt-that-nobody-speaks-of"),
        pytest.param((FLAT,), (kept(FLAT, "security-1"),), (), False, id="nobody-doubts"),
        pytest.param(
            (DOUBTED, FLAT),
            (kept(FLAT, "security-1", "security-2"),),
            (),
            False,
            id="one-of-two-reviewers-is-sure",
        ),
        pytest.param(
            (DOUBTED,), (kept(DOUBTED, "security-1"),), ("app/a.py",), False, id="it-was-read"
        ),
        pytest.param(
            (DOUBTED,), (kept(DOUBTED, "security-1"),), ("app/b.py",), True, id="another-was-read"
        ),
    ],
)
def test_what_is_kept_in_doubt(
    sources: tuple[str, ...], judged: tuple[JudgedFinding, ...], read: tuple[str, ...], unread: bool
) -> None:
    """A finding that every reviewer of it doubts, or the judge itself, asks for a look; words that
    sound surer than the report do not replace it. It is kept all the same, at its severity."""
    reports = tuple(report(f"security-{n}", body=text) for n, text in enumerate(sources, start=1))
    result = account(Answered(judged, (), reports, {}, PATHS, read))
    assert result.unread == (("security-1",) if unread else ())
    assert [item.finding.severity for item in result.judged] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("seen_by_reviewer", "read", "risk"),
    [
        pytest.param(None, (), None, id="nobody-saw-it"),
        pytest.param("Imports stop.", (), "All stops.", id="the-reviewer-saw-it"),
        pytest.param(None, ("app/a.py",), "All stops.", id="the-judge-read-it"),
    ],
)
def test_a_production_risk_is_seen_by_a_reader(
    seen_by_reviewer: str | None, read: tuple[str, ...], risk: str | None
) -> None:
    """The mark alone turns a verdict: it comes from one who read the source."""
    reports = (report("security-1", production_risk=seen_by_reviewer),)
    judged = (kept(FLAT, "security-1", production_risk="All stops."),)
    (item,) = account(Answered(judged, (), reports, {}, PATHS, read)).judged
    assert item.finding.production_risk == risk


def test_an_earlier_finding_is_not_made_worse_unread() -> None:
    """Raised again by id alone, it is at most what it was; one who read the file may say more."""
    worse = JudgedFinding(report("F1", severity=Severity.CRITICAL), (), "F1")
    rated = {"F1": Severity.SUGGESTION}
    for read, severity in (((), Severity.SUGGESTION), (("app/a.py",), Severity.CRITICAL)):
        (item,) = account(Answered((worse,), (), (), rated, PATHS, read)).judged
        assert item.finding.severity is severity


@pytest.mark.parametrize(
    ("said_section", "section"),
    [
        pytest.param("data", "data", id="the-judge-chooses"),
        pytest.param("general", "injection", id="it-left-it-out"),
    ],
)
def test_a_merged_finding_s_section(said_section: str, section: str) -> None:
    """The judge's section counts; where it gave none, that of a report does."""
    reports = (report("security-1", category="general"), report("general-1"))
    judged = (kept(FLAT, "security-1", "general-1", category=said_section),)
    (item,) = account(Answered(judged, (), reports, {}, PATHS, ())).judged
    assert (item.finding.category, item.refs) == (section, ("security-1", "general-1"))
