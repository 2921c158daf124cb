"""One repository with one pull request, two Apps on it, and people: in memory and on the double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import SecretStr

from app.domain.effects import Side
from app.domain.forge import AppIdentity
from app.domain.jobs import AppRole
from app.domain.pull_request import (
    Account,
    AccountKind,
    Permission,
    PullRequest,
    PullRequestState,
    RepoRef,
)
from app.errors import ForgeUnavailable
from app.forges.github.app import GitHubApp, Host
from app.forges.github.writes import GitHubForge
from app.forges.pace import UNPACED
from app.forges.port import Forge
from app.forges.recording import RecordingForge, World
from app.forges.recording.world import HiddenComment
from app.sandbox.github import FIXER_PERMISSIONS, AppConfig, DoubleConfig, GitHubDouble
from app.settings import AppCredentials

CHANGED = "src/search.py"
CHANGED_LINE = 20
"""The pull request changes this one of 40 lines: lines 17 to 23 are inside its hunk."""
BRANCH, FIX_BRANCH = "feature/#12-100%", "mergeward/fix/t1-search"


class Stage(Protocol):
    """What the contract needs. The pull request is by `alice`, who may write; `mallory` may not."""

    repo: RepoRef
    number: int
    head_sha: str
    reviewer: Forge
    fixer: Forge

    def lose_answer(self, verb: str) -> None:
        """The reviewer's next `verb` has its effect, but the process dies or the answer is lost."""
        ...

    def says(self, login: str, body: str) -> int:
        """A person comments in the conversation."""
        ...

    def answers(self, login: str, comment_id: int, body: str) -> int:
        """A person answers in the thread that begins with `comment_id`."""
        ...

    async def close(self, number: int) -> None: ...

    async def push(self, branch: str) -> str:
        """A branch of the repository with one more commit; its SHA."""
        ...

    def reply_count(self) -> int:
        """Comments in all threads that do not begin one."""
        ...

    def annotations(self) -> tuple[int, ...]:
        """How many annotations each check run shows, oldest first."""
        ...

    def reactions(self, comment_id: int) -> list[str]:
        """What was reacted to a comment of the conversation."""
        ...

    def hide_comment(self, line: int, *, kept: bool) -> None:
        """The next inline comment on this line of CHANGED is taken and shown to nobody; `kept`
        False: there is not even a thread."""
        ...


class MemoryStage:
    """The contract's world in `app.forges.recording`."""

    def __init__(self) -> None:
        self.repo = RepoRef(installation_id=5, repository_id=7, owner="acme", name="shop")
        self.number, self.head_sha = 1, "a" * 40
        self.world = World(permissions={"alice": Permission.WRITE, "mallory": Permission.READ})
        self.world.add_repository(self.repo)
        self.world.branches[self.repo.repository_id, "main"] = "b" * 40
        anchors = {(CHANGED, side, n) for side in Side for n in range(17, 24)}
        self.world.put_pull(self.repo, self._pull(), frozenset(anchors))
        self._recording = RecordingForge(self.world, _identity(11, "mergeward"))
        self.reviewer: Forge = self._recording
        self.fixer: Forge = RecordingForge(self.world, _identity(12, "mergeward-fixer"))

    def _pull(self) -> PullRequest:
        return PullRequest(
            number=1,
            title="Add search",
            body="",
            author=_person("alice"),
            state=PullRequestState.OPEN,
            draft=False,
            head_ref=BRANCH,
            head_sha=self.head_sha,
            head_repo=self.repo.full_name,
            base_ref="main",
            base_sha="b" * 40,
            default_branch="main",
        )

    def lose_answer(self, verb: str) -> None:
        self._recording.fail_next(verb, ForgeUnavailable("the answer was lost"), after=True)

    def says(self, login: str, body: str) -> int:
        return self.world.comment(self.repo, self.number, _person(login), body)

    def answers(self, login: str, comment_id: int, body: str) -> int:
        thread = self.world.thread_of(self.repo, comment_id)
        return self.world.reply(thread, _person(login), body)

    async def close(self, number: int) -> None:
        pull = self.world.pull(self.repo, number).value
        self.world.put_pull(self.repo, replace(pull, state=PullRequestState.CLOSED))

    async def push(self, branch: str) -> str:
        sha = f"{self.world.next_id():040x}"
        self.world.branches[self.repo.repository_id, branch] = sha
        return sha

    def reply_count(self) -> int:
        threads = self.world.pull(self.repo, self.number).threads
        return sum(len(thread.comments) - 1 for thread in threads)

    def annotations(self) -> tuple[int, ...]:
        return tuple(check.told.annotations for check in self.world.checks)

    def reactions(self, comment_id: int) -> list[str]:
        return [kind.value for known, kind in self.world.reactions if known == comment_id]

    def hide_comment(self, line: int, *, kept: bool) -> None:
        self.world.hidden_comments.append(HiddenComment(CHANGED, line, kept))


def _person(login: str) -> Account:
    return Account(id=sum(login.encode()), login=login, kind=AccountKind.USER)


def _identity(app_id: int, slug: str) -> AppIdentity:
    return AppIdentity(app_id, slug, Account(app_id + 9000, f"{slug}[bot]", AccountKind.BOT))


_PATHS = {
    "ensure_check_run": ("POST", "/check-runs$"),
    "ensure_review": ("POST", "/reviews$"),
    "ensure_comment": ("POST", "/issues/1/comments$"),
    "ensure_reply": ("POST", "/replies$"),
}


@dataclass
class DoubleStage:
    """The contract's world on the GitHub double, reached through the real client."""

    gh: GitHubDouble
    repo: RepoRef
    number: int
    head_sha: str
    reviewer: Forge
    fixer: Forge

    def lose_answer(self, verb: str) -> None:
        method, path = _PATHS[verb]
        self.gh.faults.fail_call(method, path, 502, after=True)

    def says(self, login: str, body: str) -> int:
        return self.gh.comment(self.repo.full_name, self.number, body, actor=login).id

    def answers(self, login: str, comment_id: int, body: str) -> int:
        answer = self.gh.reply(self.repo.full_name, self.number, comment_id, body, actor=login)
        return answer.id

    async def close(self, number: int) -> None:
        await self.gh.close(self.repo.full_name, number, actor="alice")

    async def push(self, branch: str) -> str:
        files = {"fixed.txt": branch}
        return await self.gh.push(self.repo.full_name, branch, files, author="alice")

    def reply_count(self) -> int:
        threads = self.gh.pull(self.repo.full_name, self.number).threads
        return sum(len(thread.comments) - 1 for thread in threads)

    def annotations(self) -> tuple[int, ...]:
        checks = self.gh.pull(self.repo.full_name, self.number).checks
        return tuple(check.annotations for check in checks)

    def reactions(self, comment_id: int) -> list[str]:
        comments = self.gh.pull(self.repo.full_name, self.number).comments
        (found,) = [comment for comment in comments if comment.id == comment_id]
        return list(found.reactions)

    def hide_comment(self, line: int, *, kept: bool) -> None:
        self.gh.faults.hide_comment(CHANGED, line, kept=kept)


def double_config(key: str) -> DoubleConfig:
    """Both Apps with one private key: making one takes longer than a test."""
    reviewer = AppConfig(id=11, slug="mergeward", private_key=key)
    fixer = AppConfig(
        id=12, slug="mergeward-fixer", private_key=key, permissions=dict(FIXER_PERMISSIONS)
    )
    return DoubleConfig(apps=(reviewer, fixer))


def github_app(gh: GitHubDouble, role: AppRole, *, api: str = "") -> GitHubApp:
    """The App of a role on the double; `api` is `/api/v3` for the Enterprise form."""
    slug = "mergeward" if role is AppRole.REVIEWER else "mergeward-fixer"
    known = gh.app(slug)
    credentials = AppCredentials(role, known.id, SecretStr(known.private_key), slug)
    host = Host(api_url=gh.url + api, web_url=gh.url, read_retries=(0.0,))
    return GitHubApp(credentials, host, sleep=_no_pause, pace_limits=UNPACED)


async def _no_pause(_seconds: float) -> None:
    return None


@asynccontextmanager
async def double_stage(key: str) -> AsyncIterator[DoubleStage]:
    """A double with the contract's repository, and a forge for each App."""
    async with GitHubDouble(double_config(key)) as gh:
        repo, number, head = await populate(gh)
        async with (
            GitHubForge(github_app(gh, AppRole.REVIEWER)) as reviewer,
            GitHubForge(github_app(gh, AppRole.FIXER)) as fixer,
        ):
            yield DoubleStage(gh, repo, number, head, reviewer, fixer)


async def populate(gh: GitHubDouble) -> tuple[RepoRef, int, str]:
    """Make the repository, its people and its pull request; both Apps are installed."""
    lines = [f"line {n}" for n in range(1, 41)]
    await gh.create_repository("acme", "shop", {CHANGED: "\n".join(lines) + "\n"})
    gh.permit("acme/shop", "alice", "write")
    gh.permit("acme/shop", "mallory", "read")
    installation = gh.install("mergeward", "acme")
    gh.install("mergeward-fixer", "acme")
    lines[CHANGED_LINE - 1] = "changed"
    files = {CHANGED: "\n".join(lines) + "\n"}
    head = await gh.push("acme/shop", BRANCH, files, author="alice")
    pull = await gh.open_pull_request("acme/shop", author="alice", head=BRANCH, title="Add search")
    ref = RepoRef(installation.id, gh.repository("acme/shop").id, "acme", "shop")
    return ref, pull.number, head
