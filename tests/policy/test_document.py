"""Policy YAML: plain data with lines, and nothing that a hostile file could use."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.errors import PolicyError
from app.policy.document import MAX_BYTES, JsonValue, read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment\n", None, id="a comment"),
        pytest.param("a:", {"a": None}, id="a key without value"),
        pytest.param("a: off", {"a": "off"}, id="off is a word"),
        pytest.param("a: yes", {"a": "yes"}, id="yes is a word"),
        pytest.param("a: true", {"a": True}, id="true"),
        pytest.param("a: 'true'", {"a": "true"}, id="true in quotes"),
        pytest.param("a: 12", {"a": 12}, id="a whole number"),
        pytest.param("a: 1:30", {"a": "1:30"}, id="no sexagesimal numbers"),
        pytest.param("a: 010", {"a": 10}, id="no octal numbers"),
        pytest.param("a: 0.5", {"a": 0.5}, id="a number"),
        pytest.param("a: .inf", {"a": ".inf"}, id="no infinity"),
        pytest.param("a: 1e999", {"a": "1e999"}, id="no overflow to infinity"),
        pytest.param("a: 2020-01-01", {"a": "2020-01-01"}, id="a date is text"),
        pytest.param("1: x", {"1": "x"}, id="keys are text"),
        pytest.param("a: [b, {c: 1}]", {"a": ["b", {"c": 1}]}, id="nested"),
        pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="a block of text"),
        pytest.param("\ufeffa: 1", {"a": 1}, id="a byte order mark"),
        pytest.param("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, id="Windows line ends"),
        pytest.param('a: "\\u00e9"', {"a": "é"}, id="an escape"),
    ],
)
def test_reads_plain_data(text: str, value: JsonValue) -> None:
    """Words mean what YAML 1.2's core schema says, and dates, octals and infinities stay text."""
    assert read_document(text, "p").value == value


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        pytest.param("a: &x [1]\nb: *x\n", 2, "alias", id="an alias"),
        pytest.param("a: !!python/object:os.x {}\n", 1, "tag", id="a tag"),
        pytest.param("a: 1\nb: 2\na: 3\n", 3, "twice (first on line 1)", id="a key twice"),
        pytest.param("x:\n  a: 1\n  a: 1\n", 3, "twice (first on line 2)", id="a nested key twice"),
        pytest.param("a: 1\n---\nb: 1\n", 2, "second YAML document", id="two documents"),
        pytest.param("? [a]\n: 1\n", 1, "as a key", id="a list as key"),
        pytest.param("a: " + "[" * 30 + "]" * 30, 1, "deeper", id="too deep"),
        pytest.param("a: [1\nb: 2\n", 2, "not valid YAML", id="an open bracket"),
        pytest.param("a: 1\n\tb: 2\n", 2, "not valid YAML", id="a tab"),
        pytest.param('a: 1\nb: "\\ud800"\n', 2, "surrogate", id="half a character"),
    ],
)
def test_refuses_with_the_line(text: str, line: int, word: str) -> None:
    """What a policy does not need is refused where it stands."""
    with pytest.raises(PolicyError) as caught:
        read_document(text, "the file")
    assert str(caught.value).startswith(f"the file line {line}: ")
    assert word in str(caught.value)


def test_refuses_what_is_not_text() -> None:
    """Bytes that are not UTF-8 are refused with their line; a control character too."""
    with pytest.raises(PolicyError, match="line 2: not UTF-8"):
        read_document(b"a: 1\nb: \xff\n", "p")
    with pytest.raises(PolicyError, match="not valid YAML"):
        read_document("a: \x07", "p")


def test_size_is_capped() -> None:
    """64 KiB are read, one byte more is not, counted in bytes and not in characters."""
    assert read_document("#" * MAX_BYTES, "p").value is None
    for text in ("#" * (MAX_BYTES + 1), "é" * (MAX_BYTES // 2 + 1)):
        with pytest.raises(PolicyError, match="at most 65536"):
            read_document(text, "p")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * MAX_BYTES, id="brackets"),
        pytest.param("{" * MAX_BYTES, id="braces"),
        pytest.param("- " * (MAX_BYTES // 2), id="dashes"),
        pytest.param("? " * (MAX_BYTES // 2), id="question marks"),
        pytest.param("a: {" + "b," * 30000, id="a long flow mapping"),
        pytest.param("a:\n" + " - b\n" * 13000, id="a long list"),
        pytest.param("'" * MAX_BYTES, id="quotes"),
        pytest.param("a: &" + "x" * 60000, id="a long anchor"),
    ],
)
def test_no_small_file_takes_long(text: str) -> None:
    """The largest file of any shape is read or refused in seconds, without deep recursion."""
    start = time.monotonic()
    with contextlib.suppress(PolicyError):
        read_document(text, "p")
    assert time.monotonic() - start < 10


def test_lines_are_those_of_keys_and_items() -> None:
    """Every key and item is found again on its line; a missing key is on its parent's."""
    document = read_document("a: 1\nb:\n  c:\n    - x\n    - y: 2\n", "p")
    assert document.line_of(("a",)) == 1
    assert document.line_of(("b", "c")) == 3
    assert document.line_of(("b", "c", 0)) == 4
    assert document.line_of(("b", "c", 1, "y")) == 5
    assert document.line_of(("b", "c", 1, "missing")) == 5
    assert document.line_of(("nowhere",)) == 1


# Beyond U+FFFF, JSON escapes a character as two halves, which YAML does not join.
json_text = st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | json_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_text, inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_json_is_read_as_it_is(value: JsonValue) -> None:
    """A JSON text is YAML, and reads back equal."""
    assert read_document(json.dumps(value), "p").value == value


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`? \n\t\\\ud800\ue000é0.~,", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the file says, the answer is plain JSON data or a PolicyError."""
    try:
        value = read_document(text, "p").value
    except PolicyError:
        return
    text_of_it = json.dumps(value, allow_nan=False).encode()
    assert json.loads(text_of_it) == value


@given(st.dictionaries(st.text("abc", min_size=1), st.text("xyz 1é", max_size=5), max_size=4))
def test_agrees_with_the_yaml_writer(value: dict[str, str]) -> None:
    """What a YAML writer wrote as text is read as that text."""
    text = yaml.safe_dump(value, default_style='"', allow_unicode=True)
    assert read_document(text, "p").value == value
