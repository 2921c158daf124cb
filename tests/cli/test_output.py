"""What is printed cannot harm a terminal or give away a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.output import one_line, path_name, plain, shown


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("plain text\n\tindented", "plain text\n\tindented", id="nothing to do"),
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colour"),
        pytest.param("a\x1b[2J\x1b[Hb", "ab", id="clear the screen"),
        pytest.param("\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\", "here", id="link"),
        pytest.param("\x1b]0;title\x07text", "text", id="window title"),
        pytest.param("\x9b31mred", "red", id="one-byte introducer"),
        pytest.param("a\x1bcb", "ab", id="reset"),
        pytest.param("cut\x1b[", "cut", id="torn sequence"),
        pytest.param("safe\rover", "safe\nover", id="carriage return"),
        pytest.param("a\u202eb\u200bc\x00d\x08", "abcd", id="invisible"),
        pytest.param("use sk-ant-abc123def456ghi", "use [redacted]", id="secret"),
        pytest.param("sk-ant-\x1b[0mabc123def456ghi", "[redacted]", id="torn secret"),
    ],
)
def test_prose_loses_what_a_terminal_would_obey(text: str, printed: str) -> None:
    """Whole sequences go, not only their first character; secrets are seen behind them."""
    assert plain(text) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("if a\u202e:", "if a<U+202E>:", id="direction"),
        pytest.param("x\x1b[8my", "x<U+001B>[8my", id="sequence"),
        pytest.param("a\r\nb\rc", "a\nb<U+000D>c", id="line ends"),
    ],
)
def test_code_shows_what_is_hidden_in_it(text: str, printed: str) -> None:
    """A suggestion is taken over letter by letter, so nothing may vanish from sight."""
    assert shown(text) == printed


def test_a_path_is_one_line() -> None:
    """A file name may hold anything but NUL."""
    assert path_name("a\nb\t\x1b.py") == "a<U+000A>b<U+0009><U+001B>.py"


@given(st.text())
def test_nothing_that_moves_the_cursor_comes_through(text: str) -> None:
    """Whatever the text: no control character but new line and tab; titles have none."""
    for printed, allowed in ((plain(text), "\n\t"), (shown(text), "\n\t"), (one_line(text), "")):
        controls = [c for c in printed if (c < " " or "\x7f" <= c <= "\x9f") and c not in allowed]
        assert controls == []
    assert "\n" not in path_name(text)
