"""The two tools with which the fixer's agent changes its checkout."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.agents.port import HostTool, ToolError
from app.agents.tools import host_tool, text
from app.fixer.workspace import EditableTree

Withheld = Callable[[str], str | None]


def editing_tools(tree: EditableTree, withheld: Withheld) -> tuple[HostTool, ...]:
    """`edit_file` and `write_file`, for what lies in the checkout and is not withheld."""

    async def edit_file(arguments: Mapping[str, object]) -> str:
        path = _allowed(text(arguments, "path"), withheld)
        await tree.edit(path, text(arguments, "old_text"), text(arguments, "new_text"))
        return f"{path} is changed."

    async def write_file(arguments: Mapping[str, object]) -> str:
        path = _allowed(text(arguments, "path"), withheld)
        await tree.write(path, text(arguments, "content"))
        return f"{path} is written."

    return (
        host_tool(
            "edit_file",
            edit_file,
            required={"path": "string", "old_text": "string", "new_text": "string"},
        ),
        host_tool("write_file", write_file, required={"path": "string", "content": "string"}),
    )


def _allowed(path: str, withheld: Withheld) -> str:
    name = path.strip().removeprefix("./")
    glob = withheld(name)
    if glob is not None:
        raise ToolError(f"{name} is withheld by policy ({glob}) and can't be changed")
    return name
