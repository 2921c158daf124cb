"""What agents are given to read: a folder per run with patches and shared context, and prompts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.agents.prompt_context import (
    ChangedFile,
    KnownFinding,
    PromptContext,
    Remark,
    shared_context,
)
from app.agents.workspace import SHARED_CONTEXT
from app.domain.diff import FileChange
from app.domain.findings import Finding
from app.domain.pull_request import ReviewThread

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_CHARS = 80


def patch_names(files: Sequence[FileChange]) -> dict[str, str]:
    """The name of each file's patch in the run's folder: `diff/007-app_api_search.py.patch`.

    The number keeps names apart, the rest is for people; nothing of the path can leave the folder.
    """
    return {
        file.path: f"diff/{number:04d}-{_slug(file.path)}.patch"
        for number, file in enumerate(files, start=1)
    }


def _slug(path: str) -> str:
    return _UNSAFE.sub("_", path)[-_SLUG_CHARS:].lstrip(".-") or "file"


def changed_files(
    files: Sequence[FileChange], patches: Mapping[str, str]
) -> tuple[ChangedFile, ...]:
    """The reviewed files as the prompt lists them."""
    return tuple(
        ChangedFile(
            path=file.path,
            status=file.status.value,
            additions=file.additions,
            deletions=file.deletions,
            patch=patches[file.path],
            previous_path=file.old_path,
        )
        for file in files
    )


def known_findings(
    findings: Sequence[Finding],
    threads: Sequence[ReviewThread],
    comment_ids: Mapping[str, int],
    writers: frozenset[str] = frozenset(),
) -> tuple[KnownFinding, ...]:
    """Open findings with what people answered in their threads.

    `comment_ids` maps short ids to the first comment of the finding's thread; of those who
    answered, `writers` may write.
    """
    by_comment = {thread.comments[0].id: thread for thread in threads if thread.comments}
    return tuple(
        KnownFinding(
            id=finding.short_id,
            status=finding.status.value,
            origin=finding.origin.value,
            path=finding.location.path,
            line=finding.location.start_line,
            severity=finding.severity.value,
            title=finding.title,
            body=finding.body,
            replies=_replies(by_comment.get(comment_ids.get(finding.short_id, 0)), writers),
        )
        for finding in findings
    )


def _replies(thread: ReviewThread | None, writers: frozenset[str]) -> tuple[Remark, ...]:
    """What people said. A bot's words are no argument, ours least of all."""
    if thread is None:
        return ()
    return tuple(
        Remark(item.author, item.body, "write" if item.author in writers else "read")
        for item in thread.comments[1:]
        if not item.by_bot
    )


async def write_run_files(
    folder: Path, files: Sequence[FileChange], patches: Mapping[str, str], context: PromptContext
) -> None:
    """Write one patch per reviewed file and the shared context. A repeat writes the same."""
    await asyncio.to_thread(_write, folder, files, patches, shared_context(context))


def _write(
    folder: Path, files: Sequence[FileChange], patches: Mapping[str, str], shared: str
) -> None:
    (folder / "diff").mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files:
        (folder / patches[file.path]).write_bytes(file.patch)
    (folder / SHARED_CONTEXT).write_text(shared, encoding="utf-8", errors="surrogateescape")
