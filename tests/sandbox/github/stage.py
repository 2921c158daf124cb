"""A double with a small cast: two Apps, one repository, one pull request and a receiver."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.sandbox.github import FIXER_PERMISSIONS, AppConfig, DoubleConfig, GitHubDouble

# For tests on the session's common cast, whose event loop they must share.
SHARED = pytest.mark.asyncio(loop_scope="session")
REPO = "acme/shop"
REPO_PATH = f"/repos/{REPO}"
PULL_PATH = f"{REPO_PATH}/pulls/1"
BASE_FILE = "".join(f"line {n}\n" for n in range(1, 21))
HEAD_FILE = BASE_FILE.replace("line 3\n", "line three\n").replace("line 16\n", "")
# Loopback only; loading certificates would cost 40 ms a test.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
SECRET = "it's a secret to everybody"


@dataclass(frozen=True)
class Received:
    """A webhook as its receiver saw it: header names in lower case, the raw body."""

    headers: Mapping[str, str]
    raw: bytes


@dataclass
class Receiver:
    """An HTTP server of its own that keeps what it is sent and answers `status`."""

    url: str = ""
    status: int = 202
    received: list[Received] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive for as long as requests come."""
        while line := await reader.readline():
            if not line.strip():
                continue
            headers: dict[str, str] = {}
            while (header := (await reader.readline()).decode("latin-1").strip()) != "":
                name, _, value = header.partition(":")
                headers[name.lower()] = value.strip()
            raw = await reader.readexactly(int(headers["content-length"]))
            self.received.append(Received(headers, raw))
            writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 2\r\n\r\nok".encode())
            await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A running receiver."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        server.close()


@dataclass
class Stage:
    """The double, and calls to it as somebody."""

    gh: GitHubDouble
    http: httpx.AsyncClient
    head: str = ""

    def token(self, who: str, permissions: Mapping[str, str] | None = None) -> str:
        """An installation token of an App's slug, or the token of a login."""
        if who in {"ward", "fix"}:
            return self.gh.token(who, REPO, permissions)
        return self.gh.user(who).token

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        who: str | None = "ward",
        permissions: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """A request as an App's installation, a person, `jwt:<slug>`, or nobody (None)."""
        sent = dict(headers or {})
        if who is not None and who.startswith("jwt:"):
            sent["Authorization"] = f"Bearer {self.gh.jwt(who.removeprefix('jwt:'))}"
        elif who is not None:
            sent["Authorization"] = f"Bearer {self.token(who, permissions)}"
        return await self.http.request(method, path, json=body, headers=sent)

    async def review(self, who: str = "ward", **body: Any) -> httpx.Response:
        return await self.call("POST", f"{PULL_PATH}/reviews", body, who=who)


@asynccontextmanager
async def staged(
    config: DoubleConfig | None = None, webhook: str | None = None
) -> AsyncIterator[Stage]:
    """The cast: Apps `ward` and `fix` on `acme/shop`, alice's pull request 1 from `feature`.

    The pull request changes line 3 of `a.py` and deletes line 16; `b.py` is new.
    """
    apps = (
        AppConfig(101, "ward", webhook_url=webhook, webhook_secret=SECRET),
        AppConfig(102, "fix", permissions=FIXER_PERMISSIONS),
    )
    async with (
        GitHubDouble(config or DoubleConfig(apps=apps)) as gh,
        httpx.AsyncClient(base_url=gh.url, verify=_NO_TLS) as http,
    ):
        files = {"a.py": BASE_FILE, "docs/c.md": "c\n"}
        await gh.create_repository("acme", "shop", files)
        gh.install("ward", "acme")
        gh.install("fix", "acme", [REPO])
        for login, level in {"alice": "write", "bob": "write", "eve": "read"}.items():
            gh.permit(REPO, login, level)
        changes = {"a.py": HEAD_FILE, "b.py": "new\n"}
        head = await gh.push(REPO, "feature", changes, author="alice", message="Change a")
        await gh.open_pull_request(
            REPO, author="alice", head="feature", title="A change", body="Why"
        )
        yield Stage(gh, http, head)


async def git(directory: Path, *args: str) -> tuple[int, str]:
    """Exit code and all output of real git, with no configuration but its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@example.org",
        "LC_ALL": "C",
    }
    process = await asyncio.create_subprocess_exec(
        "git",
        *args,
        cwd=directory,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


def clone_url(stage: Stage, who: str, repository: str = REPO, **permissions: str) -> str:
    """A git URL with credentials in it, for tests only."""
    token = stage.token(who, permissions or None)
    return f"{stage.gh.url.replace('http://', f'http://x-access-token:{token}@')}/{repository}.git"
