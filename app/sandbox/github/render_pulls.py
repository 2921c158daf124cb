"""GitHub's JSON for pull requests, reviews, inline comments, threads and check runs."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.github.diffs import FileDiff
from app.sandbox.github.render import Json, Renderer, stamp
from app.sandbox.github.state import (
    App,
    CheckRun,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    ReviewState,
    Side,
    Thread,
)
from app.sandbox.github.world import node_id


@dataclass(frozen=True)
class PullFacts:
    """What git knows about a pull request. `mergeable` None: closed, so not computed."""

    commits: int
    additions: int
    deletions: int
    changed_files: int
    mergeable: bool | None


def simple_pull(render: Renderer, pull: PullRequest) -> Json:
    """The pull request of lists and reviews."""
    return {
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        **_addresses(render, pull),
        "number": pull.number,
        "state": "open" if pull.is_open else "closed",
        "locked": pull.locked,
        "title": pull.title,
        "user": render.user(pull.author),
        "body": pull.body,
        "labels": [render.label(pull.repository, label) for label in pull.labels],
        "milestone": None,
        "active_lock_reason": None,
        "created_at": stamp(pull.created_at),
        "updated_at": stamp(pull.updated_at),
        "closed_at": stamp(pull.closed_at),
        "merged_at": stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit_sha or pull.test_merge_sha,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _end(render, pull.head_repository, pull.head_ref, pull.head_sha),
        "base": _end(render, pull.repository, pull.base_ref, pull.base_sha),
        "author_association": render.association(pull.repository, pull.author),
        "auto_merge": None,
        "draft": pull.draft,
    }


def _addresses(render: Renderer, pull: PullRequest) -> Json:
    """The `…_url` members and `_links`."""
    api = render.repo_url(pull.repository)
    url, issue = f"{api}/pulls/{pull.number}", f"{api}/issues/{pull.number}"
    page = render.html_url(pull)
    links = {
        "self": url,
        "html": page,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{api}/statuses/{pull.head_sha}",
    }
    same = ("commits", "review_comments", "review_comment", "comments", "statuses")
    return {
        "url": url,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": issue,
        **{f"{name}_url": links[name] for name in same},
        "_links": {name: {"href": href} for name, href in links.items()},
    }


def _end(render: Renderer, repository: Repository | None, ref: str, sha: str) -> Json:
    """Head or base; a deleted fork leaves `repo` and `user` null."""
    owner = repository.owner if repository else None
    return {
        "label": f"{owner.login if owner else 'unknown'}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": render.maybe_user(owner),
        "repo": render.repository(repository) if repository else None,
    }


def full_pull(render: Renderer, pull: PullRequest, facts: PullFacts) -> Json:
    """The pull request of `GET /pulls/{n}` and of webhooks."""
    return {
        **simple_pull(render, pull),
        "merged": pull.merged_at is not None,
        "mergeable": facts.mergeable,
        "rebaseable": False,
        "mergeable_state": _mergeable_state(pull, facts),
        "merged_by": render.maybe_user(pull.merged_by),
        "comments": len(pull.comments),
        "review_comments": len(pull.submitted_comments),
        "maintainer_can_modify": pull.maintainer_can_modify,
        "commits": facts.commits,
        "additions": facts.additions,
        "deletions": facts.deletions,
        "changed_files": facts.changed_files,
    }


def _mergeable_state(pull: PullRequest, facts: PullFacts) -> str:
    if facts.mergeable is None:
        return "unknown"
    if not facts.mergeable:
        return "dirty"
    return "draft" if pull.draft else "clean"


def issue_of(render: Renderer, pull: PullRequest) -> Json:
    """The issue side of a pull request, as `issue_comment` events carry it."""
    whole = simple_pull(render, pull)
    kept = ("id", "number", "state", "locked", "title", "user", "body", "labels", "milestone")
    more = ("created_at", "updated_at", "closed_at", "assignee", "assignees", "html_url", "draft")
    api = render.repo_url(pull.repository)
    url = whole["issue_url"]
    return {
        **{name: whole[name] for name in (*kept, *more)},
        "node_id": whole["node_id"],
        "url": url,
        "repository_url": api,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "active_lock_reason": None,
        "author_association": whole["author_association"],
        "comments": len(pull.comments),
        "pull_request": {
            "url": whole["url"],
            "html_url": whole["html_url"],
            "diff_url": whole["diff_url"],
            "patch_url": whole["patch_url"],
            "merged_at": whole["merged_at"],
        },
        "reactions": render.reactions(url, []),
        "performed_via_github_app": None,
    }


def review(render: Renderer, pull: PullRequest, item: Review) -> Json:
    """A review in REST's spelling; a pending one has no `submitted_at`."""
    page = f"{render.html_url(pull)}#pullrequestreview-{item.id}"
    url = f"{render.repo_url(pull.repository)}/pulls/{pull.number}"
    body: Json = {
        "id": item.id,
        "node_id": node_id("PRR", item.id),
        "user": render.user(item.user),
        "body": item.body,
        "state": item.state.value,
        "html_url": page,
        "pull_request_url": url,
        "_links": {"html": {"href": page}, "pull_request": {"href": url}},
        "commit_id": item.commit_id,
        "author_association": render.association(pull.repository, item.user),
    }
    if item.state is not ReviewState.PENDING:
        body["submitted_at"] = stamp(item.submitted_at)
    return body


def review_comment(render: Renderer, pull: PullRequest, item: ReviewComment) -> Json:
    """An inline comment; outdated ones have null `line` and `position`."""
    api = render.repo_url(pull.repository)
    url = f"{api}/pulls/comments/{item.id}"
    page = f"{render.html_url(pull)}#discussion_r{item.id}"
    pull_url = f"{api}/pulls/{pull.number}"
    body: Json = {
        "url": url,
        "pull_request_review_id": item.review.id,
        "id": item.id,
        "node_id": node_id("PRRC", item.id),
        "diff_hunk": item.diff_hunk,
        "path": item.original.path,
        **_place(item),
        "commit_id": item.commit_id,
        "original_commit_id": item.original_commit_id,
        "user": render.user(item.user),
        "body": item.body,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "html_url": page,
        "pull_request_url": pull_url,
        "author_association": render.association(pull.repository, item.user),
        "_links": {
            "self": {"href": url},
            "html": {"href": page},
            "pull_request": {"href": pull_url},
        },
        "reactions": render.reactions(url, item.reactions),
    }
    if item.reply_to is not None:
        body["in_reply_to_id"] = item.reply_to
    return body


def _place(item: ReviewComment) -> Json:
    now, then = item.current, item.original
    start_side: Side | None = then.start_side
    if then.start_line is not None and start_side is None:
        start_side = then.side
    return {
        "position": item.position,
        "original_position": item.original_position,
        "line": now.line if now else None,
        "original_line": then.line,
        "side": then.side.value,
        "start_line": now.start_line if now else None,
        "original_start_line": then.start_line,
        "start_side": start_side.value if start_side else None,
        "subject_type": "file" if then.is_file else "line",
    }


def thread(render: Renderer, pull: PullRequest, item: Thread) -> Json:
    """The thread of a `pull_request_review_thread` event."""
    comments = [review_comment(render, pull, comment) for comment in item.comments]
    return {"node_id": item.node_id, "comments": comments}


def file(render: Renderer, repository: Repository, sha: str, item: FileDiff) -> Json:
    """A changed file at `sha`; `patch` is missing for binary and very large files."""
    page = f"{render.url}/{repository.full_name}"
    entry: Json = {
        "sha": item.blob,
        "filename": item.path,
        "status": item.status,
        "additions": item.additions,
        "deletions": item.deletions,
        "changes": item.additions + item.deletions,
        "blob_url": f"{page}/blob/{sha}/{item.path}",
        "raw_url": f"{page}/raw/{sha}/{item.path}",
        "contents_url": (f"{render.repo_url(repository)}/contents/{item.path}?ref={sha}"),
    }
    if item.patch is not None:
        entry["patch"] = item.patch
    if item.previous is not None:
        entry["previous_filename"] = item.previous
    return entry


def check_run(render: Renderer, repository: Repository, item: CheckRun) -> Json:
    """A check run; heads of forks list no pull requests."""
    api = render.repo_url(repository)
    url = f"{api}/check-runs/{item.id}"
    page = f"{render.url}/{repository.full_name}/runs/{item.id}"
    pulls = [
        _minimal_pull(render, pull)
        for pull in repository.pulls.values()
        if pull.is_open and pull.head_sha == item.head_sha and pull.head_repository is repository
    ]
    return {
        "id": item.id,
        "head_sha": item.head_sha,
        "node_id": node_id("CR", item.id),
        "external_id": item.external_id,
        "url": url,
        "html_url": page,
        "details_url": item.details_url or page,
        "status": item.status,
        "conclusion": item.conclusion,
        "started_at": stamp(item.started_at),
        "completed_at": stamp(item.completed_at),
        "output": {
            "title": item.title,
            "summary": item.summary,
            "text": item.text,
            "annotations_count": len(item.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "name": item.name,
        "check_suite": {"id": item.suite_id},
        "app": render.app(item.app),
        "pull_requests": pulls,
    }


def check_suite(
    render: Renderer, repository: Repository, app: App, suite_id: int, sha: str
) -> Json:
    """A check suite just asked for; branch and `before` are for the caller to add."""
    url = f"{render.repo_url(repository)}/check-suites/{suite_id}"
    return {
        "id": suite_id,
        "node_id": node_id("CS", suite_id),
        "head_sha": sha,
        "status": "queued",
        "conclusion": None,
        "url": url,
        "after": sha,
        "pull_requests": [],
        "app": render.app(app),
        "created_at": stamp(render.world.now()),
        "updated_at": stamp(render.world.now()),
        "rerequestable": True,
        "runs_rerequestable": True,
        "latest_check_runs_count": 0,
        "check_runs_url": f"{url}/check-runs",
    }


def _minimal_pull(render: Renderer, pull: PullRequest) -> Json:
    api = render.repo_url(pull.repository)
    repo = {"id": pull.repository.id, "url": api, "name": pull.repository.name}
    return {
        "id": pull.id,
        "number": pull.number,
        "url": f"{api}/pulls/{pull.number}",
        "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": repo},
        "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": repo},
    }
