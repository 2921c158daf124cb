"""Answers in JSON where elements were asked for: findings are read, "nothing" is not believed."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.findings_xml import ParseOutcome, parse_findings, parse_fix_report, parse_review
from app.agents.lenient_json import Object, Scalar, read_values
from app.agents.port import FinishReason
from app.domain.findings import CarriedState, DropReason, Location
from loop_guards import Severity

KNOWN = ("src/a.py", "README.md")
ONE = {"path": "src/a.py", "line": 5, "severity": "warning", "title": "Leak", "body": "It leaks."}
TWO = {**ONE, "line": 9, "title": "Other"}


def titles(text: str, finish: FinishReason = FinishReason.STOP) -> tuple[str, list[str]]:
    parsed = parse_findings(text, "general", KNOWN, finish)
    return parsed.outcome.value, [found.title for found in parsed.findings]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"findings": [ONE, TWO]}), id="object"),
        pytest.param(json.dumps([ONE, TWO]), id="list"),
        pytest.param(f"{json.dumps(ONE)}\n{json.dumps(TWO)}", id="lines"),
        pytest.param(f"```json\n{json.dumps({'findings': [ONE, TWO]})}\n```", id="fenced"),
        pytest.param(f"Here: {json.dumps({'findings': [ONE, TWO]})} Done.", id="prose-around"),
        pytest.param(
            f'<think>{{"findings": [{{"title": "draft"}}]}}</think>{json.dumps([ONE, TWO])}',
            id="thoughts",
        ),
        pytest.param(f"First {{x}} and [1]. {json.dumps({'findings': [ONE, TWO]})}", id="braces"),
        pytest.param(f'{{"findings": []}} no: {json.dumps({"findings": [ONE, TWO]})}', id="draft"),
        pytest.param(
            json.dumps({"findings": [{**ONE, "evidence": "<findings/>"}, TWO]}),
            id="our-element-quoted",
        ),
        pytest.param(
            json.dumps({"findings": [{**ONE, "body": "<finding><title>x</title></finding>"}, TWO]}),
            id="our-finding-quoted",
        ),
        pytest.param(
            "{ // all\n'findings': [" + str(ONE) + ",\n /* and */ " + str(TWO) + ",],}",
            id="comments-commas-single-quotes",
        ),
        pytest.param(
            '{"findings":[' + json.dumps(ONE) + "],'findings':[" + str(TWO) + "]}", id="twice"
        ),
    ],
)
def test_findings_in_json_are_findings(text: str) -> None:
    """However it is wrapped, every finding arrives."""
    assert titles(text) == ("ok", ["Leak", "Other"])


def test_every_field_arrives() -> None:
    """Numbers, lists and objects mean what our elements mean."""
    given_finding = {
        **ONE,
        "line": None,
        "start_line": 3,
        "end_line": "4",
        "suggestion": "if a < b && c:\n\tpass",
        "also": ["README.md", "src/ghost.py"],
        "evidence": "src/a.py:3 `\\d+`",
        "trivial": True,
    }
    (found,) = parse_findings(json.dumps({"findings": [given_finding]}), "general", KNOWN).findings
    assert found.location == Location("src/a.py", 3, 4)
    assert found.suggestion == "if a < b && c:\n\tpass"
    assert (found.also, found.trivial) == (("README.md",), True)
    assert found.evidence == "src/a.py:3 `\\d+`"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"findings": []}', id="empty-list"),
        pytest.param('{"findings": null}', id="null"),
        pytest.param('{"findings": "none"}', id="word"),
        pytest.param('{"findings": [{}]}', id="empty-finding"),
        pytest.param('{"findings": [{"path": "src/a.py"}]}', id="nothing-said"),
        pytest.param("[]", id="list"),
        pytest.param("{}", id="object"),
        pytest.param('{"result": "ok", "issues": 0}', id="other-keys"),
        pytest.param('{"findings": [{"title": ', id="cut-at-once"),
        pytest.param('{"findings": [', id="cut-in-the-list"),
        pytest.param('{"findings"', id="cut-in-the-key"),
        pytest.param('{"findings": [{"title": "x"} oops', id="broken"),
        pytest.param('<think>{"findings": [{"title": "x"}]}</think>', id="only-in-thoughts"),
    ],
)
@pytest.mark.parametrize("finish", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.UNKNOWN])
def test_json_never_means_nothing_found(text: str, finish: FinishReason) -> None:
    """Nothing found is said in our form; anything else is asked for again."""
    outcome, found = titles(text, finish)
    assert outcome != "ok"
    assert found == []


@given(st.integers(0, 300), st.sampled_from([FinishReason.STOP, FinishReason.LENGTH]))
def test_no_cut_is_a_whole_answer(at: int, finish: FinishReason) -> None:
    """Wherever it is cut, whatever the model says of its end: what is whole is kept, no more."""
    whole = json.dumps({"findings": [ONE, TWO]})
    outcome, found = titles(whole[:at], finish)
    if at >= len(whole):
        assert found == ["Leak", "Other"]
    else:
        assert outcome != "ok"
        assert found == ["Leak", "Other"][: len(found)]


def test_a_review_in_json() -> None:
    """The coordinator's answer in JSON says the same as in elements, its ids and states too."""
    answer = {
        "review": {
            "summary": "Adds a thing.",
            "findings": [
                {**ONE, "severity": "critical", "source": ["security-1", "general-2"]},
                {**TWO, "id": "F2"},
            ],
            "carried": [{"id": "F1", "state": "fixed", "evidence": "a.py:3"}],
            "dropped": [{"source": "general-3", "reason": "false_positive", "why": "no"}],
        }
    }
    for text in (json.dumps(answer), json.dumps(answer["review"])):
        parsed = parse_review(text, KNOWN)
        assert parsed.outcome is ParseOutcome.OK
        first, second = parsed.judged
        assert (first.refs, first.finding.severity) == (
            ("security-1", "general-2"),
            Severity.CRITICAL,
        )
        assert second.short_id == "F2"
        assert [(c.short_id, c.state, c.evidence) for c in parsed.carried] == [
            ("F1", CarriedState.FIXED, "a.py:3")
        ]
        assert [(d.refs, d.reason, d.why) for d in parsed.dropped] == [
            (("general-3",), DropReason.FALSE_POSITIVE, "no")
        ]
    empty = parse_review('{"summary": "Fine.", "findings": [], "carried": []}', KNOWN)
    assert empty.outcome is ParseOutcome.FAILED


def test_a_fix_report_in_json() -> None:
    """The fixer's, too."""
    text = '{"fixed": [{"id": "F1", "text": "bound"}], "declined": [{"id": "F2", "why": "no"}]}'
    parsed = parse_fix_report(text)
    assert (parsed.fixed, parsed.declined) == ((("F1", "bound"),), (("F2", "no"),))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abc_", min_size=1), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(alphabet="abc_", min_size=1), JSON), st.text(alphabet="ab .\n<>"))
def test_what_is_json_is_read_as_json(value: dict[str, object], around: str) -> None:
    """A whole value is never called cut, nor read as another one."""
    (found,) = read_values(f"{around}{json.dumps(value)}{around}")
    assert isinstance(found, Object)
    assert not found.cut
    assert [key for key, _ in found.pairs] == list(value)
    texts = [(key, inner.text) for key, inner in found.pairs if isinstance(inner, Scalar)]
    assert all(text == value[key] for key, text in texts if isinstance(value[key], str))


@given(st.text(alphabet="{}[]\"',:\\/*\n ab1findings", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever stands there: values, or none."""
    read_values(text)
    assert titles(text)[0] in ("ok", "partial", "failed")


def test_deep_nesting_is_refused() -> None:
    """It costs no stack, and is no answer."""
    assert titles('{"findings":' * 5_000)[0] != "ok"
    assert titles("[" * 100_000)[0] == "failed"


@pytest.mark.parametrize(
    "part", ["{", "[", '{"findings":[', '{"a":', '{"title":"x"}\n', "//", "/*", '"', "\\", '{"a":"']
)
def test_reading_json_is_linear(part: str) -> None:
    """Two hundred thousand hostile characters cost a fraction of a second."""
    began = time.process_time()
    parse_findings(part * (200_000 // len(part)), "general", KNOWN)
    assert time.process_time() - began < 2.0
