"""Lines and numbers are taken from the tools' own rendering, and removed lines are never seen."""

from __future__ import annotations

import pytest

from app.sandbox.model.conversation import Conversation, Exchange
from app.sandbox.model.seen import Reading, content_of, reading_of, seen_lines
from tests.sandbox.model.builders import numbered, patch


def exchange(
    text: str, *, name: str = "read_file", is_error: bool = False, **more: int
) -> Exchange:
    return Exchange(name, {"path": "a.py", **more}, text, is_error)


def seen(item: Exchange) -> list[tuple[str, int, str, bool]]:
    conversation = Conversation("security", frozenset(), "", (item,), 2)
    return [(line.path, line.number, line.text, line.added) for line in seen_lines(conversation)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([("+", "x")], [(7, "x", True)], id="added"),
        pytest.param([(" ", "x")], [(7, "x", False)], id="context"),
        pytest.param([("-", "x")], [], id="removed"),
        pytest.param([("-", "x"), ("+", "y")], [(7, "y", True)], id="replaced"),
        pytest.param([("-", "     1      1  x")], [], id="removed line that looks like context"),
        pytest.param([("-", "            1 +x")], [], id="removed line that looks added"),
        pytest.param([("+", "+x")], [(7, "+x", True)], id="text that begins with a sign"),
        pytest.param([(" ", "  x")], [(7, "  x", False)], id="indentation is kept"),
        pytest.param([(" ", "+ x")], [(7, "+ x", False)], id="context that begins with a plus"),
        pytest.param([("+", "")], [(7, "", True)], id="empty line"),
        pytest.param([("+", "a\x0cb\u2028c")], [(7, "a\x0cb\u2028c", True)], id="odd separators"),
        pytest.param([("+", "x\r")], [(7, "x", True)], id="carriage return"),
    ],
)
def test_patch_lines(rows: list[tuple[str, str]], expected: list[tuple[int, str, bool]]) -> None:
    """Only lines of the new side count, with the new side's numbers."""
    item = exchange(patch("a.py", rows, old=3, new=7), name="read_patch")
    assert [line[1:] for line in seen(item)] == expected


@pytest.mark.parametrize("number", [1, 999_999, 1_000_000, 12_345_678])
@pytest.mark.parametrize("sign", ["+", " "])
def test_wide_numbers_are_read(number: int, sign: str) -> None:
    """The columns are at least six wide, not at most."""
    item = exchange(patch("a.py", [(sign, "x")], old=number, new=number), name="read_patch")
    assert seen(item) == [("a.py", number, "x", sign == "+")]


def test_the_header_names_the_file() -> None:
    """What a patch says it is about goes before what was asked for."""
    item = exchange(patch("other name.py", [("+", "x")]), name="read_patch")
    assert seen(item)[0][0] == "other name.py"


def test_errors_and_other_tools_show_nothing() -> None:
    """An error's text, or a search's, is not a line of a file."""
    assert seen(exchange(numbered("x"), is_error=True)) == []
    assert seen(exchange(numbered("x"), name="grep")) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(exchange(numbered("a\nb")), Reading.WHOLE, id="whole"),
        pytest.param(exchange(""), Reading.WHOLE, id="empty file"),
        pytest.param(exchange(numbered("a"), start_line=2), Reading.PART, id="range"),
        pytest.param(exchange("     5\ta"), Reading.PART, id="does not begin at 1"),
        pytest.param(
            exchange(numbered("a") + "\n… truncated, 40 more lines"), Reading.PART, id="cut"
        ),
        pytest.param(
            exchange(numbered("a\nb")[:-1] + "\n[cut: 9 of 12 characters shown]\n\nA last note."),
            Reading.PART,
            id="cut, with a note behind",
        ),
        pytest.param(
            exchange(numbered("# cut here, truncated, 3 more lines") + "\n\nYour last call."),
            Reading.WHOLE,
            id="a file about cuts, with a note behind",
        ),
        pytest.param(exchange("a.py does not exist"), Reading.MISSING, id="missing"),
        pytest.param(exchange("Not found", is_error=True), Reading.MISSING, id="missing, as error"),
        pytest.param(exchange("a.py is withheld"), Reading.REFUSED, id="refused"),
        pytest.param(exchange("", is_error=True), Reading.REFUSED, id="error without words"),
        pytest.param(
            exchange(numbered('"""no such file"""')), Reading.WHOLE, id="a file about missing files"
        ),
    ],
)
def test_what_a_read_establishes(item: Exchange, expected: Reading) -> None:
    """Only a whole read, or the word that there is no file, can show that a line is gone."""
    assert reading_of(item) is expected


def test_content_is_the_file_without_numbers() -> None:
    """Tabs and blank lines of the source survive."""
    text = "\tindented\n\n  two  \nend"
    assert content_of(exchange(numbered(text))) == text
