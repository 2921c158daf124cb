"""`make` on a machine that lacks something says in one line how to get it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODERN = 'case "$2" in *ensurepip*) exit {venv};; *print*) echo "$ANSWER";; *) exit 0;; esac'
OLD = "exit 1"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder to be the whole PATH: it holds a modern Python and git."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "python3", MODERN.format(venv=0))
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    """Put a shell script named `name` into `folder`."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def tools(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check of the machine with `folder` as the PATH."""
    make = shutil.which("make")
    assert make is not None
    return subprocess.run(
        [make, "--no-print-directory", "tools"],
        cwd=ROOT,
        env={"PATH": str(folder), "ANSWER": "python3-venv"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_complete_machine_is_silent(machine: Path) -> None:
    """Nothing is said when nothing is missing."""
    result = tools(machine)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def complaint(folder: Path) -> str:
    """The one line before make's own."""
    result = tools(folder)
    assert result.returncode == 2
    lines = [line for line in result.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1
    return lines[0]


def test_no_python(machine: Path) -> None:
    """Without Python the line installs it."""
    (machine / "python3").unlink()
    assert "sudo apt-get install -y python3 python3-venv git" in complaint(machine)


def test_an_old_python(machine: Path) -> None:
    """An old `python3` alone is not enough; the line names a newer package."""
    program(machine, "python3", OLD)
    assert "python3.11-venv" in complaint(machine)


def test_an_old_python_beside_a_newer(machine: Path) -> None:
    """A newer Python under its own name is found without being told."""
    program(machine, "python3", OLD)
    program(machine, "python3.12", MODERN.format(venv=0))
    assert tools(machine).returncode == 0


def test_no_venv(machine: Path) -> None:
    """Debian ships Python without venv; the line installs it."""
    program(machine, "python3", MODERN.format(venv=1))
    assert complaint(machine) == "Python's venv is missing: sudo apt-get install -y python3-venv"


def test_no_git(machine: Path) -> None:
    """Without git the line installs it."""
    (machine / "git").unlink()
    assert "sudo apt-get install -y git" in complaint(machine)


def test_help_lists_the_main_targets() -> None:
    """`make` alone says what there is, and starts nothing."""
    result = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for target in ("install", "demo", "test", "lint", "fmt", "lock", "build", "clean"):
        assert f"make {target} " in result.stdout
