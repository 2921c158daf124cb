"""The change that `mergeward review` looks at, gathered from a person's own repository."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.domain.policy import POLICY_PATH
from app.errors import GitError
from app.git.mirror import Repository, open_local
from app.git.process import git
from app.policy.load import EffectivePolicy, PolicySource
from app.policy.read import read_policy
from app.review.source import Source, open_source

DEFAULT_BASES = (
    "refs/remotes/origin/HEAD",
    "refs/heads/main",
    "refs/heads/master",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
)
"""Where the default branch is looked for, in this order."""

_MOST_COMMITS = 50
_FIELD, _RECORD = "%x1f", "%x1e"


@dataclass(frozen=True, slots=True)
class Change:
    """All that is known of the change before anybody reads it.

    `top` is the folder of the checkout, None in a bare repository. `remarks` are for the person.
    Names, title, body and author are as untrusted as the commits.
    """

    name: str
    top: Path | None
    base_name: str
    base: str
    head_name: str
    source: Source
    policy: EffectivePolicy
    title: str
    body: str
    author: str
    remarks: tuple[str, ...]


async def open_change(path: Path, base: str | None, head: str) -> Change:
    """Gather the change from where `head` left `base` to `head`.

    Raises GitError when `path` is in no repository, a name means nothing, or both share nothing.
    """
    repository = await open_local(path)
    base_name, base_sha = await _base(repository, base)
    head_sha = await repository.resolve(head)
    source = await open_source(repository, base_sha, head_sha)
    policy = await read_policy(repository, base_sha)
    top = await _top(path)
    title, body, author = await _words(source, head)
    return Change(
        name=(top or repository.git_dir).name,
        top=top,
        base_name=base_name,
        base=base_sha,
        head_name=head,
        source=source,
        policy=policy,
        title=title,
        body=body,
        author=author,
        remarks=(*_policy_remarks(policy), *await _worktree_remarks(repository, top, head_sha)),
    )


async def _base(repository: Repository, named: str | None) -> tuple[str, str]:
    """The base's name and commit: as named, or the default branch."""
    if named is not None:
        return named, await repository.resolve(named)
    for ref in DEFAULT_BASES:
        with suppress(GitError):
            return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/"), (
                await repository.resolve(ref)
            )
    raise GitError(
        "This repository has no origin/HEAD, main or master to compare with: name the base, "
        "for example --base HEAD~1."
    )


async def _top(path: Path) -> Path | None:
    with suppress(GitError):
        out = await git(("rev-parse", "--show-toplevel"), cwd=path)
        return Path(out.decode("utf-8", "surrogateescape").rstrip("\n"))
    return None


async def _words(source: Source, head: str) -> tuple[str, str, str]:
    """Title, body and author, as a pull request of these commits would begin."""
    out = await git(
        (
            "log", "--reverse", f"--max-count={_MOST_COMMITS}",
            f"--format=%an{_FIELD}%s{_FIELD}%b{_RECORD}",
            f"{source.merge_base}..{source.head}", "--",
        ),
        cwd=source.repository.git_dir,
    )  # fmt: skip
    records = [record.strip("\n").split("\x1f") for record in _text(out).split("\x1e")]
    commits = [(who, subject, body) for who, subject, body in (r for r in records if len(r) == 3)]
    match commits:
        case []:
            return head, "", ""
        case [(who, subject, body)]:
            return subject, body, who
        case _:
            subjects = "\n".join(f"- {subject}" for _, subject, _ in commits)
            return (commits[-1][1] if head == "HEAD" else head), subjects, commits[-1][0]


def _text(out: bytes) -> str:
    return out.decode("utf-8", "replace")


def _policy_remarks(policy: EffectivePolicy) -> tuple[str, ...]:
    if policy.problem is None:
        return ()
    last_valid = policy.source is PolicySource.LAST_VALID
    holds = "its last valid version holds" if last_valid else "the default policy holds"
    return (f"warning: {POLICY_PATH} can't be used, {holds}. {policy.problem}",)


async def _worktree_remarks(
    repository: Repository, top: Path | None, head_sha: str
) -> tuple[str, ...]:
    """Says so when the files on disk are not what is reviewed."""
    if top is None:
        return ()
    with suppress(GitError):
        if await repository.resolve("HEAD") != head_sha:
            return ()
        out = await git(("status", "--porcelain", "-z", "--ignore-submodules=all"), cwd=top)
        changed = [entry for entry in out.split(b"\0") if entry[2:3] == b" "]
        if changed:
            files = f"{len(changed)} file{'' if len(changed) == 1 else 's'}"
            return (f"Uncommitted changes ({files}) are not reviewed, only commits are.",)
    return ()
