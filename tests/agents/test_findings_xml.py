"""Answers as models really give them: what is kept, what is cut, what is refused."""

from __future__ import annotations

import time
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.findings_xml import (
    ParseOutcome,
    parse_findings,
    parse_fix_report,
    parse_review,
)
from app.agents.port import FinishReason
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.scan import scan
from app.domain.findings import CarriedState, DropReason, Location, ReportedFinding
from app.domain.runs import AgentName
from loop_guards import Severity

KNOWN = ("src/a.py", "lib/src/b.py", "README.md")


def finding(
    *,
    path: str = "src/a.py",
    line: str = "<line>5</line>",
    severity: str = "warning",
    title: str = "Leak",
    body: str = "It leaks.",
    more: str = "",
) -> str:
    return (
        f"<finding><path>{path}</path>{line}<severity>{severity}</severity>"
        f"<category>resource</category><title>{title}</title><body>{body}</body>{more}</finding>"
    )


def report(*findings: str) -> str:
    return f"<findings>{''.join(findings)}</findings>"


def only(text: str, finish: FinishReason = FinishReason.STOP) -> ReportedFinding:
    parsed = parse_findings(text, "general", KNOWN, finish)
    assert parsed.outcome is ParseOutcome.OK, parsed.problems
    (found,) = parsed.findings
    return found


def test_a_whole_finding() -> None:
    """Every field of the contract arrives, and the reference is the reviewer's own count."""
    more = (
        "<evidence>src/a.py:5 `open()`</evidence>"
        "<suggestion>\n    with open(p) as f:\n</suggestion>"
        "<also><path>README.md</path></also><also><path>src/ghost.py</path></also>"
    )
    parsed = parse_findings(
        report(finding(more=more)), "general", KNOWN, prompt_version="general@1"
    )
    assert parsed.problems == ()
    assert parsed.findings == (
        ReportedFinding(
            ref="general-1",
            reviewer="general",
            location=Location("src/a.py", 5, 5),
            severity=Severity.WARNING,
            category="resource",
            title="Leak",
            body="It leaks.",
            evidence="src/a.py:5 `open()`",
            suggestion="    with open(p) as f:",
            also=("README.md",),
            prompt_version="general@1",
        ),
    )


RAW = "Use `if (a < b && c->d) { x &= y; }` and vector<int>, not List<String>."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(RAW, RAW, id="raw-code"),
        pytest.param(escape(RAW), RAW, id="escaped-code"),
        pytest.param(f"<![CDATA[{RAW}]]>", RAW, id="cdata"),
        pytest.param("say <![CDATA[</body> & ]]> then", "say </body> &  then", id="cdata-inside"),
        pytest.param("`&amp;` is raw & stays", "`&amp;` is raw & stays", id="not-escaped-at-all"),
        pytest.param("&lt;b&gt; &amp;amp;", "<b> &amp;", id="decoded-once"),
        pytest.param("&custom;", "&custom;", id="no-other-entities"),
        pytest.param("it&#x27;s &#8364;5", "it's €5", id="numbers-are-decoded"),
        pytest.param("a &#0; &#xD800; b", "a &#0; &#xD800; b", id="numbers-of-nothing-stay"),
        pytest.param("the `</body>` tag", "the `</body>` tag", id="own-closing-tag-quoted"),
        pytest.param("<title>x</title> lacks", "<title>x</title> lacks", id="other-tags-quoted"),
        pytest.param("a </finding> b", "a </finding> b", id="parent-closing-tag-quoted"),
        pytest.param("```py\nx\n```", "```py\nx\n```", id="fence-inside"),
    ],
)
def test_text_is_kept_letter_by_letter(body: str, expected: str) -> None:
    """A field's text is what the model meant, whether it escaped or not."""
    assert only(report(finding(body=body))).body == expected


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("{}", id="bare"),
        pytest.param("Here is my review.\n\n{}\n\nHope this helps!", id="prose-around"),
        pytest.param("```xml\n{}\n```", id="fenced"),
        pytest.param("<think><findings><finding><path>README.md</path></think>{}", id="thoughts"),
        pytest.param("First I thought <findings/> but:\n{}", id="empty-draft-before"),
        pytest.param("{}\nHad there been nothing: <findings/>", id="empty-one-after"),
        pytest.param("<FINDINGS>{}</FINDINGS>", id="doubled-root"),
    ],
)
def test_the_answer_is_found(frame: str) -> None:
    """Prose, fences and thoughts around the answer do not matter."""
    assert only(frame.format(report(finding()))).title == "Leak"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Here.\n<findings>\n" + finding() + "\n", id="root-not-closed"),
        pytest.param(report(finding().removesuffix("</finding>")), id="finding-not-closed"),
        pytest.param(finding(), id="root-missing"),
        pytest.param(
            "<findings>\n<finding>\n<path>src/a.py\n<line>5\n<severity>warning\n"
            "<title>Leak\n<body>It leaks.\n</finding>\n</findings>",
            id="fields-not-closed",
        ),
    ],
)
def test_forgotten_tags(text: str) -> None:
    """A forgotten closing tag costs nothing when the model said that it had finished."""
    found = only(text)
    assert (found.title, found.body, found.location.start_line) == ("Leak", "It leaks.", 5)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n", id="blank"),
        pytest.param("null", id="null"),
        pytest.param("```json\n```", id="empty-fence"),
        pytest.param("{}", id="json"),
        pytest.param("No issues found.", id="prose"),
        pytest.param("<findings>", id="only-opened"),
        pytest.param("</findings>", id="only-closed"),
        pytest.param("<findings>I could not read the files.</findings>", id="prose-inside"),
        pytest.param(report("<finding><path>src/a.py</path></finding>"), id="nothing-said"),
        pytest.param("<finding>", id="only-a-finding-opened"),
        pytest.param("<think><findings/></think>", id="only-in-thoughts"),
    ],
)
def test_nonsense_is_never_nothing_found(text: str) -> None:
    """What cannot be read is failed, also when it looks empty."""
    parsed = parse_findings(text, "general", KNOWN)
    assert parsed.outcome is ParseOutcome.FAILED
    assert parsed.findings == ()
    assert parsed.problems


@pytest.mark.parametrize("text", ["<findings/>", "<findings></findings>", "ok\n< findings />\n"])
def test_nothing_found(text: str) -> None:
    """An empty element that is really there is a good answer."""
    parsed = parse_findings(text, "general", KNOWN)
    assert (parsed.outcome, parsed.findings) == (ParseOutcome.OK, ())


@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.UNKNOWN])
def test_a_cut_off_answer_is_partial(finish: FinishReason) -> None:
    """What is whole is kept, what was cut is not, and the whole is never called complete."""
    text = "<findings>" + finding() + finding(line="<line>9</line>", severity="critical")[:-30]
    parsed = parse_findings(text, "general", KNOWN, finish)
    assert parsed.outcome is ParseOutcome.PARTIAL
    assert [found.location.start_line for found in parsed.findings] == [5]


@given(st.integers(0, 600))
def test_no_cut_makes_a_finding_up(at: int) -> None:
    """Wherever an answer is cut: no exception, no finding that was not there, no false success."""
    whole = "<findings>" + finding() + finding(title="Other", line="<line>9</line>") + "</findings>"
    cut = whole[:at]
    parsed = parse_findings(cut, "general", KNOWN, FinishReason.LENGTH)
    assert {found.title for found in parsed.findings} <= {"Leak", "Other"}
    assert parsed.outcome is not ParseOutcome.OK


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("acme/shop/src/a.py", "src/a.py", id="repository-in-front"),
        pytest.param("b/src/a.py", "src/a.py", id="diff-prefix"),
        pytest.param("./src/a.py", "src/a.py", id="dot"),
        pytest.param("`src/a.py`", "src/a.py", id="ticks"),
        pytest.param("/src/a.py", "src/a.py", id="slash"),
        pytest.param("a.py", "src/a.py", id="only-one-fits"),
        pytest.param("acme/shop/lib/src/b.py", "lib/src/b.py", id="longest"),
        pytest.param("src\\a.py", "src/a.py", id="backslashes"),
        pytest.param("src/a.py:7", "src/a.py", id="with-a-line"),
        pytest.param("src/ghost.py", None, id="not-in-the-change"),
        pytest.param("", None, id="none"),
    ],
)
def test_paths(path: str, expected: str | None) -> None:
    """A path is brought to one of the change's, or the finding is a remark on the whole."""
    assert only(report(finding(path=path))).location.path == expected


def test_a_path_outside_the_change_is_named_in_the_evidence() -> None:
    """Nothing is lost: the invented place is told, but it is no place."""
    parsed = parse_findings(report(finding(path="src/ghost.py")), "general", KNOWN)
    assert "src/ghost.py" in parsed.findings[0].evidence
    assert "src/ghost.py" in parsed.problems[0]
    assert parsed.findings[0].location == Location(None, None, None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("<line>12</line>", (12, 12), id="number"),
        pytest.param("<line> L12 </line>", (12, 12), id="letter"),
        pytest.param("<line>10-12</line>", (10, 12), id="range"),
        pytest.param("<line>L10–L12</line>", (10, 12), id="dash"),
        pytest.param("<line>lines 10 to 12</line>", (10, 12), id="words"),
        pytest.param("<line>12-10</line>", (10, 12), id="reversed"),
        pytest.param("<start_line>3</start_line><end_line>4</end_line>", (3, 4), id="two-fields"),
        pytest.param("<end_line>4</end_line>", (4, 4), id="only-the-end"),
        pytest.param("<line>five</line>", (None, None), id="word"),
        pytest.param("<line>-3</line>", (None, None), id="negative"),
        pytest.param("<line>0</line>", (None, None), id="zero"),
        pytest.param("<line/>", (None, None), id="empty"),
        pytest.param("", (None, None), id="missing"),
    ],
)
def test_lines(line: str, expected: tuple[int | None, int | None]) -> None:
    """A line is a line of a file, or the finding is about the file."""
    place = only(report(finding(line=line))).location
    assert (place.start_line, place.end_line) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("critical", Severity.CRITICAL, id="critical"),
        pytest.param(" **Blocker** ", Severity.CRITICAL, id="blocker"),
        pytest.param("High", Severity.WARNING, id="high"),
        pytest.param("info", Severity.SUGGESTION, id="info"),
        pytest.param("P1", Severity.WARNING, id="unknown"),
        pytest.param("", Severity.WARNING, id="missing"),
    ],
)
def test_severities(word: str, expected: Severity) -> None:
    """Only the three severities are handed on; a word nobody knows is a warning and a problem."""
    assert only(report(finding(severity=word))).severity is expected


def test_each_finding_stands_alone() -> None:
    """A bad one does not take its neighbours along, and duplicates count once."""
    text = report("<finding></finding>", finding(), finding(), finding(title="Other"))
    parsed = parse_findings(text, "general", KNOWN)
    assert [found.ref for found in parsed.findings] == ["general-1", "general-2"]
    assert [found.title for found in parsed.findings] == ["Leak", "Other"]


@pytest.mark.parametrize(
    ("suggestion", "expected"),
    [
        pytest.param("\n    a = 1\n    b = 2\n", "    a = 1\n    b = 2", id="indentation-stays"),
        pytest.param("```py\n  a = 1\n```", "  a = 1", id="fence-goes"),
        pytest.param(" \n ", None, id="blank"),
        pytest.param("x = a &lt; b", "x = a < b", id="escaped"),
    ],
)
def test_suggestions(suggestion: str, expected: str | None) -> None:
    """Replacement code keeps its indentation and has no fence."""
    text = report(finding(more=f"<suggestion>{suggestion}</suggestion>"))
    assert only(text).suggestion == expected


REVIEW = f"""<review>
<summary>Adds a thing. Uses `<summary>` & more.</summary>
<findings>
<finding source="security-1 general-2"><path>src/a.py</path><line>5</line>
<severity>critical</severity><category>injection</category><title>Injection</title>
<body>Bad.</body><production_risk>The site stops.</production_risk></finding>
<finding id="f2" source="general-9"><path>gone/elsewhere.py</path><severity>suggestion</severity>
<title>Old</title><body>Still.</body><trivial>true</trivial></finding>
</findings>
<verdict>approve</verdict>
<carried>
<item id="F1" state="fixed">a.py:3 has the check</item>
<item id="F2" state="open">unchanged</item>
<item id="F3" state="maybe">?</item>
</carried>
<dropped>
<item source="general-3" reason="false-positive">{escape("a < b")}</item>
<item source="general-4" reason="boring">no</item>
</dropped>
</review>"""


def test_a_review() -> None:
    """Everything the coordinator may say arrives; a verdict is not among it."""
    parsed = parse_review(REVIEW, KNOWN)
    assert parsed.outcome is ParseOutcome.OK
    assert parsed.summary == "Adds a thing. Uses `<summary>` & more."
    first, second = parsed.judged
    assert (first.refs, first.short_id) == (("security-1", "general-2"), None)
    assert (first.finding.reviewer, first.finding.ref) == ("security", "security-1")
    assert first.finding.production_risk == "The site stops."
    assert (second.short_id, second.refs, second.finding.trivial) == ("F2", ("general-9",), True)
    assert second.finding.location.path == "gone/elsewhere.py"
    assert [(claim.short_id, claim.state) for claim in parsed.carried] == [
        ("F1", CarriedState.FIXED),
        ("F2", CarriedState.OPEN),
    ]
    (dropped,) = parsed.dropped
    assert (dropped.refs, dropped.reason, dropped.why) == (
        ("general-3",),
        DropReason.FALSE_POSITIVE,
        "a < b",
    )
    assert len(parsed.problems) == 2


def test_two_states_for_one_id_count_as_open() -> None:
    """A contradiction never closes anything."""
    text = REVIEW.replace('id="F2" state="open"', 'id="F1" state="open"')
    assert [claim.state for claim in parse_review(text, KNOWN).carried] == [CarriedState.OPEN]


@pytest.mark.parametrize(
    ("text", "finish", "outcome"),
    [
        pytest.param("", FinishReason.STOP, ParseOutcome.FAILED, id="empty"),
        pytest.param("LGTM, approve!", FinishReason.STOP, ParseOutcome.FAILED, id="prose"),
        pytest.param("<review></review>", FinishReason.STOP, ParseOutcome.FAILED, id="nothing"),
        pytest.param(
            "<review><summary>Fine.</summary></review>",
            FinishReason.STOP,
            ParseOutcome.FAILED,
            id="findings-missing",
        ),
        pytest.param(
            "<review><summary>Fine.</summary><findings/></review>",
            FinishReason.STOP,
            ParseOutcome.OK,
            id="nothing-found",
        ),
        pytest.param(
            "<summary>Fine.</summary><findings/>",
            FinishReason.STOP,
            ParseOutcome.OK,
            id="root-missing",
        ),
        pytest.param(
            REVIEW[: REVIEW.index("<dropped>")], FinishReason.STOP, ParseOutcome.OK, id="not-closed"
        ),
        pytest.param(
            REVIEW[: REVIEW.index('<item id="F2"') + 20],
            FinishReason.STOP,
            ParseOutcome.PARTIAL,
            id="cut-in-carried",
        ),
        pytest.param(REVIEW, FinishReason.LENGTH, ParseOutcome.PARTIAL, id="length"),
        pytest.param(
            "<review><summary>Fine", FinishReason.LENGTH, ParseOutcome.PARTIAL, id="cut-early"
        ),
    ],
)
def test_review_outcomes(text: str, finish: FinishReason, outcome: ParseOutcome) -> None:
    """A review without its findings element, or cut off, is never a whole review."""
    assert parse_review(text, KNOWN, finish).outcome is outcome


def test_a_fix_report() -> None:
    """Fixed and declined by id; said both ways it is declined."""
    text = (
        '<fix_report><fixed id="F1">bound `a < b`</fixed><fixed id="F2">x</fixed>'
        '<declined id="F2">no</declined><fixed>who</fixed><summary>Done.</summary></fix_report>'
    )
    parsed = parse_fix_report(text)
    assert parsed.outcome is ParseOutcome.OK
    assert parsed.fixed == (("F1", "bound `a < b`"),)
    assert parsed.declined == (("F2", "no"),)
    assert parsed.summary == "Done."
    assert len(parsed.problems) == 2
    assert parse_fix_report("done").outcome is ParseOutcome.FAILED
    assert parse_fix_report(text, FinishReason.LENGTH).outcome is ParseOutcome.PARTIAL


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    *("<findings>", "</findings>", "<finding>", "</finding>", "<path>", "</path>"),
                    *("<body>", "</body>", "<line>", "</line>", "<also>", "</also>", "<title>"),
                    *("<review>", "</review>", "<summary>", "<carried>", "<item id='F1'>", "x"),
                    *("<think>", "</think>", "<![CDATA[", "]]>", "&amp;", "\n", "<fix_report>"),
                ]
            ),
            max_size=40,
        ).map("".join),
    ),
    st.sampled_from(FinishReason),
)
def test_nothing_makes_the_readers_raise(text: str, finish: FinishReason) -> None:
    """Whatever comes, it ends as a value; failed hands nothing on."""
    for parsed in (
        parse_findings(text, "general", KNOWN, finish),
        parse_review(text, KNOWN, finish),
        parse_fix_report(text, finish),
    ):
        assert parsed.outcome in ParseOutcome
    failed = parse_findings(text, "general", KNOWN, finish)
    assert failed.outcome is not ParseOutcome.FAILED or failed.findings == ()


@given(st.text(), st.text(), st.one_of(st.none(), st.text(min_size=1)))
def test_reviewer_results_can_be_read_back(title: str, body: str, suggestion: str | None) -> None:
    """Whatever a reviewer wrote, it cannot leave its place in the coordinator's message."""
    reported = ReportedFinding(
        ref="security-1",
        reviewer="security",
        location=Location("src/a.py", 3, 4),
        severity=Severity.CRITICAL,
        category="injection",
        title=title or "t",
        body=body,
        suggestion=suggestion,
    )
    outcomes = [
        ReviewerOutcome(AgentName.SECURITY, ParseOutcome.OK, (reported,)),
        ReviewerOutcome(AgentName.GENERAL, ParseOutcome.FAILED, reason="timeout"),
    ]
    text = render_reviewer_results(outcomes)
    grammar = {
        "reviewer_results": frozenset({"reviewer"}),
        "reviewer": frozenset({"finding"}),
        "finding": frozenset({"path", "title", "body"}),
    }
    root = scan(text, "reviewer_results", grammar)
    assert root is not None
    first, second = root.all("reviewer")
    assert dict(first.children[0].attributes) == {"ref": "security-1"}
    assert len(first.children) == 1
    assert dict(second.attributes) == {"name": "general", "status": "failed", "reason": "timeout"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<findings>" * 20_000, id="roots"),
        pytest.param("<finding>" * 20_000, id="findings"),
        pytest.param("<findings><finding>" + "<body>" * 20_000, id="bodies"),
        pytest.param("<think>" * 20_000, id="thoughts"),
        pytest.param("<![CDATA[" * 20_000, id="cdata"),
        pytest.param("<findings><finding><body>" + "<![CDATA[" * 20_000 + "]]>", id="cdata-inside"),
        pytest.param("<body " * 20_000, id="attributes"),
        pytest.param("</body>" * 20_000, id="closing"),
        pytest.param("<" + " " * 100_000, id="spaces"),
        pytest.param(report(finding(path="(" * 50_000 + ":1")), id="path"),
        pytest.param(report(finding(line="<line>" + "1-" * 40_000 + "</line>")), id="line"),
    ],
)
def test_reading_time_is_linear(text: str) -> None:
    """A hundred thousand hostile characters cost a fraction of a second."""
    began = time.process_time()
    parse_findings(text, "general", KNOWN)
    parse_review(text, KNOWN)
    assert time.process_time() - began < 2.0
