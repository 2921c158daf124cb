"""What counts as a command in a comment (app/commands/grammar.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.commands.grammar import Command, Fix, Review, Unknown, parse


@pytest.mark.parametrize(
    ("body", "commands"),
    [
        pytest.param("/mergeward review", (Review(),), id="review"),
        pytest.param("/MERGEWARD Review", (Review(),), id="any-case"),
        pytest.param(
            "Thanks!\r\n\r\n/mergeward fix F1 f3\r\n", (Fix(("F1", "F3")),), id="own-line"
        ),
        pytest.param("/mergeward fix all", (Fix(()),), id="all"),
        pytest.param("/mergeward fix F1\n/mergeward fix F1", (Fix(("F1",)),), id="once"),
        pytest.param("/mergeward fix", (Unknown("fix"),), id="fix-what"),
        pytest.param("/mergeward fix F0", (Unknown("fix F0"),), id="no-such-id"),
        pytest.param("/mergeward dance", (Unknown("dance"),), id="unknown-verb"),
        pytest.param("please /mergeward review", (), id="inside-a-sentence"),
        pytest.param("/mergewardreview", (), id="another-word"),
        pytest.param("> /mergeward review", (), id="quoted"),
        pytest.param("```\n/mergeward review\n```", (), id="fenced"),
        pytest.param("````\n```\n/mergeward review\n````", (), id="longer-fence"),
        pytest.param("~~~\n/mergeward review", (), id="unclosed-fence"),
        pytest.param("```\nx\n```\n/mergeward review", (Review(),), id="after-a-fence"),
        pytest.param("    /mergeward review", (), id="indented-code"),
        pytest.param("`/mergeward review`", (), id="inline-code"),
        pytest.param("<!-- \n/mergeward review\n-->", (), id="html-comment"),
        pytest.param("<!-- /mergeward review", (), id="unclosed-html-comment"),
    ],
)
def test_a_command_is_a_line_of_its_own(body: str, commands: tuple[Command, ...]) -> None:
    """Only a spoken line that starts with the trigger is a command."""
    assert parse(body) == commands


@given(st.text())
def test_any_text_can_be_read(body: str) -> None:
    """No comment can make the grammar fail, and without the trigger nothing is a command."""
    commands = parse(body)
    assert all(isinstance(item, (Review, Fix, Unknown)) for item in commands)
    assert commands == () or "/mergeward" in body.casefold()
