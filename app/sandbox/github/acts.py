"""What users and Apps do to pull requests: one place for the API and for people."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.github import pushes
from app.sandbox.github.errors import ApiError, validation_failed
from app.sandbox.github.gitstore import GitStore, NewCommit, person_of
from app.sandbox.github.hub import Hub
from app.sandbox.github.pullgit import merged_tree, update_pull_refs
from app.sandbox.github.render import Json
from app.sandbox.github.state import Account, Label, PullRequest, Repository


@dataclass(frozen=True)
class Proposal:
    """A pull request about to be opened; `head` is `branch` or `owner:branch`."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False
    maintainer_can_modify: bool = False


@dataclass(frozen=True)
class MergeRequest:
    """How to merge: `method` is merge or squash, `sha` the head it must still be at."""

    method: str = "merge"
    sha: str | None = None
    title: str | None = None
    message: str | None = None


async def open_pull(
    hub: Hub, repository: Repository, author: Account, wanted: Proposal
) -> PullRequest:
    """Open a pull request, or refuse with GitHub's 422."""
    async with repository.lock:
        head_repository, branch = _head(hub, repository, wanted.head)
        head = await hub.git.branch(head_repository.path, branch)
        if head is None:
            raise validation_failed("PullRequest", "invalid", "head")
        base = await hub.git.branch(repository.path, wanted.base)
        if base is None:
            raise validation_failed("PullRequest", "invalid", "base")
        _refuse_second(repository, head_repository, branch, wanted.base)
        pull = _new_pull(hub, repository, author, wanted)
        pull.head_repository, pull.head_ref = head_repository, branch
        pull.head_sha, pull.base_sha = head, base
        await _refuse_empty(hub.git, pull)
        repository.next_number += 1
        repository.pulls[pull.number] = pull
        await update_pull_refs(hub.git, pull)
        await hub.events.pull_request("opened", pull, author)
        return pull


def _head(hub: Hub, repository: Repository, head: str) -> tuple[Repository, str]:
    """The repository and branch of `branch` or `owner:branch`."""
    owner, colon, branch = head.rpartition(":")
    if not colon or owner.lower() == repository.owner.login.lower():
        return repository, branch
    for other in hub.world.repositories.values():
        if other.parent is repository and other.owner.login.lower() == owner.lower():
            return other, branch
    raise validation_failed("PullRequest", "invalid", "head")


def _refuse_second(repository: Repository, head: Repository, branch: str, base: str) -> None:
    for pull in repository.pulls.values():
        same = (pull.head_repository, pull.head_ref, pull.base_ref) == (head, branch, base)
        if pull.is_open and same:
            message = f"A pull request already exists for {head.owner.login}:{branch}."
            raise ApiError(
                422,
                "Validation Failed",
                errors=[{"resource": "PullRequest", "code": "custom", "message": message}],
            )


async def _refuse_empty(git: GitStore, pull: PullRequest) -> None:
    path, head = pull.repository.path, pull.head_repository
    if head is not None and head is not pull.repository:
        await git.run(path, "fetch", "--quiet", "--no-tags", str(head.path), pull.head_sha)
    if not await git.commits(path, pull.base_sha, pull.head_sha):
        message = f"No commits between {pull.base_ref} and {pull.head_ref}"
        raise ApiError(
            422,
            "Validation Failed",
            errors=[{"resource": "PullRequest", "code": "custom", "message": message}],
        )


def _new_pull(hub: Hub, repository: Repository, author: Account, wanted: Proposal) -> PullRequest:
    now = hub.world.now()
    return PullRequest(
        id=hub.world.next_id(),
        number=repository.next_number,
        repository=repository,
        title=wanted.title,
        body=wanted.body,
        author=author,
        head_ref="",
        head_sha="",
        head_repository=None,
        base_ref=wanted.base,
        base_sha="",
        draft=wanted.draft,
        created_at=now,
        updated_at=now,
        maintainer_can_modify=wanted.maintainer_can_modify,
    )


async def merge(hub: Hub, pull: PullRequest, actor: Account, how: MergeRequest) -> str:
    """Merge and return the new commit; 405 when not mergeable, 409 when the head moved."""
    async with pull.repository.lock:
        if how.sha is not None and how.sha != pull.head_sha:
            raise ApiError(409, "Head branch was modified. Review and try the merge again.")
        refusal = _merge_refusal(pull, how)
        if refusal is not None:
            raise ApiError(405, refusal)
        merged = await merged_tree(hub.git, pull)
        if merged is None:
            raise ApiError(405, "Pull Request is not mergeable")
        base, tree = merged
        sha = await _merge_commit(hub, pull, actor, how, base, tree)
        pull.base_sha = base
        _close(hub, pull)
        pull.merged_at, pull.merged_by, pull.merge_commit_sha = pull.closed_at, actor, sha
        ref = f"refs/heads/{pull.base_ref}"
        await hub.git.move_refs(pull.repository.path, {ref: sha})
        await hub.events.pull_request("closed", pull, actor)
        await pushes.branch_moved(hub, pull.repository, ref, base, sha, actor)
        return sha


def _merge_refusal(pull: PullRequest, how: MergeRequest) -> str | None:
    if how.method not in {"merge", "squash"}:
        return "Rebase merges are not allowed on this repository."
    if not pull.is_open:
        return "Pull Request is not mergeable"
    if pull.draft:
        return "Pull Request is still a draft"
    return _missing_check(pull)


def _missing_check(pull: PullRequest) -> str | None:
    for name, app_id in pull.repository.required_checks.get(pull.base_ref, []):
        runs = [
            run
            for run in pull.repository.checks
            if run.head_sha == pull.head_sha and run.name == name and app_id in {None, run.app.id}
        ]
        if not runs:
            return f'Required status check "{name}" is expected.'
        if runs[-1].status != "completed":
            return f'Required status check "{name}" is in progress.'
        if runs[-1].conclusion not in {"success", "neutral", "skipped"}:
            return f'Required status check "{name}" is failing.'
    return None


async def _merge_commit(
    hub: Hub, pull: PullRequest, actor: Account, how: MergeRequest, base: str, tree: str
) -> str:
    owner = pull.head_repository.owner.login if pull.head_repository else "unknown"
    if how.method == "squash":
        parents: tuple[str, ...] = (base,)
        title, text = f"{pull.title} (#{pull.number})", ""
        author = pull.author
    else:
        parents = (base, pull.head_sha)
        title = f"Merge pull request #{pull.number} from {owner}/{pull.head_ref}"
        text, author = pull.title, actor
    message = f"{how.title or title}\n\n{how.message or text}".rstrip() + "\n"
    new = NewCommit(message, person_of(author), hub.world.now())
    return await hub.git.commit_tree(pull.repository.path, tree, parents, new)


def _close(hub: Hub, pull: PullRequest) -> None:
    pull.closed_at = pull.updated_at = hub.world.now()


async def close(hub: Hub, pull: PullRequest, actor: Account) -> None:
    """Close without merging; closing twice changes nothing."""
    if pull.is_open:
        _close(hub, pull)
        await hub.events.pull_request("closed", pull, actor)


async def reopen(hub: Hub, pull: PullRequest, actor: Account) -> None:
    """Reopen at the branch's present tip; 422 when merged or the branch is gone."""
    if pull.is_open:
        return
    head = None
    if pull.head_repository is not None and pull.merged_at is None:
        head = await hub.git.branch(pull.head_repository.path, pull.head_ref)
    if head is None:
        raise validation_failed("PullRequest", "invalid", "state", "state cannot be changed.")
    async with pull.repository.lock:
        pull.closed_at, pull.updated_at = None, hub.world.now()
        before, pull.head_sha = pull.head_sha, head
        await update_pull_refs(hub.git, pull)
        await pushes.outdate_comments(hub.git, pull, before)
        await hub.events.pull_request("reopened", pull, actor)


async def set_draft(hub: Hub, pull: PullRequest, actor: Account, *, draft: bool) -> None:
    if pull.draft is not draft:
        pull.draft, pull.updated_at = draft, hub.world.now()
        action = "converted_to_draft" if draft else "ready_for_review"
        await hub.events.pull_request(action, pull, actor)


async def edit(
    hub: Hub,
    pull: PullRequest,
    actor: Account,
    *,
    title: str | None = None,
    body: str | None = None,
    base: str | None = None,
) -> None:
    """Change title, body or base; one `edited` event says what was there before."""
    changes: Json = {}
    if title is not None and title != pull.title:
        changes["title"] = {"from": pull.title}
        pull.title = title
    if body is not None and body != pull.body:
        changes["body"] = {"from": pull.body}
        pull.body = body
    if base is not None and base != pull.base_ref:
        tip = await hub.git.branch(pull.repository.path, base)
        if tip is None:
            raise validation_failed("PullRequest", "invalid", "base")
        changes["base"] = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
        pull.base_ref, pull.base_sha = base, tip
        await update_pull_refs(hub.git, pull)
    if changes:
        pull.updated_at = hub.world.now()
        await hub.events.pull_request("edited", pull, actor, {"changes": changes})


def ensure_label(hub: Hub, repository: Repository, name: str) -> Label:
    """The repository's label of this name, made when new."""
    key = name.lower()
    if key not in repository.labels:
        repository.labels[key] = Label(hub.world.next_id(), name)
    return repository.labels[key]


async def add_labels(hub: Hub, pull: PullRequest, actor: Account, names: list[str]) -> None:
    """Add labels; one `labeled` event for each that was missing."""
    for name in names:
        label = ensure_label(hub, pull.repository, name)
        if label not in pull.labels:
            pull.labels.append(label)
            shown = {"label": hub.render.label(pull.repository, label)}
            await hub.events.pull_request("labeled", pull, actor, shown)


async def remove_label(hub: Hub, pull: PullRequest, actor: Account, name: str) -> None:
    """Take a label off; 404 when the pull request does not have it."""
    label = next((x for x in pull.labels if x.name.lower() == name.lower()), None)
    if label is None:
        raise ApiError(404, "Label does not exist")
    pull.labels.remove(label)
    shown = {"label": hub.render.label(pull.repository, label)}
    await hub.events.pull_request("unlabeled", pull, actor, shown)
