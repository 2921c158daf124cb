"""Real git against the double: clone, partial clone, fetch, push, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.github.stage import HEAD_FILE, REPO, Receiver, Stage, clone_url, git


async def _cloned(stage: Stage, directory: Path, who: str = "fix", **permissions: str) -> Path:
    url = clone_url(stage, who, **permissions)
    code, said = await git(directory, "clone", "--quiet", url, "work")
    assert code == 0, said
    return directory / "work"


async def _committed(work: Path, branch: str, path: str, text: str) -> None:
    await git(work, "checkout", "--quiet", "-B", branch)
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text(text)
    await git(work, "add", ".")
    code, said = await git(work, "commit", "--quiet", "-m", "change")
    assert code == 0, said


async def test_clone_and_fetch(stage: Stage, tmp_path: Path) -> None:
    """A token with contents read clones, and fetches heads and test merges of pull requests."""
    work = await _cloned(stage, tmp_path, "ward", contents="read")
    code, said = await git(work, "fetch", "origin", "refs/pull/1/head:pr", "refs/pull/1/merge:m")
    assert code == 0, said
    _, shown = await git(work, "show", "pr:a.py")
    assert shown == HEAD_FILE
    _, parents = await git(work, "rev-list", "--parents", "-n1", "m")
    assert parents.split()[2] == stage.head


async def test_partial_mirror_and_single_commit(stage: Stage, tmp_path: Path) -> None:
    """Blob-less mirrors work, missing blobs arrive on demand, any commit can be asked by SHA."""
    url = clone_url(stage, "ward")
    code, said = await git(tmp_path, "clone", "--bare", "--filter=blob:none", url, "mirror")
    assert code == 0, said
    assert "filtering not recognized" not in said
    code, shown = await git(tmp_path / "mirror", "show", f"{stage.head}:b.py")
    assert (code, shown.splitlines()[-1]) == (0, "new")
    await git(tmp_path, "init", "--quiet", "bare")
    code, said = await git(tmp_path / "bare", "fetch", "--depth=1", url, stage.head)
    assert code == 0, said


async def test_push_moves_the_pull_request(
    hooked: Stage, receiver: Receiver, tmp_path: Path
) -> None:
    """A push through git updates the head and sends push and synchronize as the bot."""
    work = await _cloned(hooked, tmp_path)
    await git(work, "checkout", "--quiet", "feature")
    await _committed(work, "feature", "b.py", "fixed\n")
    code, said = await git(work, "push", "origin", "feature")
    assert code == 0, said
    _, sha = await git(work, "rev-parse", "HEAD")
    assert hooked.gh.pull(REPO, 1).head_sha == sha.strip()
    await hooked.gh.drain()
    told = [(d.event, d.action, d.payload["sender"]["login"]) for d in hooked.gh.deliveries[-3:]]
    assert told == [
        ("push", None, "fix[bot]"),
        ("check_suite", "requested", "fix[bot]"),
        ("pull_request", "synchronize", "fix[bot]"),
    ]
    assert len(receiver.received) == 3


async def test_new_branch_becomes_a_pull_request(stage: Stage, tmp_path: Path) -> None:
    """A branch pushed by git can be the head of an API pull request."""
    work = await _cloned(stage, tmp_path)
    await _committed(work, "fix/one", "z.py", "z\n")
    code, said = await git(work, "push", "origin", "fix/one")
    assert code == 0, said
    body = {"title": "t", "head": "fix/one", "base": "main"}
    made = await stage.call("POST", f"/repos/{REPO}/pulls", body, who="fix")
    assert (made.status_code, made.json()["commits"]) == (201, 1)


async def test_merging_by_push(stage: Stage, tmp_path: Path) -> None:
    """Pushing the head's commits into the base merges the pull request, as on GitHub."""
    work = await _cloned(stage, tmp_path, "bob")
    code, said = await git(work, "push", "origin", "origin/feature:main")
    assert code == 0, said
    assert stage.gh.pull(REPO, 1).state == "merged"


REFUSALS: list[tuple[str, str, dict[str, str], str]] = [
    ("read only", "fix", {"contents": "read"}, f"Permission to {REPO}.git denied to fix[bot]."),
    ("reader", "eve", {}, f"Permission to {REPO}.git denied to eve."),
]


@pytest.mark.parametrize(
    ("who", "permissions", "message"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
async def test_push_refused(
    stage: Stage, tmp_path: Path, who: str, permissions: dict[str, str], message: str
) -> None:
    """Pushing needs contents write, or a person's write level; nothing moves otherwise."""
    work = await _cloned(stage, tmp_path, who, **permissions)
    await _committed(work, "new", "z.py", "z\n")
    code, said = await git(work, "push", "origin", "new")
    assert code != 0
    assert message in said
    assert await stage.gh.hub.git.branch(stage.gh.repository(REPO).path, "new") is None


async def test_clone_refused(stage: Stage, tmp_path: Path) -> None:
    """No credentials, a bad token, another repository or a fork: no clone."""
    await stage.gh.create_repository("other", "secret", {})
    good = clone_url(stage, "fix")
    urls = {
        f"{stage.gh.url}/{REPO}.git": "could not read Username",
        good.replace("ghs_", "ghs_0"): "Authentication failed",
        clone_url(stage, "fix", "other/secret"): "not found",
        clone_url(stage, "ward", REPO, issues="read"): "denied to ward[bot]",
    }
    for url, message in urls.items():
        code, said = await git(tmp_path, "clone", "--quiet", url, "gone")
        assert code != 0
        assert message in said


async def test_workflow_files_need_their_permission(stage: Stage, tmp_path: Path) -> None:
    """An App without `workflows` can't push workflow files; a person can."""
    work = await _cloned(stage, tmp_path)
    await _committed(work, "ci", ".github/workflows/x.yml", "on: push\n")
    code, said = await git(work, "push", "origin", "ci")
    assert code != 0
    assert "refusing to allow a GitHub App to create or update workflow" in said
    assert "`.github/workflows/x.yml` without `workflows` permission" in said
    code, said = await git(work, "push", clone_url(stage, "bob"), "ci")
    assert code == 0, said


async def test_pull_refs_are_not_pushable(stage: Stage, tmp_path: Path) -> None:
    """`refs/pull` belongs to GitHub."""
    work = await _cloned(stage, tmp_path)
    await _committed(work, "x", "z.py", "z\n")
    code, said = await git(work, "push", "origin", "x:refs/pull/1/head")
    assert code != 0
    assert "deny updating a hidden ref" in said


async def test_deletion_and_force_by_git(stage: Stage, tmp_path: Path) -> None:
    """A forced push rewrites the head; deleting the branch closes the pull request."""
    work = await _cloned(stage, tmp_path)
    await _committed(work, "feature", "n.py", "n\n")
    await git(work, "reset", "--quiet", "--soft", "origin/main")
    await git(work, "commit", "--quiet", "-m", "again")
    code, _ = await git(work, "push", "origin", "feature")
    assert code != 0, "not a fast forward"
    code, said = await git(work, "push", "--force", "origin", "feature")
    assert code == 0, said
    code, said = await git(work, "push", "origin", ":feature")
    assert code == 0, said
    assert stage.gh.pull(REPO, 1).state == "closed"


async def test_git_is_in_the_call_log(stage: Stage, tmp_path: Path) -> None:
    """Git requests are logged with App and status, beside API calls."""
    await _cloned(stage, tmp_path)
    logged = [(c.method, c.app, c.status) for c in stage.gh.calls if c.method == "GIT"]
    assert ("GIT", "fix", 200) in logged
