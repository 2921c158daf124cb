"""The commands as a person meets them: help, exit codes, policy files, the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store.migrate import HEAD
from tests.cli.cli_stage import mergeward

COMMANDS = [
    pytest.param((), id="mergeward"),
    pytest.param(("demo",), id="demo"),
    pytest.param(("review",), id="review"),
    pytest.param(("serve",), id="serve"),
    pytest.param(("agents",), id="agents"),
    pytest.param(("log",), id="log"),
    pytest.param(("spend",), id="spend"),
    pytest.param(("db", "upgrade"), id="db upgrade"),
    pytest.param(("db", "downgrade"), id="db downgrade"),
    pytest.param(("policy", "check"), id="policy check"),
    pytest.param(("policy", "explain"), id="policy explain"),
    pytest.param(("version",), id="version"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(command: tuple[str, ...]) -> None:
    """Each command says what it does, and what its exit codes mean."""
    result = mergeward(*command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: " in result.stdout
    said = " ".join(result.stdout.lower().split())
    assert "exit code" in said


def test_an_unknown_option_is_no_finding() -> None:
    """2, like everything that could not be carried out; 1 is for findings."""
    result = mergeward("review", "--severity", "high")
    assert result.returncode == 2
    assert "--severity" in result.stderr


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        pytest.param("", 0, "is valid. Reviews of people's", id="empty"),
        pytest.param("mode: shadow\n", 0, "is valid. Shadow mode", id="valid"),
        pytest.param("mood: live\n", 2, "line 1: mood: there is no such key", id="unknown key"),
        pytest.param("mode: off\n", 2, 'line 1: mode: "off" is not allowed', id="wrong value"),
        pytest.param("a: [\n", 2, "not valid YAML", id="no YAML"),
        pytest.param("mode: \x1b[31m\n", 2, "policy.yml", id="control characters"),
        pytest.param(None, 2, "There is no file", id="no file"),
    ],
)
def test_a_policy_is_checked(tmp_path: Path, text: str | None, code: int, words: str) -> None:
    """Valid: one line on stdout. Not: file, line and key on stderr."""
    file = tmp_path / "policy.yml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    result = mergeward("policy", "check", str(file))
    said, silent = (result.stdout, result.stderr) if code == 0 else (result.stderr, result.stdout)
    assert (result.returncode, silent) == (code, "")
    assert words in said
    assert "\x1b" not in said
    assert said.count("\n") == 1


def test_a_policy_is_explained(tmp_path: Path) -> None:
    """Sentence by sentence."""
    file = tmp_path / "policy.yml"
    file.write_text("human_prs: gate\n", encoding="utf-8")
    result = mergeward("policy", "explain", str(file))
    assert result.returncode == 0
    assert result.stdout.startswith("Reviews of people's pull requests gate: ")
    assert len(result.stdout.splitlines()) > 3


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    """What can't be read is named with the system's reason."""
    result = mergeward("policy", "check", str(tmp_path))
    assert result.returncode == 2
    assert "can't be read: Is a directory" in result.stderr


def test_the_database_goes_up_and_down(tmp_path: Path) -> None:
    """Each move says where the tables are then, and never a password."""
    data = {"MERGEWARD_DATA_DIR": str(tmp_path)}
    up = mergeward("db", "upgrade", variables=data)
    assert (up.returncode, up.stderr) == (0, "")
    assert up.stdout.endswith(f"/mergeward.db is at revision {HEAD}; the newest is {HEAD}.\n")
    down = mergeward("db", "downgrade", "base", variables=data)
    assert "is at revision none" in down.stdout
    lost = mergeward("db", "upgrade", "nowhere", variables=data)
    assert (lost.returncode, lost.stdout) == (2, "")
    assert "The revision 'nowhere' can't be reached" in lost.stderr


def test_a_setting_that_is_wrong_is_named() -> None:
    """The variable, not a traceback."""
    result = mergeward(
        "db", "upgrade", variables={"MERGEWARD_DATABASE_URL": "mysql://root:hidden@db/x"}
    )
    assert result.returncode == 2
    assert "MERGEWARD_DATABASE_URL" in result.stderr
    assert "hidden" not in result.stderr


def test_version() -> None:
    """As installed."""
    result = mergeward("version")
    assert result.returncode == 0
    assert result.stdout.strip()
