"""The port is light, and both forges are it."""

from __future__ import annotations

import subprocess
import sys

from app.forges.github.writes import GitHubForge
from app.forges.port import Forge
from app.forges.recording import RecordingForge

LIGHT = "import sys, app.forges.port, app.forges.apply; print('githubkit' in sys.modules)"


def test_port_is_light() -> None:
    """Stories and the command line import the port without paying for githubkit."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_both_are_forges() -> None:
    """mypy checks these two assignments; at run time they only have to exist."""
    kinds: tuple[type[Forge], ...] = (GitHubForge, RecordingForge)
    assert len(kinds) == 2
