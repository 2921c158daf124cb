"""A model for benchmarks, in a process of its own: the Messages API with a fixed time to think.

    .venv/bin/python bench/model_double.py --delay 0.2

Prints its port. Every agent takes three calls: a reviewer reads a patch, searches, and reports one
finding; the coordinator starts its reviewers, reads a patch, and keeps what they found. With
`--hold N` the reviewers' first answers begin at once and go on only when N of them wait.
`GET /calls` gives what was asked: agent key, seconds, and how many calls there were at once.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_FINDING = re.compile(r'<finding ref="([^"]+)">(.*?)</finding>', re.DOTALL)
_PATH = re.compile(r'<file path="([^"]+)"')
_AGENT = re.compile(r"## Your domain: ([^\n]+)")
PING_S = 5.0


@dataclass
class Calls:
    """What was asked so far."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    now: int = 0
    most: int = 0
    bytes_in: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "calls": sum(map(len, self.seconds.values())),
            "most": self.most,
            "bytes_in": self.bytes_in,
        }


class Double:
    """Answers requests. `hold` is how many reviewers' first calls wait for each other."""

    def __init__(self, delay: float, hold: int) -> None:
        self._delay = delay
        self._hold = hold
        self._held = 0
        self._release = asyncio.Event()
        self.calls = Calls()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while (head := await _head(reader)) is not None:
                await self._one(head, await reader.readexactly(_length(head)), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, head: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if head.startswith("GET "):
            writer.write(_whole(json.dumps(self.calls.to_json()).encode()))
            await writer.drain()
            return
        began = time.perf_counter()
        self.calls.now += 1
        self.calls.most = max(self.calls.most, self.calls.now)
        self.calls.bytes_in += len(body)
        asked = json.loads(body)
        agent, turn = _agent(asked), sum(m["role"] == "assistant" for m in asked["messages"])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        writer.write(_chunk(_event("message_start", message=_message(asked["model"], len(body)))))
        await self._think(writer, holds=agent != "coordinator" and turn == 0)
        for event in _answer(agent, turn, asked):
            writer.write(_chunk(event))
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        self.calls.now -= 1
        self.calls.seconds.setdefault(agent, []).append(time.perf_counter() - began)

    async def _think(self, writer: asyncio.StreamWriter, *, holds: bool) -> None:
        await asyncio.sleep(self._delay)
        if not (holds and self._hold):
            return
        self._held += 1
        if self._held >= self._hold:
            self._release.set()
        while not self._release.is_set():
            writer.write(_chunk(_event("ping")))
            await writer.drain()
            try:
                async with asyncio.timeout(PING_S):
                    await self._release.wait()
            except TimeoutError:
                continue


def _agent(asked: dict[str, Any]) -> str:
    if any(tool["name"] == "spawn_reviewers" for tool in asked.get("tools", ())):
        return "coordinator"
    system = json.dumps(asked.get("system"), ensure_ascii=False)
    found = _AGENT.search(system.replace("\\n", "\n"))
    return found.group(1) if found else "other"


def _answer(agent: str, turn: int, asked: dict[str, Any]) -> Iterator[bytes]:
    paths = _PATH.findall(json.dumps(asked["messages"][0]).replace('\\"', '"'))
    path = paths[0] if paths else "README.md"
    if agent == "coordinator":
        steps = [("spawn_reviewers", {}), ("read_patch", {"path": path})]
    else:
        steps = [("read_patch", {"path": path}), ("grep", {"pattern": "value"})]
    if turn < len(steps):
        return _tool(*steps[turn])
    if agent == "coordinator":
        return _text(_review(json.dumps(asked["messages"], ensure_ascii=False)))
    return _text(
        f"<findings><finding><path>{path}</path><line>1</line><severity>suggestion</severity>"
        f"<category>correctness</category><title>A remark of {len(agent)} {agent[:20]}</title>"
        "<body>It works today and could be said once.</body>"
        f"<evidence>{path}:1</evidence></finding></findings>"
    )


def _review(said: str) -> str:
    found = dict(_FINDING.findall(said.replace('\\"', '"').replace("\\n", "\n")))
    kept = "".join(f'<finding source="{ref}">{body}</finding>' for ref, body in found.items())
    return (
        f"<review><summary>Read.</summary><findings>{kept}</findings><carried></carried>"
        "<dropped></dropped></review>"
    )


def _message(model: str, size: int) -> dict[str, Any]:
    usage = {"input_tokens": size // 4, "output_tokens": 1}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _tool(name: str, arguments: dict[str, str]) -> Iterator[bytes]:
    block = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    yield from _block(block, delta, "tool_use")


def _text(text: str) -> Iterator[bytes]:
    yield from _block(
        {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn"
    )


def _block(block: dict[str, Any], delta: dict[str, Any], why: str) -> Iterator[bytes]:
    yield _event("content_block_start", index=0, content_block=block)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ended = {"stop_reason": why, "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": 50})
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _whole(data: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


async def _head(reader: asyncio.StreamReader) -> str | None:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None


def _length(head: str) -> int:
    found = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
    return int(found.group(1)) if found else 0


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--hold", type=int, default=0)
    arguments = parser.parse_args()
    double = Double(arguments.delay, arguments.hold)
    server = await asyncio.start_server(double.serve, "127.0.0.1", 0, backlog=4096, limit=1 << 22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
