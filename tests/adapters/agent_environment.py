"""`agent-environment`: what programs that we start for a review or a fix can see of ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import patch

from app.fixer.verify import verify
from app.git.process import git
from tests.adapters.case import Case, only_knows

SHOW = (
    "import os, pathlib; "
    "pathlib.Path('seen').write_bytes(b'\\0'.join(map(b'='.join, os.environb.items())))"
)


async def check(case: Case, tmp_path: Path) -> None:
    """Agents run in our own process and have no shell; these are the programs near them."""
    only_knows(case.expect, "agent_env_never_has", "agent_env_has", "no_value_contains")
    own = {name: str(value) for name, value in case.input["parent_env"].items()}
    with patch.dict(os.environ, own, clear=True):
        verified = await verify([sys.executable, "-c", SHOW], tmp_path)
        assert verified.passed, verified.output
        seen_by_check = _read((tmp_path / "seen").read_bytes())
        shown = await git(["-c", "alias.show-all=!env -0", "show-all"], cwd=tmp_path)
    for seen in (seen_by_check, _read(shown)):
        assert not set(case.expect.get("agent_env_never_has", ())) & set(seen)
        assert set(case.expect.get("agent_env_has", ())) <= set(seen)
        for words in case.expect.get("no_value_contains", ()):
            assert not any(words in value for value in seen.values())


def _read(raw: bytes) -> dict[str, str]:
    pairs = (part.decode().partition("=") for part in raw.split(b"\0") if part)
    return {name: value for name, _, value in pairs}
