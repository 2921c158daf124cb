"""All state of a double in one place, with its look-ups and its number source."""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from app.sandbox.github.state import (
    Account,
    ApiCall,
    App,
    Installation,
    Kind,
    PullRequest,
    Repository,
    Thread,
)

# Far from 1, so that an id taken for a pull request number fails at once.
FIRST_ID = 70_001


def node_id(prefix: str, number: int) -> str:
    """An opaque GraphQL id: a prefix as GitHub has it and the number, packed."""
    packed = base64.urlsafe_b64encode(number.to_bytes(8, "big")).decode().rstrip("=")
    return f"{prefix}_kwDO{packed}"


@dataclass
class World:
    """What the double knows. Names compare without case, as on GitHub."""

    clock: Callable[[], datetime]
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_ID))
    accounts: dict[str, Account] = field(default_factory=dict)
    apps: dict[int, App] = field(default_factory=dict)
    installations: dict[int, Installation] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    calls: list[ApiCall] = field(default_factory=list)

    def now(self) -> datetime:
        """The configured clock in whole seconds, GitHub's resolution."""
        return self.clock().replace(microsecond=0)

    def next_id(self) -> int:
        return next(self.ids)

    def account(self, login: str) -> Account | None:
        return self.accounts.get(login.lower())

    def ensure_account(self, login: str, kind: Kind | None = None) -> Account:
        """The account of this login, made when new; `…[bot]` names are bots."""
        known = self.accounts.get(login.lower())
        if known is not None:
            return known
        guessed = Kind.BOT if login.endswith("[bot]") else Kind.USER
        account = Account(self.next_id(), login, kind or guessed)
        if account.kind is not Kind.ORGANIZATION:
            account.token = f"ghp_{secrets.token_hex(18)}"
        self.accounts[login.lower()] = account
        return account

    def account_of_token(self, token: str) -> Account | None:
        matches = (a for a in self.accounts.values() if a.token and a.token == token)
        return next(matches, None)

    def app_of_issuer(self, issuer: str) -> App | None:
        """The App of a JWT's `iss`: its id or its client id."""
        matches = (a for a in self.apps.values() if issuer in {str(a.id), a.client_id})
        return next(matches, None)

    def app_of_account(self, account: Account) -> App | None:
        return None if account.app_id is None else self.apps.get(account.app_id)

    def repository(self, full_name: str) -> Repository | None:
        return self.repositories.get(full_name.lower())

    def repository_by_id(self, repository_id: int) -> Repository | None:
        return next((r for r in self.repositories.values() if r.id == repository_id), None)

    def covers(self, installation: Installation, repository: Repository) -> bool:
        if installation.account is not repository.owner:
            return False
        return installation.repositories is None or repository.id in installation.repositories

    def covered(self, installation: Installation) -> list[Repository]:
        return [r for r in self.repositories.values() if self.covers(installation, r)]

    def installations_on(self, repository: Repository) -> list[Installation]:
        return [i for i in self.installations.values() if self.covers(i, repository)]

    def pulls(self) -> Iterator[PullRequest]:
        for repository in self.repositories.values():
            yield from repository.pulls.values()

    def thread(self, thread_node_id: str) -> tuple[PullRequest, Thread] | None:
        for pull in self.pulls():
            for thread in pull.threads:
                if thread.node_id == thread_node_id:
                    return pull, thread
        return None
