"""The questions of the Forge port, answered from memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.domain.forge import (
    AppIdentity,
    CloneRemote,
    Discussion,
    Installation,
    IssueComment,
    PublishedCheck,
    PublishedReview,
    Repository,
)
from app.domain.markers import markers_of
from app.domain.pull_request import (
    Account,
    AccountKind,
    Permission,
    PullRequest,
    PullRequestState,
    RepoRef,
)
from app.errors import ForgeNotFound
from app.forges.recording.world import World


@dataclass(slots=True)
class _Fault:
    verb: str
    error: Exception
    after: bool


class RecordingReads:
    """See `app.forges.port.ForgeReads`."""

    def __init__(self, world: World, identity: AppIdentity) -> None:
        self.world = world
        self.me = identity
        self._faults: list[_Fault] = []

    def fail_next(self, verb: str, error: Exception, *, after: bool = False) -> None:
        """The next call of the method `verb` raises; `after`: its effect happens nevertheless."""
        self._faults.append(_Fault(verb, error, after))

    def _fault(self, verb: str, *, after: bool = False) -> None:
        for fault in self._faults:
            if fault.verb == verb and fault.after is after:
                self._faults.remove(fault)
                raise fault.error

    async def identity(self) -> AppIdentity:
        self._fault("identity")
        return self.me

    async def installations(self) -> tuple[Installation, ...]:
        self._fault("installations")
        owners = {r.ref.installation_id: r.ref.owner for r in self.world.repositories.values()}
        return tuple(
            Installation(number, Account(number, owner, AccountKind.ORGANIZATION), suspended=False)
            for number, owner in owners.items()
        )

    async def installation_repositories(self, installation_id: int) -> tuple[Repository, ...]:
        self._fault("installation_repositories")
        known = self.world.repositories.values()
        return tuple(repo for repo in known if repo.ref.installation_id == installation_id)

    async def repository(self, repo: RepoRef) -> Repository:
        self._fault("repository")
        found = self.world.repositories.get(repo.repository_id)
        if found is None:
            raise ForgeNotFound(f"there is no repository {repo.full_name}", status=404)
        return found

    async def find_repository(self, owner: str, name: str) -> Repository:
        self._fault("find_repository")
        for repo in self.world.repositories.values():
            if (repo.ref.owner, repo.ref.name) == (owner, name):
                return repo
        raise ForgeNotFound(f"the App is not installed on {owner}/{name}", status=404)

    async def pull_request(self, repo: RepoRef, number: int) -> PullRequest:
        self._fault("pull_request")
        return self.world.pull(repo, number).value

    async def open_pull_requests(self, repo: RepoRef) -> tuple[PullRequest, ...]:
        self._fault("open_pull_requests")
        known = self.world.pulls_of(repo)
        return tuple(pull for pull in known if pull.state is PullRequestState.OPEN)

    async def commit_pulls(self, repo: RepoRef, sha: str) -> tuple[PullRequest, ...]:
        self._fault("commit_pulls")
        known = self.world.pulls_of(repo)
        return tuple(pull for pull in known if sha in (pull.head_sha, pull.merge_commit_sha))

    async def branch_sha(self, repo: RepoRef, branch: str) -> str | None:
        self._fault("branch_sha")
        return self.world.branches.get((repo.repository_id, branch))

    async def permission(self, repo: RepoRef, login: str) -> Permission:
        self._fault("permission")
        return self.world.permissions.get(login, Permission.NONE)

    async def discussion(self, repo: RepoRef, number: int) -> Discussion:
        self._fault("discussion")
        pull = self.world.pull(repo, number)
        return Discussion(
            tuple(thread.seen_by(self.me.account) for thread in pull.threads),
            tuple(map(self._seen, pull.comments)),
        )

    async def our_reviews(self, repo: RepoRef, number: int) -> tuple[PublishedReview, ...]:
        self._fault("our_reviews")
        known = self.world.pull(repo, number).reviews
        return tuple(review.told for review in known if review.author == self.me.account.id)

    async def our_checks(self, repo: RepoRef, sha: str) -> tuple[PublishedCheck, ...]:
        self._fault("our_checks")
        known = (check.told for check in self.world.checks if check.app_id == self.me.app_id)
        mine = (check for check in known if check.head_sha == sha)
        return tuple(sorted(mine, key=lambda check: check.id, reverse=True))

    async def issue_comments(self, repo: RepoRef, number: int) -> tuple[IssueComment, ...]:
        self._fault("issue_comments")
        return tuple(self._seen(comment) for comment in self.world.pull(repo, number).comments)

    def _seen(self, comment: IssueComment) -> IssueComment:
        ours = comment.author.id == self.me.account.id
        return replace(comment, ours=ours, markers=markers_of(comment.body) if ours else ())

    async def clone_remote(self, repo: RepoRef, *, write: bool) -> CloneRemote:
        self._fault("clone_remote")
        token = "may-write" if write else "may-read"
        return CloneRemote(f"https://forge.invalid/{repo.full_name}.git", token)
