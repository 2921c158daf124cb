"""The built-in plugin `agents-md` (app/plugins/builtin/agents_md.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.domain.runs import AgentName
from app.errors import ConfigurationError
from app.plugins.builtin.agents_md import REPOSITORY_TEMPLATE, AgentsMdPlugin, read_template
from app.plugins.configuration import RunConfiguration
from app.plugins.lifecycle import PluginHost
from tests.plugins.factories import FACTS, base


async def made(files: Mapping[str, bytes], template: str | None = None) -> RunConfiguration:
    async def read(path: str) -> bytes | None:
        return files.get(path)

    return await PluginHost((base(), AgentsMdPlugin(template))).configured(FACTS, read)


async def test_what_instructs_machines_is_listed_with_its_length() -> None:
    """By path and lines, with what is long said; only those who judge it are told."""
    files = {"AGENTS.md": b"x\n" * 201, "CLAUDE.md": b"short", "README.md": b"y"}
    [section] = (await made(files)).context.added
    assert section.text == "before this change:\nAGENTS.md: 201 lines, over 200\nCLAUDE.md: 1 lines"
    assert section.agents == frozenset({AgentName.AGENTS_MD, AgentName.COORDINATOR})


async def test_none_is_said_too() -> None:
    """A repository without any is what the reviewer may want to change."""
    [section] = (await made({})).context.added
    assert section.text == "before this change: none at the root"


@pytest.mark.parametrize(
    ("operator", "repository", "expected"),
    [
        pytest.param("ours", b"theirs", "ours", id="the-operator-s-first"),
        pytest.param(None, b"theirs\xff", "theirs\ufffd", id="else-the-repository-s"),
        pytest.param(None, None, "", id="none"),
    ],
)
async def test_the_template(operator: str | None, repository: bytes | None, expected: str) -> None:
    """One template, from the one who decides."""
    files = {} if repository is None else {REPOSITORY_TEMPLATE: repository}
    assert (await made(files, operator)).context.agents_md_template == expected


@pytest.mark.parametrize("content", [b"", b"  \n", b"x" * 70_000, b"\xff", None])
def test_a_template_that_cannot_be_used(content: bytes | None, tmp_path: Path) -> None:
    """Said at the start, with the setting's name."""
    file = tmp_path / "t.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="MERGEWARD_AGENTS_MD_TEMPLATE"):
        read_template(file)
