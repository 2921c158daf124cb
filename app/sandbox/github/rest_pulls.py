"""REST: pull requests, their files, commits and merging."""

from __future__ import annotations

from app.sandbox.github import acts, render_pulls
from app.sandbox.github.acts import MergeRequest, Proposal
from app.sandbox.github.endpoint import Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import ApiError, missing_field, not_found
from app.sandbox.github.pullgit import pull_diff, pull_facts
from app.sandbox.github.state import PullRequest

endpoints = Endpoints()

MAX_FILES = 3000
MAX_DIFF_FILES = 300
MAX_DIFF_LINES = 20_000
_PULL = "/repos/{owner}/{repo}/pulls/{number:int}"


@endpoints.add("GET", "/repos/{owner}/{repo}/pulls", "pull_requests=read")
async def list_pulls(call: Call) -> Reply:
    """Filters `state`, `head` (`owner:branch`) and `base`; newest first, or `direction=asc`."""
    pulls = [pull for pull in call.repo.pulls.values() if _matches(call, pull)]
    by_update = call.query("sort", "created") == "updated"
    pulls.sort(key=lambda p: (p.updated_at if by_update else p.created_at, p.number))
    if call.query("direction", "desc") == "desc":
        pulls.reverse()
    return call.page([render_pulls.simple_pull(call.hub.render, pull) for pull in pulls])


def _matches(call: Call, pull: PullRequest) -> bool:
    state = call.query("state", "open")
    if state != "all" and (state == "open") is not pull.is_open:
        return False
    head, base = call.query("head"), call.query("base")
    owner = pull.head_repository.owner.login if pull.head_repository else "unknown"
    if ":" in head and head != f"{owner}:{pull.head_ref}":
        return False  # GitHub ignores a head without owner
    return not base or base == pull.base_ref


@endpoints.add("POST", "/repos/{owner}/{repo}/pulls", "pull_requests=write", creates=True)
async def create_pull(call: Call) -> Reply:
    title, head, base = call.text("title"), call.text("head"), call.text("base")
    if not head or not base:
        raise missing_field("PullRequest", "base" if head else "head")
    if not title:
        raise missing_field("PullRequest", "title")
    wanted = Proposal(
        title=title,
        head=head,
        base=base,
        body=call.text("body"),
        draft=bool(call.body.get("draft", False)),
        maintainer_can_modify=bool(call.body.get("maintainer_can_modify", False)),
    )
    pull = await acts.open_pull(call.hub, call.repo, call.account, wanted)
    return await _full(call, pull, 201)


async def _full(call: Call, pull: PullRequest, status: int = 200) -> Reply:
    facts = await pull_facts(call.hub.git, pull)
    return Reply(status, render_pulls.full_pull(call.hub.render, pull, facts))


@endpoints.add("GET", _PULL, "pull_requests=read;contents=read")
async def get_pull(call: Call) -> Reply:
    accept = call.request.headers.get("accept", "")
    if "application/vnd.github" in accept and "diff" in accept:
        return await _diff(call)
    return await _full(call, call.pull)


async def _diff(call: Call) -> Reply:
    diff = await pull_diff(call.hub.git, call.pull)
    limit = None
    if len(diff.files) > MAX_DIFF_FILES:
        limit = f"files ({MAX_DIFF_FILES})"
    elif diff.text.count("\n") > MAX_DIFF_LINES:
        limit = f"lines ({MAX_DIFF_LINES})"
    if limit is None:
        return Reply(text=diff.text)
    message = (
        f"Sorry, the diff exceeded the maximum number of {limit}. Consider using 'List pull "
        "requests files' API or locally cloning the repository instead."
    )
    error = {"resource": "PullRequest", "field": "diff", "code": "too_large"}
    raise ApiError(406, message, errors=[error])


@endpoints.add("PATCH", _PULL, "pull_requests=write")
async def update_pull(call: Call) -> Reply:
    hub, pull, account = call.hub, call.pull, call.account
    title, body, base = call.text("title"), call.text("body"), call.text("base")
    await acts.edit(hub, pull, account, title=title, body=body, base=base)
    match call.text("state"):
        case None:
            pass
        case "closed":
            await acts.close(hub, pull, account)
        case "open":
            await acts.reopen(hub, pull, account)
        case other:
            raise invalid_request(f"For 'properties/state', {other} is not a member of the enum.")
    return await _full(call, pull)


@endpoints.add("GET", f"{_PULL}/files", "pull_requests=read;contents=read")
async def list_files(call: Call) -> Reply:
    diff = await pull_diff(call.hub.git, call.pull)
    render, sha = call.hub.render, call.pull.head_sha
    shown = diff.files[:MAX_FILES]
    return call.page([render_pulls.file(render, call.repo, sha, item) for item in shown])


@endpoints.add("GET", f"{_PULL}/commits", "pull_requests=read;contents=read")
async def list_commits(call: Call) -> Reply:
    git, path, pull = call.hub.git, call.repo.path, call.pull
    shas = await git.commits(path, pull.base_sha, pull.head_sha)
    facts = [await git.commit_facts(path, sha) for sha in shas]
    return call.page([call.hub.render.commit(call.repo, item) for item in facts])


@endpoints.add("GET", f"{_PULL}/merge", "pull_requests=read;contents=read")
async def is_merged(call: Call) -> Reply:
    if call.pull.merged_at is None:
        raise not_found()
    return Reply(204)


@endpoints.add("PUT", f"{_PULL}/merge", "contents=write", human="write")
async def merge_pull(call: Call) -> Reply:
    how = MergeRequest(
        method=call.text("merge_method") or "merge",
        sha=call.text("sha"),
        title=call.text("commit_title"),
        message=call.text("commit_message"),
    )
    sha = await acts.merge(call.hub, call.pull, call.account, how)
    message = "Pull Request successfully merged"
    return Reply(body={"sha": sha, "merged": True, "message": message})
