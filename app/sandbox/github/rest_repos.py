"""REST: repositories, collaborators, commits and refs."""

from __future__ import annotations

from app.sandbox.github import pushes, render_pulls
from app.sandbox.github.endpoint import Call, Endpoints, Reply
from app.sandbox.github.errors import ApiError, not_found
from app.sandbox.github.gitstore import NOBODY
from app.sandbox.github.world import node_id

endpoints = Endpoints()


@endpoints.add("GET", "/repos/{owner}/{repo}")
async def get_repository(call: Call) -> Reply:
    level = call.repo.level_of(call.account)
    names = {"admin": "admin", "push": "write", "pull": "read"}
    ranks = ("none", "read", "write", "admin")
    permissions = {key: ranks.index(level) >= ranks.index(at) for key, at in names.items()}
    body = {**call.hub.render.repository(call.repo), "permissions": permissions}
    if call.repo.parent is not None:
        parent = call.hub.render.repository(call.repo.parent)
        body |= {"parent": parent, "source": parent}
    return Reply(body=body)


@endpoints.add("GET", "/repos/{owner}/{repo}/collaborators/{login}/permission")
async def get_permission(call: Call) -> Reply:
    """`permission` of a user; an App's bot has `none`, whatever its installation may do."""
    account = call.hub.world.account(call.path("login"))
    if account is None:
        raise not_found()
    level = call.repo.level_of(account)
    user = {**call.hub.render.user(account), "role_name": level}
    return Reply(body={"permission": level, "role_name": level, "user": user})


@endpoints.add(
    "GET", "/repos/{owner}/{repo}/commits/{sha}/pulls", "pull_requests=read;contents=read"
)
async def list_pulls_of_commit(call: Call) -> Reply:
    """Pull requests that brought a commit, or hold it, by merge commit or head history."""
    git, path = call.hub.git, call.repo.path
    sha = await git.resolve(path, call.path("sha"))
    if sha is None:
        raise _no_commit(call.path("sha"))
    found = []
    for pull in call.repo.pulls.values():
        inside = sha in await git.commits(path, pull.base_sha, pull.head_sha)
        if inside or sha == pull.merge_commit_sha:
            found.append(render_pulls.simple_pull(call.hub.render, pull))
    return call.page(found)


def _no_commit(name: str) -> ApiError:
    return ApiError(422, f"No commit found for SHA: {name}")


@endpoints.add("GET", "/repos/{owner}/{repo}/commits/{ref:path}", "contents=read")
async def get_commit(call: Call) -> Reply:
    git, path = call.hub.git, call.repo.path
    name = call.path("ref")
    sha = await git.branch(path, name) or await git.resolve(path, name)
    if sha is None:
        raise _no_commit(name)
    facts = await git.commit_facts(path, sha)
    diff = await git.between(path, facts.parents[0] if facts.parents else None, sha)
    added = sum(file.additions for file in diff.files)
    removed = sum(file.deletions for file in diff.files)
    render = call.hub.render
    files = [render_pulls.file(render, call.repo, sha, item) for item in diff.files]
    body = render.commit(call.repo, facts)
    stats = {"additions": added, "deletions": removed, "total": added + removed}
    return Reply(body={**body, "stats": stats, "files": files})


@endpoints.add("GET", "/repos/{owner}/{repo}/git/ref/{ref:path}", "contents=read")
async def get_ref(call: Call) -> Reply:
    ref, sha = f"refs/{call.path('ref')}", None
    if ref.startswith(("refs/heads/", "refs/tags/", "refs/pull/")):
        sha = await call.hub.git.resolve(call.repo.path, ref)
    if sha is None:
        raise not_found()
    api = call.hub.render.repo_url(call.repo)
    target = {"type": "commit", "sha": sha, "url": f"{api}/git/commits/{sha}"}
    name = node_id("REF", int(sha[:12], 16))
    return Reply(body={"ref": ref, "node_id": name, "url": f"{api}/git/{ref}", "object": target})


@endpoints.add(
    "DELETE", "/repos/{owner}/{repo}/git/refs/{ref:path}", "contents=write", human="write"
)
async def delete_ref(call: Call) -> Reply:
    """Delete a branch; its open pull requests close, as on GitHub."""
    ref = f"refs/{call.path('ref')}"
    async with call.repo.lock:
        before = None
        if ref.startswith("refs/heads/"):
            before = await call.hub.git.resolve(call.repo.path, ref)
        if before is None:
            raise ApiError(422, "Reference does not exist")
        await call.hub.git.move_refs(call.repo.path, {ref: None})
        await pushes.branch_moved(call.hub, call.repo, ref, before, NOBODY, call.account)
    return Reply(204)
