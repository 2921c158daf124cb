"""Pull requests: opening, listing, merging, closing, and what their heads do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.sandbox.github import ApiError
from app.sandbox.github.gitstore import Files
from tests.sandbox.github.stage import BASE_FILE, HEAD_FILE, PULL_PATH, REPO, REPO_PATH, Stage


def wanted(**changes: Any) -> dict[str, Any]:
    """A pull request that can be opened once branch `other` exists."""
    return {"title": "t", "head": "other", "base": "main"} | changes


CREATIONS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        "same head twice",
        wanted(head="feature"),
        {
            "resource": "PullRequest",
            "code": "custom",
            "message": "A pull request already exists for acme:feature.",
        },
    ),
    (
        "no commits",
        wanted(head="same"),
        {
            "resource": "PullRequest",
            "code": "custom",
            "message": "No commits between main and same",
        },
    ),
    (
        "unknown head",
        wanted(head="gone"),
        {"resource": "PullRequest", "code": "invalid", "field": "head"},
    ),
    (
        "unknown base",
        wanted(base="gone"),
        {"resource": "PullRequest", "code": "invalid", "field": "base"},
    ),
    (
        "unknown owner",
        wanted(head="nobody:x"),
        {"resource": "PullRequest", "code": "invalid", "field": "head"},
    ),
    (
        "no title",
        wanted(title=""),
        {"resource": "PullRequest", "code": "missing_field", "field": "title"},
    ),
    (
        "no base",
        wanted(base=None),
        {"resource": "PullRequest", "code": "missing_field", "field": "base"},
    ),
]


@pytest.mark.parametrize(
    ("body", "error"), [c[1:] for c in CREATIONS], ids=[c[0] for c in CREATIONS]
)
async def test_creation_refused(stage: Stage, body: dict[str, Any], error: dict[str, str]) -> None:
    """422 `Validation Failed` with GitHub's reason."""
    repository = stage.gh.repository(REPO)
    main = await stage.gh.hub.git.branch(repository.path, "main")
    await stage.gh.hub.git.move_refs(repository.path, {"refs/heads/same": main})
    await stage.gh.push(REPO, "other", {"z": "z\n"}, author="alice")
    answer = await stage.call("POST", f"{REPO_PATH}/pulls", body)
    assert answer.status_code == 422
    assert answer.json()["message"] == "Validation Failed"
    assert answer.json()["errors"] == [error]


async def test_created_by_an_app(stage: Stage) -> None:
    """An App's pull request is authored by its bot, which GitHub counts as NONE."""
    await stage.gh.push(REPO, "other", {"z": "z\n"}, author="fix[bot]")
    made = (await stage.call("POST", f"{REPO_PATH}/pulls", wanted(draft=True), who="fix")).json()
    assert (made["user"]["login"], made["user"]["type"]) == ("fix[bot]", "Bot")
    assert (made["author_association"], made["draft"], made["number"]) == ("NONE", True, 2)
    assert (made["head"]["label"], made["merged"]) == ("acme:other", False)
    own = await stage.call("POST", f"{REPO_PATH}/pulls/2/reviews", {"event": "APPROVE"}, who="fix")
    other = await stage.call("POST", f"{REPO_PATH}/pulls/2/reviews", {"event": "APPROVE"})
    assert (own.status_code, other.status_code) == (422, 200)


FILTERS = [
    ("default is open", "", [3, 1]),
    ("all", "state=all", [3, 2, 1]),
    ("closed", "state=closed", [2]),
    ("head", "state=all&head=acme:two", [2]),
    ("head without owner is ignored", "state=all&head=two", [3, 2, 1]),
    ("base", "base=release", [3]),
    ("oldest first", "state=all&direction=asc", [1, 2, 3]),
    ("second page", "state=all&per_page=2&page=2", [1]),
]


@pytest.mark.parametrize(
    ("query", "numbers"), [f[1:] for f in FILTERS], ids=[f[0] for f in FILTERS]
)
async def test_list(stage: Stage, query: str, numbers: list[int]) -> None:
    """Filters of the list, newest first."""
    await stage.gh.push(REPO, "release", {"r": "r\n"}, author="alice")
    for head, base in (("two", "main"), ("three", "release")):
        await stage.gh.push(REPO, head, {head: "x\n"}, author="bob", base=base)
        await stage.gh.open_pull_request(REPO, author="bob", head=head, title=head, base=base)
    await stage.gh.close(REPO, 2, actor="bob")
    listed = (await stage.call("GET", f"{REPO_PATH}/pulls?{query}")).json()
    assert [pull["number"] for pull in listed] == numbers


async def test_link_header_walks_all_pages(stage: Stage) -> None:
    """`Link` leads through all items exactly once and ends."""
    for number in range(5):
        stage.gh.comment(REPO, 1, f"c{number}", actor="alice")
    path: str | None = f"{REPO_PATH}/issues/1/comments?per_page=2"
    bodies: list[str] = []
    while path:
        answer = await stage.call("GET", path)
        bodies += [item["body"] for item in answer.json()]
        path = answer.links.get("next", {}).get("url")
    assert bodies == [f"c{n}" for n in range(5)]


async def test_files_and_diff(stage: Stage) -> None:
    """Files carry GitHub's patch; the diff media type gives the whole; binaries have no patch."""
    await stage.gh.push(REPO, "feature", {"x.bin": b"\0\1\2"}, author="alice")
    files = {f["filename"]: f for f in (await stage.call("GET", f"{PULL_PATH}/files")).json()}
    assert files["a.py"]["patch"].startswith(
        "@@ -1,6 +1,6 @@\n line 1\n line 2\n-line 3\n+line three"
    )
    assert (files["a.py"]["additions"], files["a.py"]["deletions"]) == (1, 2)
    assert files["b.py"]["status"] == "added"
    assert "patch" not in files["x.bin"]
    media = {"Accept": "application/vnd.github.diff"}
    diff = await stage.call("GET", PULL_PATH, headers=media)
    assert diff.text.count("diff --git ") == 3


async def test_merge_commit(stage: Stage) -> None:
    """A merge has two parents, closes the pull request and moves the base."""
    answer = await stage.call("PUT", f"{PULL_PATH}/merge", {"sha": stage.head})
    sha = answer.json()["sha"]
    pull = (await stage.call("GET", PULL_PATH)).json()
    assert (pull["merged"], pull["state"], pull["merge_commit_sha"]) == (True, "closed", sha)
    assert (pull["merged_by"]["login"], pull["mergeable"]) == ("ward[bot]", None)
    commit = (await stage.call("GET", f"{REPO_PATH}/commits/main")).json()
    assert (commit["sha"], len(commit["parents"])) == (sha, 2)
    assert [f["filename"] for f in commit["files"]] == ["a.py", "b.py"]
    files = (await stage.call("GET", f"{PULL_PATH}/files")).json()
    assert [f["filename"] for f in files] == ["a.py", "b.py"]
    again = await stage.call("PUT", f"{PULL_PATH}/merge", {})
    assert (again.status_code, again.json()["message"]) == (405, "Pull Request is not mergeable")
    assert (await stage.call("GET", f"{PULL_PATH}/merge")).status_code == 204


async def test_merge_into_a_moved_base(stage: Stage) -> None:
    """The merged pull request names the base commit that it was merged into."""
    tip = await stage.gh.push(REPO, "main", {"m.py": "m\n"}, author="bob")
    sha = await stage.gh.merge(REPO, 1, actor="bob")
    pull = (await stage.call("GET", PULL_PATH)).json()
    commit = (await stage.call("GET", f"{REPO_PATH}/commits/{sha}")).json()
    assert (pull["base"]["sha"], commit["parents"][0]["sha"]) == (tip, tip)
    assert pull["changed_files"] == 2


async def test_pushes_at_once_lose_nothing(stage: Stage) -> None:
    """Two people who push to one branch at the same moment both end up in it."""
    files: list[Files] = [{f"n{n}.py": "n\n"} for n in range(4)]
    pushes = [stage.gh.push(REPO, "feature", change, author="bob") for change in files]
    await asyncio.gather(*pushes)
    commits = (await stage.call("GET", f"{PULL_PATH}/commits")).json()
    assert len(commits) == 5
    assert stage.gh.pull(REPO, 1).head_sha == commits[-1]["sha"]


async def test_squash(stage: Stage) -> None:
    """A squash makes one new commit by the author; the head is no ancestor of the base."""
    sha = await stage.gh.merge(REPO, 1, actor="bob", method="squash")
    commit = (await stage.call("GET", f"{REPO_PATH}/commits/{sha}")).json()
    assert len(commit["parents"]) == 1
    assert commit["commit"]["message"] == "A change (#1)"
    assert commit["author"]["login"] == "alice"
    found = (await stage.call("GET", f"{REPO_PATH}/commits/{sha}/pulls")).json()
    assert [pull["number"] for pull in found] == [1]


MERGES: list[tuple[str, dict[str, Any], int, str]] = [
    ("head moved", {"sha": "0" * 40}, 409, "Head branch was modified."),
    ("rebase", {"merge_method": "rebase"}, 405, "Rebase merges are not allowed"),
]


@pytest.mark.parametrize(
    ("body", "status", "message"), [m[1:] for m in MERGES], ids=[m[0] for m in MERGES]
)
async def test_merge_refused(stage: Stage, body: dict[str, Any], status: int, message: str) -> None:
    """405 when it may not be merged, 409 when the head is another."""
    answer = await stage.call("PUT", f"{PULL_PATH}/merge", body)
    assert answer.status_code == status
    assert answer.json()["message"].startswith(message)


async def test_conflict_and_draft(stage: Stage) -> None:
    """Conflicts show as `mergeable: false` and refuse; drafts refuse too."""
    await stage.gh.set_draft(REPO, 1, actor="alice", draft=True)
    draft = await stage.call("PUT", f"{PULL_PATH}/merge", {})
    assert (draft.status_code, draft.json()["message"]) == (405, "Pull Request is still a draft")
    await stage.gh.set_draft(REPO, 1, actor="alice", draft=False)
    other = BASE_FILE.replace("line 3", "LINE 3")
    await stage.gh.push(REPO, "main", {"a.py": other}, author="bob")
    pull = (await stage.call("GET", PULL_PATH)).json()
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    assert (await stage.call("PUT", f"{PULL_PATH}/merge", {})).status_code == 405


async def test_opened_in_conflict(stage: Stage) -> None:
    """A pull request that conflicts from the start opens, without test merge."""
    text = BASE_FILE.replace("line 3", "line 3!")
    await stage.gh.push(REPO, "other", {"a.py": text}, author="bob")
    await stage.gh.push(REPO, "main", {"a.py": BASE_FILE.replace("line 3", "3")}, author="bob")
    made = await stage.call("POST", f"{REPO_PATH}/pulls", wanted(), who="bob")
    assert (made.status_code, made.json()["mergeable"]) == (201, False)
    assert made.json()["merge_commit_sha"] is None
    missing = await stage.call("GET", f"{REPO_PATH}/git/ref/pull/2/merge")
    assert missing.status_code == 404


CHECKS: list[tuple[str, list[tuple[str, dict[str, Any]]], str | None]] = [
    ("missing", [], 'Required status check "gate" is expected.'),
    ("other name", [("ward", {"name": "x", "conclusion": "success"})], "is expected."),
    ("running", [("ward", {"name": "gate", "status": "in_progress"})], "is in progress."),
    ("failed", [("ward", {"name": "gate", "conclusion": "action_required"})], "is failing."),
    ("neutral passes", [("ward", {"name": "gate", "conclusion": "neutral"})], None),
    ("passed", [("ward", {"name": "gate", "conclusion": "success"})], None),
]


@pytest.mark.parametrize(("runs", "message"), [c[1:] for c in CHECKS], ids=[c[0] for c in CHECKS])
async def test_required_check(
    stage: Stage, runs: list[tuple[str, dict[str, Any]]], message: str | None
) -> None:
    """A required check pinned to an App gates the merge; neutral counts as passing."""
    stage.gh.require_check(REPO, "main", "gate", "ward")
    for who, run in runs:
        await stage.call(
            "POST", f"{REPO_PATH}/check-runs", {"head_sha": stage.head, **run}, who=who
        )
    answer = await stage.call("PUT", f"{PULL_PATH}/merge", {})
    assert answer.status_code == (405 if message else 200)
    assert message is None or message in answer.json()["message"]


async def test_close_reopen_edit(stage: Stage) -> None:
    """PATCH closes, reopens and edits; a merged pull request can't be reopened."""
    closed = (await stage.call("PATCH", PULL_PATH, {"state": "closed", "title": "New"})).json()
    assert (closed["state"], closed["title"], closed["merged"]) == ("closed", "New", False)
    await stage.gh.push(REPO, "feature", {"b.py": "later\n"}, author="alice")
    assert stage.gh.pull(REPO, 1).head_sha == stage.head, "a closed pull request does not follow"
    reopened = (await stage.call("PATCH", PULL_PATH, {"state": "open"})).json()
    assert (reopened["state"], reopened["head"]["sha"] != stage.head) == ("open", True)
    await stage.gh.merge(REPO, 1, actor="bob")
    refused = await stage.call("PATCH", PULL_PATH, {"state": "open"})
    assert refused.status_code == 422
    wrong = await stage.call("PATCH", PULL_PATH, {"state": "merged"})
    assert wrong.status_code == 422


async def test_deleting_the_branch_closes(stage: Stage) -> None:
    """Deleting a head branch closes its pull request; deleting it twice is 422."""
    path = f"{REPO_PATH}/git/refs/heads/feature"
    assert (await stage.call("DELETE", path)).status_code == 204
    assert stage.gh.pull(REPO, 1).state == "closed"
    again = await stage.call("DELETE", path)
    assert (again.status_code, again.json()["message"]) == (422, "Reference does not exist")
    with pytest.raises(ApiError):
        await stage.gh.reopen(REPO, 1, actor="alice")


async def test_refs_of_pull_requests(stage: Stage) -> None:
    """`refs/pull/N/head` follows the head; `merge` is a test merge."""
    sha = await stage.gh.push(REPO, "feature", {"b.py": "b\n"}, author="alice")
    head = (await stage.call("GET", f"{REPO_PATH}/git/ref/pull/1/head")).json()
    merge = (await stage.call("GET", f"{REPO_PATH}/git/ref/pull/1/merge")).json()
    pull = (await stage.call("GET", PULL_PATH)).json()
    assert (head["object"]["sha"], merge["object"]["sha"]) == (sha, pull["merge_commit_sha"])
    assert (await stage.call("GET", f"{REPO_PATH}/git/ref/heads/none")).status_code == 404


async def test_fork(stage: Stage) -> None:
    """A fork's pull request is opened as `owner:branch`, followed, and fetched from the base."""
    fork = await stage.gh.fork(REPO, "carol")
    await stage.gh.push("carol/shop", "idea", {"f.py": "f\n"}, author="carol")
    pull = await stage.gh.open_pull_request(REPO, author="carol", head="carol:idea", title="F")
    sha = await stage.gh.push("carol/shop", "idea", {"g.py": "g\n"}, author="carol")
    shown = (await stage.call("GET", f"{REPO_PATH}/pulls/{pull.number}")).json()
    assert shown["head"]["repo"]["full_name"] == "carol/shop"
    assert (shown["head"]["sha"], shown["changed_files"]) == (sha, 2)
    ref = (await stage.call("GET", f"{REPO_PATH}/git/ref/pull/2/head")).json()
    assert ref["object"]["sha"] == sha
    assert (await stage.call("GET", "/repos/carol/shop")).status_code == 404
    run = {"name": "x", "head_sha": sha, "conclusion": "success"}
    check = (await stage.call("POST", f"{REPO_PATH}/check-runs", run)).json()
    assert check["pull_requests"] == [], "GitHub lists no pull requests on heads of forks"
    assert fork.parent is stage.gh.repository(REPO)


async def test_force_push(stage: Stage) -> None:
    """A rewritten branch moves the head to a commit that does not descend from the old one."""
    sha = await stage.gh.push(
        REPO, "feature", {"a.py": HEAD_FILE + "z\n"}, author="alice", force=True
    )
    repository = stage.gh.repository(REPO)
    assert stage.gh.pull(REPO, 1).head_sha == sha
    assert not await stage.gh.hub.git.is_ancestor(repository.path, stage.head, sha)


@pytest.mark.parametrize("version", ["2022-11-28", "2026-03-10"])
async def test_api_versions(stage: Stage, version: str) -> None:
    """2026-03-10 has no `rate` and no `has_downloads`; unknown versions are 400."""
    headers = {"X-GitHub-Api-Version": version}
    limit = (await stage.call("GET", "/rate_limit", headers=headers)).json()
    repository = (await stage.call("GET", REPO_PATH, headers=headers)).json()
    old = version == "2022-11-28"
    assert ("rate" in limit, "has_downloads" in repository) == (old, old)
    unknown = await stage.call("GET", REPO_PATH, headers={"X-GitHub-Api-Version": "2020-01-01"})
    assert unknown.status_code == 400


async def test_conditional_requests(stage: Stage) -> None:
    """An unchanged answer is 304, but only to somebody who may see it."""
    first = await stage.call("GET", PULL_PATH)
    headers = {"If-None-Match": first.headers["etag"]}
    assert (await stage.call("GET", PULL_PATH, headers=headers)).status_code == 304
    assert (await stage.call("GET", PULL_PATH, headers=headers, who=None)).status_code == 401


@pytest.mark.parametrize(
    ("raw", "status"), [(b"{", 400), (b'"x"', 400), (b"\xff", 400)], ids=["cut", "text", "bytes"]
)
async def test_bodies_that_are_not_json(stage: Stage, raw: bytes, status: int) -> None:
    """Bodies that do not parse are 400."""
    headers = {"Authorization": f"Bearer {stage.token('ward')}"}
    answer = await stage.http.post(f"{PULL_PATH}/reviews", content=raw, headers=headers)
    assert answer.status_code == status


async def test_unknown_paths(stage: Stage) -> None:
    """Unknown routes and methods answer GitHub's JSON 404."""
    for method, path in (("GET", "/nothing/here/at/all"), ("DELETE", PULL_PATH)):
        answer = await stage.call(method, path)
        assert answer.json() == {
            "message": "Not Found",
            "documentation_url": "https://docs.github.com/rest",
            "status": "404",
        }


async def test_archived_repository(stage: Stage) -> None:
    """An archived repository can be read and not written."""
    stage.gh.repository(REPO).archived = True
    assert (await stage.call("GET", PULL_PATH)).status_code == 200
    answer = await stage.review(event="APPROVE")
    assert (answer.status_code, answer.json()["message"]) == (
        403,
        "Repository was archived so is read-only.",
    )
