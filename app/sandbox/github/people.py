"""The world's hand: people and owners who act without the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.sandbox.github import acts, pushes, rest_checks, rest_issues, reviewing
from app.sandbox.github.acts import MergeRequest, Proposal
from app.sandbox.github.githttp import UPDATE_HOOK
from app.sandbox.github.gitstore import NOBODY, Files, NewCommit, person_of
from app.sandbox.github.hub import Hub
from app.sandbox.github.reviewing import Submission
from app.sandbox.github.state import (
    Account,
    CheckRun,
    Installation,
    IssueComment,
    Kind,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Thread,
)


class People:
    """Acts of named people. Names are logins; repositories are `owner/name`.

    An unknown login becomes a user (or a bot when it ends with `[bot]`); rights are not asked:
    whoever calls these methods plays the world. Unknown repositories, pull requests and threads
    raise KeyError.
    """

    hub: Hub

    def repository(self, name: str) -> Repository:
        found = self.hub.world.repository(name)
        if found is None:
            raise KeyError(f"no repository {name!r} in the sandbox")
        return found

    def pull_request(self, repository: str, number: int) -> PullRequest:
        return self.repository(repository).pulls[number]

    def user(self, login: str, kind: Kind | None = None) -> Account:
        """The account of a login, made when new; `account.token` lets HTTP clients act as it."""
        return self.hub.world.ensure_account(login, kind)

    def permit(self, repository: str, login: str, level: str) -> Account:
        """Make a user a collaborator: `admin`, `write`, `read` or `none`."""
        account = self.user(login)
        self.repository(repository).levels[login.lower()] = level
        return account

    async def create_repository(
        self,
        owner: str,
        name: str,
        files: Files,
        *,
        private: bool = True,
        default_branch: str = "main",
    ) -> Repository:
        """A repository with one commit holding `files`; its owner is an organisation when new."""
        world = self.hub.world
        account = world.ensure_account(owner, Kind.ORGANIZATION)
        if world.repository(f"{owner}/{name}") is not None:
            raise ValueError(f"the sandbox already has a repository {owner}/{name}")
        path = self.hub.git.create(account.login, name, default_branch, UPDATE_HOOK)
        now = world.now()
        repository = Repository(
            world.next_id(), account, name, path, default_branch, private, now, now
        )
        world.repositories[repository.full_name.lower()] = repository
        content = files or {"README.md": f"# {name}\n"}
        first = NewCommit("Initial commit", person_of(account), now)
        await self.hub.git.commit_files(path, default_branch, None, content, first)
        return repository

    async def fork(self, repository: str, login: str) -> Repository:
        """A person's fork; Apps of the parent are not installed on it."""
        source = self.repository(repository)
        owner = self.user(login)
        path = self.hub.git.create(owner.login, source.name, source.default_branch, UPDATE_HOOK)
        refs = "+refs/heads/*:refs/heads/*"
        await self.hub.git.run(path, "fetch", "--quiet", str(source.path), refs)
        world, now = self.hub.world, self.hub.world.now()
        fork = Repository(
            id=world.next_id(),
            owner=owner,
            name=source.name,
            path=path,
            default_branch=source.default_branch,
            private=source.private,
            created_at=now,
            pushed_at=now,
            parent=source,
        )
        world.repositories[fork.full_name.lower()] = fork
        return fork

    def install(
        self,
        app_slug: str,
        owner: str,
        repositories: Iterable[str] | None = None,
        *,
        permissions: Mapping[str, str] | None = None,
    ) -> Installation:
        """Install an App on an account: all repositories, or those named `owner/name`."""
        world = self.hub.world
        app = next((a for a in world.apps.values() if a.slug == app_slug), None)
        if app is None:
            raise KeyError(f"no App {app_slug!r} in the sandbox")
        account = world.ensure_account(owner, Kind.ORGANIZATION)
        chosen = None
        if repositories is not None:
            chosen = {self.repository(name).id for name in repositories}
        granted = dict(app.permissions if permissions is None else permissions)
        installation = Installation(world.next_id(), app, account, chosen, granted, world.now())
        world.installations[installation.id] = installation
        self.hub.events.installation("created", installation, account)
        return installation

    def uninstall(self, installation: Installation) -> None:
        """Remove an installation; its tokens die with it."""
        self.hub.events.installation("deleted", installation, installation.account)
        del self.hub.world.installations[installation.id]

    def suspend(self, installation: Installation, *, suspended: bool = True) -> None:
        """Suspend or unsuspend: no tokens and no events while suspended."""
        installation.suspended_at = self.hub.world.now() if suspended else None
        action = "suspend" if suspended else "unsuspend"
        self.hub.events.installation(action, installation, installation.account)

    def accept_permissions(
        self, installation: Installation, permissions: Mapping[str, str]
    ) -> None:
        """The owner accepts what the App asks for now; old tokens keep what they had."""
        installation.permissions = dict(permissions)
        account = installation.account
        self.hub.events.installation("new_permissions_accepted", installation, account)

    def add_repository(self, installation: Installation, repository: str) -> None:
        """Add a repository to an installation of selected repositories."""
        found = self.repository(repository)
        if installation.repositories is not None:
            installation.repositories.add(found.id)
        self.hub.events.installation_repositories(installation, installation.account, added=[found])

    async def push(
        self,
        repository: str,
        branch: str,
        files: Files,
        *,
        author: str,
        message: str = "Update",
        base: str | None = None,
        force: bool = False,
    ) -> str:
        """Commit whole files (None deletes one) and push; returns the SHA.

        A new branch starts at `base` (a branch; default: the default branch). `force` rewrites
        an existing branch to start at `base` again.
        """
        found, git = self.repository(repository), self.hub.git
        account = self.user(author)
        async with found.lock:
            before = await git.branch(found.path, branch)
            parent = before
            if parent is None or force:
                parent = await git.branch(found.path, base or found.default_branch)
            new = NewCommit(message, person_of(account), self.hub.world.now())
            sha = await git.commit_files(found.path, branch, parent, files, new)
            ref = f"refs/heads/{branch}"
            await pushes.branch_moved(self.hub, found, ref, before or NOBODY, sha, account)
        return sha

    async def delete_branch(self, repository: str, branch: str, actor: str) -> None:
        """Delete a branch; its open pull requests close."""
        found, ref = self.repository(repository), f"refs/heads/{branch}"
        before = await self.hub.git.branch(found.path, branch)
        if before is None:
            raise KeyError(f"no branch {branch!r} in {repository}")
        async with found.lock:
            await self.hub.git.move_refs(found.path, {ref: None})
            await pushes.branch_moved(self.hub, found, ref, before, NOBODY, self.user(actor))

    async def open_pull_request(
        self,
        repository: str,
        *,
        author: str,
        head: str,
        title: str,
        base: str | None = None,
        body: str | None = None,
        draft: bool = False,
    ) -> PullRequest:
        """Open a pull request as anybody; raises `ApiError` where GitHub would refuse."""
        found = self.repository(repository)
        wanted = Proposal(title, head, base or found.default_branch, body, draft)
        return await acts.open_pull(self.hub, found, self.user(author), wanted)

    async def merge(
        self, repository: str, number: int, *, actor: str, method: str = "merge"
    ) -> str:
        """Merge as a person; returns the merge commit."""
        pull = self.pull_request(repository, number)
        how = MergeRequest(method=method)
        return await acts.merge(self.hub, pull, self.user(actor), how)

    async def close(self, repository: str, number: int, *, actor: str) -> None:
        await acts.close(self.hub, self.pull_request(repository, number), self.user(actor))

    async def reopen(self, repository: str, number: int, *, actor: str) -> None:
        await acts.reopen(self.hub, self.pull_request(repository, number), self.user(actor))

    async def set_draft(self, repository: str, number: int, *, actor: str, draft: bool) -> None:
        pull = self.pull_request(repository, number)
        await acts.set_draft(self.hub, pull, self.user(actor), draft=draft)

    async def edit(
        self,
        repository: str,
        number: int,
        *,
        actor: str,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
    ) -> None:
        """Change title, body or base branch."""
        pull, account = self.pull_request(repository, number), self.user(actor)
        await acts.edit(self.hub, pull, account, title=title, body=body, base=base)

    async def label(
        self, repository: str, number: int, name: str, *, actor: str, remove: bool = False
    ) -> None:
        """Put a label on, or take it off."""
        pull, account = self.pull_request(repository, number), self.user(actor)
        if remove:
            await acts.remove_label(self.hub, pull, account, name)
        else:
            await acts.add_labels(self.hub, pull, account, [name])

    def comment(self, repository: str, number: int, body: str, *, actor: str) -> IssueComment:
        """Comment in the conversation."""
        pull = self.pull_request(repository, number)
        return rest_issues.comment_on(self.hub, pull, self.user(actor), body)

    def reply(
        self, repository: str, number: int, comment_id: int, body: str, *, actor: str
    ) -> ReviewComment:
        """Answer in a thread, named by its first comment's id."""
        pull = self.pull_request(repository, number)
        return reviewing.reply(self.hub, pull, self.user(actor), comment_id, body)

    async def review(
        self, repository: str, number: int, event: str, body: str = "", *, actor: str
    ) -> Review:
        """Review without inline comments: APPROVE, REQUEST_CHANGES or COMMENT."""
        pull = self.pull_request(repository, number)
        wanted = Submission(event, body, None)
        return await reviewing.create_review(self.hub, pull, self.user(actor), wanted)

    def resolve_thread(
        self, repository: str, number: int, thread: str, *, actor: str, resolved: bool = True
    ) -> Thread:
        """Resolve or reopen the thread of this node id."""
        pull = self.pull_request(repository, number)
        found = next((t for t in pull.threads if t.node_id == thread), None)
        if found is None:
            raise KeyError(f"no thread {thread!r} on pull request {number}")
        reviewing.resolve(self.hub, pull, found, self.user(actor), resolved=resolved)
        return found

    def click(
        self, repository: str, check_run_id: int, *, actor: str, button: str | None = None
    ) -> CheckRun:
        """Click a check run's button (its identifier), or Re-run when None."""
        found = self.repository(repository)
        run = next(r for r in found.checks if r.id == check_run_id)
        rest_checks.click(self.hub, found, run, actor, button)
        return run

    def require_check(
        self, repository: str, branch: str, name: str, app_slug: str | None = None
    ) -> None:
        """Protect a branch: merging needs this check, pinned to an App when one is named."""
        apps = self.hub.world.apps.values()
        app_id = next((a.id for a in apps if a.slug == app_slug), None)
        required = self.repository(repository).required_checks
        required.setdefault(branch, []).append((name, app_id))
