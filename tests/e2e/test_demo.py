"""The demo tells the truth: it ends well with the product, and badly with a broken one.

Each sabotage takes one safeguard out of the product, from outside, by what the demo lets replace.
"""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.agents.port import AgentResult, AgentTask, EventSink, Runtime, ignore_events
from app.agents.prompt_context import PromptContext
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings
from app.cli.demo import tell
from app.cli.demo.report import Narrator
from app.cli.demo.stage import Props
from app.domain.diff import FileChange
from app.domain.forge import CloneRemote, PublishedReview
from app.domain.jobs import AppRole
from app.domain.pull_request import RepoRef
from app.domain.runs import AgentName
from app.forges.github.writes import GitHubForge
from app.forges.port import Forge
from app.git.process import Remote, git
from app.review.context import write_run_files
from app.wiring import Parts
from loop_guards import ClosePlan, MergeFacts, plan_merged

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@dataclass
class Heard:
    """The narrator's words, for the message of a failing test."""

    stream: io.StringIO

    def narrator(self) -> Narrator:
        return Narrator(Console(file=self.stream, width=160, highlight=False))

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def heard() -> Heard:
    return Heard(io.StringIO())


async def test_every_story_ends_as_told(heard: Heard) -> None:
    """With the product as it is, all four stories end well."""
    assert await tell(narrator=heard.narrator()) == 0, heard.text
    assert "✗" not in heard.text
    assert "The model is scripted" in heard.text


class NoTools:
    """Reviewers get no tools: nothing of the change can be read."""

    def __init__(self, real: Callable[[tuple[ProviderSettings, ...]], Any]) -> None:
        self._real = real
        self._runtime: Runtime | None = None

    def __call__(self, providers: tuple[ProviderSettings, ...]) -> NoTools:
        self._runtime = self._real(providers)
        return self

    async def __aenter__(self) -> NoTools:
        await self._runtime.__aenter__()  # type: ignore[union-attr]  # a DirectRuntime
        return self

    async def __aexit__(self, *ending: object) -> None:
        await self._runtime.__aexit__(*ending)  # type: ignore[union-attr]  # as above

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        assert self._runtime is not None
        if task.agent is not AgentName.COORDINATOR:
            task = replace(task, tools=())
        return await self._runtime.run(task, on_event)


async def empty_patches(
    folder: Path, files: Sequence[FileChange], patches: Mapping[str, str], context: PromptContext
) -> None:
    """Writes every patch file empty."""
    await write_run_files(folder, [replace(file, raw=b"") for file in files], patches, context)


class Wrapped:
    """A forge with one method replaced; everything else is the real one's."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)


class SeesNoReviews(Wrapped):
    """Finds none of our earlier reviews, so no marker is ever recognised."""

    async def our_reviews(self, repo: RepoRef, number: int) -> tuple[PublishedReview, ...]:
        return ()


def without_marker_lookup(role: AppRole, forge: Forge) -> Forge:
    """The real client, whose publisher of reviews looks for nothing before it posts again."""
    if role is AppRole.REVIEWER:
        assert isinstance(forge, GitHubForge)
        forge._reviews._github = SeesNoReviews(forge)  # type: ignore[assignment]  # a stand-in
    return forge


class PushesNowhere(Wrapped):
    """What the fixer pushes arrives in a repository nobody looks at."""

    def __init__(self, forge: Forge, elsewhere: Path) -> None:
        super().__init__(forge)
        self._elsewhere = elsewhere

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        real: CloneRemote = await self._forge.clone_remote(repo, write=write)
        if not write:
            return real
        if not self._elsewhere.exists():
            clone = ("clone", "--quiet", "--bare", real.url, str(self._elsewhere))
            await git(clone, cwd=self._elsewhere.parent, remote=Remote(real.url, real.token))
        return CloneRemote(f"file://{self._elsewhere}", "")


def nobody_is_a_bot(findings: Any, facts: MergeFacts, *rest: Any, **more: Any) -> ClosePlan:
    """The plan of a merge as if no pull request were a bot's or a fix."""
    return plan_merged(findings, replace(facts, author_is_bot=False), *rest, **more)


def signs_everything(app: Callable[..., Awaitable[None]], secret: str) -> Any:
    """As if no signature were checked: every body arrives with the right one."""

    async def signed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        name = b"x-hub-signature-256"
        headers = [pair for pair in scope["headers"] if pair[0] != name]
        scope = {**scope, "headers": [*headers, (name, f"sha256={digest}".encode())]}
        sent = False

        async def once() -> Any:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, once, send)

    return signed


SABOTAGES: dict[str, tuple[int, Callable[[Path], Props], str]] = {
    "empty patch files": (
        1, lambda folder: Props(Parts(write_files=empty_patches)), "finds three defects",
    ),
    "unread tools": (
        1, lambda folder: Props(Parts(make_runtime=NoTools(DirectRuntime))), "finds three defects",
    ),
    "marker lookup off": (
        1, lambda folder: Props(Parts(around_forge=without_marker_lookup)), "published once",
    ),
    "a guard off": (
        4, lambda folder: Props(Parts(plan_merged=nobody_is_a_bot)), "ordered finding alone",
    ),
    "signature check off": (
        1, lambda folder: Props(around_web=signs_everything), "forged webhook is refused",
    ),
    "push dropped": (
        1,
        lambda folder: Props(
            Parts(
                around_forge=lambda role, forge: (
                    PushesNowhere(forge, folder / "elsewhere.git")
                    if role is AppRole.FIXER
                    else forge
                )
            )
        ),
        "The fixer opens a pull request",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SABOTAGES)
async def test_a_sabotaged_product_is_noticed(name: str, heard: Heard, tmp_path: Path) -> None:
    """Taking out one safeguard makes the demo fail, and at the promise it protects."""
    story, props, promise = SABOTAGES[name]
    code = await tell(stories=(story,), props=props(tmp_path), narrator=heard.narrator())
    assert code == 1, heard.text
    broken = [line for line in heard.text.splitlines() if "✗" in line]
    assert any(promise in line for line in broken), heard.text
