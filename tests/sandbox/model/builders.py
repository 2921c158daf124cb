"""Requests, patches and conversations that are valid by default."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.sandbox.model import Scenario, parse_scenario
from app.sandbox.model.agents import next_turn
from app.sandbox.model.conversation import conversation_of
from app.sandbox.model.parse import parse_request
from app.sandbox.model.wire import Reply, Text, ToolUse, block_body

Json = dict[str, Any]
Tool = Callable[[Mapping[str, Any]], str]

KEY = "sk-test-1234"
MODEL = "claude-sonnet-4-6"
NEEDLE = 'run(f"rm {name}")'
PATH = "src/job.py"


def planted(**changes: Any) -> Json:
    """One planted finding of the security reviewer."""
    entry = {
        "id": "rm",
        "path": PATH,
        "needle": NEEDLE,
        "agents": ["security"],
        "severity": "critical",
        "category": "security",
        "title": "A name goes into a command",
        "body": "The name is not quoted.",
    }
    return entry | changes


def scenario(**parts: Any) -> Scenario:
    """A scenario with that one planted finding, unless told otherwise."""
    return parse_scenario({"planted": [planted()]} | parts)


def system(agent: str) -> str:
    return f"# Mergeward agent: {agent}\n\nYou review."


def tool(name: str) -> Json:
    return {"name": name, "description": name, "input_schema": {"type": "object"}}


def body(**changes: Any) -> Json:
    """The body of a valid request of the security reviewer."""
    valid: Json = {
        "model": MODEL,
        "max_tokens": 4096,
        "system": system("security"),
        "messages": [{"role": "user", "content": changed_files(PATH)}],
        "tools": [tool("read_patch"), tool("read_file")],
    }
    return {key: value for key, value in (valid | changes).items() if value is not None}


def changed_files(*paths: str) -> str:
    rows = "\n".join(
        f'<file path="{html.escape(path)}" status="modified" additions="1" deletions="0"'
        f' patch="diff/{html.escape(path)}"/>'
        for path in paths
    )
    return f"<changed_files>\n{rows}\n</changed_files>"


def named(tag: str, *findings: Json) -> str:
    """`<existing_inline_findings>` or `<fix_task>` with findings as `dict(id, path, title, …)`."""
    rows = [
        f'<finding id="{item["id"]}" status="open" origin="original" path="{item["path"]}"'
        f' line="{item.get("line", 1)}" severity="critical">'
        f"<title>{html.escape(item['title'])}</title><body>{item.get('body', 'b')}</body></finding>"
        for item in findings
    ]
    return f"<{tag}>{''.join(rows)}</{tag}>"


def numbered(text: str) -> str:
    """A `read_file` result."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=1))


def patch(path: str, rows: Sequence[tuple[str, str]], *, old: int = 1, new: int = 1) -> str:
    """A `read_patch` result: one hunk of (sign, text) rows that begins at those lines."""
    lines = [f"--- a/{path}", f"+++ b/{path}", f"@@ -{old} +{new} @@"]
    for sign, text in rows:
        left = "" if sign == "+" else str(old)
        right = "" if sign == "-" else str(new)
        lines.append(f"{left:>6} {right:>6} {sign}{text}")
        old += sign != "+"
        new += sign != "-"
    return "\n".join(lines)


def added(path: str, text: str) -> str:
    """A `read_patch` result for a new file."""
    return patch(path, [("+", line) for line in text.removesuffix("\n").split("\n")], old=0)


def turn(script: Scenario, request: Json) -> Reply:
    """What the script answers to that body."""
    return next_turn(script, conversation_of(parse_request(json.dumps(request).encode())))


def with_results(request: Json, reply: Reply, results: Iterable[str | Json]) -> Json:
    """The next request: the reply and one result per tool call in it."""
    uses = [
        block_body(ToolUse(block.name, block.input, id=f"toolu_{len(request['messages'])}_{index}"))
        for index, block in enumerate(reply.blocks)
        if isinstance(block, ToolUse)
    ]
    answers = [
        {"type": "tool_result", "tool_use_id": use["id"]}
        | (result if isinstance(result, dict) else {"content": result})
        for use, result in zip(uses, results, strict=True)
    ]
    more = [{"role": "assistant", "content": uses}, {"role": "user", "content": answers}]
    return request | {"messages": [*request["messages"], *more]}


def run(script: Scenario, request: Json, tools: Mapping[str, Tool]) -> tuple[str, list[Reply]]:
    """Play the conversation to its end. Returns the last text and every reply."""
    replies: list[Reply] = []
    for _ in range(12):
        reply = turn(script, request)
        replies.append(reply)
        uses = [block for block in reply.blocks if isinstance(block, ToolUse)]
        if not uses:
            return "".join(b.text for b in reply.blocks if isinstance(b, Text)), replies
        results = [tools[use.name](use.input) for use in uses]
        request = with_results(request, reply, results)
    raise AssertionError("the conversation does not end")
