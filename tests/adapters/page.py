"""A pull request page for cases: the review's whole pipeline over real git, with people on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.domain.pull_request import Account, AccountKind, Permission
from app.domain.runs import AgentName, Trigger
from app.forges.recording.world import ThreadRecord
from app.store.migrate import upgrade
from app.store.session import open_store
from tests.review.story import BASE, REPO, REVIEWER, Story, finding, findings, open_story
from tests.store.rows import account

OURS = "review-app[bot]"
"""Our own account in cases."""


def who(login: str) -> Account:
    """An account of a case: ours, another App's, or a person's."""
    if login == OURS:
        return REVIEWER
    return account(login, AccountKind.BOT if login.endswith("[bot]") else AccountKind.USER)


class Page:
    """What a case needs of a pull request: its files, its threads, and reviews of it."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.story.world.permissions |= {
            "maintainer-1": Permission.WRITE,
            "author-1": Permission.READ,
            "outsider-1": Permission.READ,
        }

    @property
    def threads(self) -> list[ThreadRecord]:
        return self.story.world.pull(REPO, self.story.number).threads

    def has(self, files: dict[str, bytes]) -> None:
        """The head of the pull request holds these files; the first time, it is opened."""
        tree = {**BASE, **files}
        if (REPO.repository_id, self.story.number) in self.story.world.pulls:
            self.story.push(tree)
        else:
            self.story.open_pull(tree, author=who("author-1"))

    async def review(self, *found: dict[str, Any], earlier: str = "open") -> list[ThreadRecord]:
        """A review that a person asks for: reviewers find this, the coordinator keeps it, and says
        of all earlier findings what `earlier` says. Returns the threads that it began."""
        before = len(self.threads)
        said = findings(*(finding(severity="critical", **item) for item in found))
        self.story.model.answers = {AgentName.GENERAL: [said], AgentName.CODE_QUALITY: [said]}
        self.story.model.carried = {f"F{n}": earlier for n in range(1, 99)}
        await self.story.review(who("author-1"), trigger=Trigger.COMMAND, action="command")
        return self.threads[before:]

    def begin(self, login: str, path: str, line: int, body: str) -> ThreadRecord:
        """Somebody else begins a thread."""
        pull = self.story.world.pull(REPO, self.story.number)
        self.story.world.open_thread(pull, who(login), (path, line), body)
        return pull.threads[-1]

    def answer(self, thread: ThreadRecord, author: str, body: str, permission: str = "") -> None:
        if permission:
            self.story.world.permissions[author] = Permission(permission)
        self.story.world.reply(thread, who(author), body)


@asynccontextmanager
async def open_page(folder: Path) -> AsyncIterator[Page]:
    """A repository with a pull request to come."""
    upgrade(f"sqlite:///{folder}/cases.db")
    store = open_store(f"sqlite+aiosqlite:///{folder}/cases.db")
    try:
        yield Page(await open_story(store, folder))
    finally:
        await store.close()
