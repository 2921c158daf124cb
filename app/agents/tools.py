"""The tools that agents are given, as the runtime port wants them.

What a model is told about a tool is in `prompts/tools.md`; here are names, arguments and calls.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

from app.agents.port import HostTool, ToolError
from app.agents.prompts import tool_text
from app.agents.workspace import Workspace
from app.domain.runs import AgentName

ArgumentKind: TypeAlias = Literal["string", "integer", "strings"]
Call: TypeAlias = Callable[[Mapping[str, object]], Awaitable[str]]
SpawnReviewers: TypeAlias = Callable[[tuple[AgentName, ...]], Awaitable[str]]
"""Runs the named reviewers, or all of the run's for (), and renders their results."""

_NUMBER = re.compile(r"[0-9]{1,9}")


def host_tool(
    name: str,
    call: Call,
    *,
    required: Mapping[str, ArgumentKind] | None = None,
    optional: Mapping[str, ArgumentKind] | None = None,
    timeout_s: float | None = 60.0,
) -> HostTool:
    """A tool whose texts are in `prompts/tools.md`, with its JSON schema."""
    arguments = {**(required or {}), **(optional or {})}
    properties = {key: _property(name, key, kind) for key, kind in arguments.items()}
    schema: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": list(required or {}),
        "additionalProperties": False,
    }
    return HostTool(name, tool_text(name), schema, call, timeout_s)


def reading_tools(workspace: Workspace) -> tuple[HostTool, ...]:
    """`read_file`, `grep`, `glob`, `list`: what every agent may do."""

    async def read_file(arguments: Mapping[str, object]) -> str:
        first = integer(arguments, "start_line") or 1
        return await workspace.read_file(
            text(arguments, "path"), first, integer(arguments, "end_line")
        )

    async def grep(arguments: Mapping[str, object]) -> str:
        return await workspace.grep(text(arguments, "pattern"), text(arguments, "path", ""))

    async def glob(arguments: Mapping[str, object]) -> str:
        return await workspace.glob(text(arguments, "pattern"))

    async def list_directory(arguments: Mapping[str, object]) -> str:
        return await workspace.list(text(arguments, "path", ""))

    lines: Mapping[str, ArgumentKind] = {"start_line": "integer", "end_line": "integer"}
    return (
        host_tool("read_file", read_file, required={"path": "string"}, optional=lines),
        host_tool("grep", grep, required={"pattern": "string"}, optional={"path": "string"}),
        host_tool("glob", glob, required={"pattern": "string"}),
        host_tool("list", list_directory, optional={"path": "string"}),
    )


def reviewer_tools(workspace: Workspace) -> tuple[HostTool, ...]:
    """`read_patch` and the reading tools: what a reviewer may do."""

    async def read_patch(arguments: Mapping[str, object]) -> str:
        return await workspace.read_patch(text(arguments, "path"))

    patch = host_tool("read_patch", read_patch, required={"path": "string"})
    return (patch, *reading_tools(workspace))


def coordinator_tools(workspace: Workspace, spawn: SpawnReviewers) -> tuple[HostTool, ...]:
    """A reviewer's tools and `spawn_reviewers`, which bounds its own time."""

    async def spawn_reviewers(arguments: Mapping[str, object]) -> str:
        return await spawn(_reviewers(arguments.get("reviewers")))

    tool = host_tool(
        "spawn_reviewers", spawn_reviewers, optional={"reviewers": "strings"}, timeout_s=None
    )
    return (tool, *reviewer_tools(workspace))


def text(arguments: Mapping[str, object], name: str, default: str | None = None) -> str:
    """A string argument. Raises ToolError when missing (without default) or something else."""
    value = arguments.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ToolError(f"the argument {name!r} must be a string")
    return value


def integer(arguments: Mapping[str, object], name: str) -> int | None:
    """A whole-number argument, also as a string or as 3.0; None when left out."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ToolError(f"the argument {name!r} must be a whole number")
    return value


def _reviewers(value: object) -> tuple[AgentName, ...]:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise ToolError("the argument 'reviewers' must be a list of names")
    try:
        return tuple(AgentName(str(name).strip().lower()) for name in names)
    except ValueError as error:
        raise ToolError(f"there is no such reviewer: {error}; leave the argument out") from error


def _property(tool: str, argument: str, kind: ArgumentKind) -> dict[str, object]:
    description = tool_text(f"{tool}.{argument}")
    if kind == "strings":
        return {"type": "array", "items": {"type": "string"}, "description": description}
    return {"type": kind, "description": description}
