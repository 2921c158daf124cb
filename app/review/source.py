"""The change as git knows it, gathered for the pure steps: file facts, lines, what moved."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from app.domain.diff import Diff, FileChange, FileStatus
from app.domain.findings import Finding, Location
from app.domain.policy import Policy
from app.errors import GitError
from app.git.mirror import Repository
from app.git.objects import Tree
from app.policy.paths import ignored_by, withheld_by
from app.review.filter import (
    HEAD_BYTES,
    HEAD_LINES,
    AttributeRule,
    FileFacts,
    SkipReason,
    attributes_of,
    folders_of,
    generator_line,
    parse_attributes,
)

Spot = tuple[str | None, int | None]

_ATTRIBUTES_BYTES = 1 << 20
_TOP_BYTES = 16 * HEAD_BYTES
"""What of a hunk is looked at for the top of its file: a line may be as long as the file."""

_EXTENSION = re.compile(r"\.[^.]+\Z")
_KIND = re.compile(r"[._-][^._-]+\.[^.]+\Z")
_VOUCHING = 5
"""Siblings that are asked about a new file; all of a folder would be read for one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One change between two commits of a repository."""

    repository: Repository
    merge_base: str
    head: str
    diff: Diff

    @property
    def tree(self) -> Tree:
        """The files after the change."""
        return self.repository.tree(self.head)

    @property
    def base_tree(self) -> Tree:
        """The files before the change."""
        return self.repository.tree(self.merge_base)


async def open_source(repository: Repository, base: str, head: str) -> Source:
    """The change from where `head` left `base` to `head`. Raises GitError."""
    merge_base = await repository.merge_base(base, head)
    return Source(repository, merge_base, head, await repository.diff(merge_base, head))


async def file_facts(source: Source, policy: Policy) -> tuple[FileFacts, ...]:
    """What the filter needs of each file; attributes and old contents come from the base side."""
    changes = source.diff.files
    tops = [first_lines(change) for change in changes]
    siblings = await _siblings(source.base_tree, changes, tops)
    before = {at: path for at, change in enumerate(changes) if (path := _base_path(change))}
    heads = await source.base_tree.heads(
        {*before.values(), *chain.from_iterable(siblings.values())}, HEAD_BYTES
    )
    attributes = await _attribute_rules(source.base_tree, changes)

    def facts_of(at: int) -> FileFacts:
        return FileFacts(
            change=changes[at],
            head=tops[at],
            base_head=heads.get(before[at]) if at in before else None,
            attributes=attributes_of(changes[at].path, attributes),
            skip_reason=_by_policy(changes[at], policy),
            sibling_heads=tuple(heads[path] for path in siblings.get(at, ()) if path in heads),
        )

    # Every file is held against every rule: beside the event loop, other runs wait for nothing.
    return await asyncio.to_thread(lambda: tuple(map(facts_of, range(len(changes)))))


async def _attribute_rules(
    base: Tree, changes: Iterable[FileChange]
) -> dict[str, tuple[AttributeRule, ...]]:
    """The base side's rules about the changed files, by the folder they stand in."""
    folders = {folder for change in changes for folder in folders_of(change.path)}
    names = {f"{folder}/.gitattributes".lstrip("/"): folder for folder in folders}
    files = await base.heads(names, _ATTRIBUTES_BYTES)
    return {names[name]: parse_attributes(text) for name, text in files.items()}


async def _siblings(
    base: Tree, changes: Sequence[FileChange], tops: Sequence[bytes]
) -> dict[int, tuple[str, ...]]:
    """By index: base-side files beside a new file that says a generator wrote it."""
    claiming = [
        at
        for at, (change, top) in enumerate(zip(changes, tops, strict=True))
        if change.status is FileStatus.ADDED and generator_line(top) is not None
    ]
    if not claiming:
        return {}
    wanted = {ending for at in claiming for ending in _endings(changes[at].path)}
    alike: dict[str, list[str]] = {ending: [] for ending in wanted}
    for path in await base.files():
        for ending in _endings(path):
            if ending in alike:
                alike[ending].append(path)
    return {at: _nearest(changes[at].path, alike) for at in claiming}


def _nearest(path: str, alike: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The few files of a folder that the generator of `path` most likely wrote too."""
    found = chain.from_iterable(alike[ending] for ending in _endings(path))
    return tuple(islice(dict.fromkeys(found), _VOUCHING))


def _endings(path: str) -> tuple[str, str]:
    """A path without what tells it from its kin: first as `dir/_pb2.py`, then as `dir/.py`."""
    folder, _, name = path.rpartition("/")
    extension = _EXTENSION.search(name)
    kind = _KIND.search(name) or extension
    return (
        f"{folder}/{kind[0] if kind else name}",
        f"{folder}/{extension[0] if extension else name}",
    )


def first_lines(change: FileChange) -> bytes:
    """The top of the new file, if the diff shows it."""
    if not change.shows(1):
        return b""
    first = change.hunks[0]
    lines = first._replace(body=first.body[:_TOP_BYTES]).shown(1, HEAD_LINES)
    return b"\n".join(line.content for line in lines)[:HEAD_BYTES]


def _base_path(change: FileChange) -> str | None:
    if change.status is FileStatus.ADDED or change.binary or change.submodule:
        return None
    return change.old_path or change.path


def _by_policy(change: FileChange, policy: Policy) -> SkipReason | None:
    """A rename shows what stood under the old name, so that one counts for what is withheld."""
    names = {change.path, change.old_path or change.path}
    if any(withheld_by(policy, name) is not None for name in names):
        return SkipReason.WITHHELD
    return SkipReason.POLICY if ignored_by(policy, change.path) is not None else None


async def texts_of(tree: Tree, paths: Iterable[str | None]) -> dict[str, bytes]:
    """The contents of the files that are there."""
    found: dict[str, bytes] = {}
    for path in dict.fromkeys(paths):
        text = await tree.read(path) if path is not None else None
        if path is not None and text is not None:
            found[path] = text
    return found


def line_count(text: bytes) -> int:
    """The lines of a file; a last one without its end counts."""
    return text.count(b"\n") + (not text.endswith(b"\n") and text != b"")


def code_at(texts: Mapping[str, bytes], spots: Iterable[Spot]) -> dict[Spot, str]:
    """The source lines that findings point at; places that do not exist are left out."""
    wanted: dict[str, set[int]] = {}
    for path, line in spots:
        if path is not None and path in texts and line is not None:
            wanted.setdefault(path, set()).add(line)
    found: dict[Spot, str] = {}
    for path, numbers in wanted.items():
        lines = texts[path].split(b"\n")
        for number in numbers:
            if 1 <= number <= len(lines):
                text = lines[number - 1].rstrip(b"\r").decode("utf-8", "surrogateescape")
                found[(path, number)] = text[:2000]
    return found


def touched(diff: Diff, locations: Iterable[Location]) -> frozenset[Spot]:
    """Which of these places the diff itself shows."""
    shown: set[Spot] = set()
    for location in locations:
        change = diff.file(location.path) if location.path else None
        if change is None or location.start_line is None:
            continue
        last = max(location.start_line, location.end_line or location.start_line)
        if change.status is FileStatus.DELETED or change.shows(location.start_line, last):
            shown.add((location.path, location.start_line))
    return frozenset(shown)


async def changed_since(
    repository: Repository, findings: Iterable[Finding], head: str
) -> dict[str, frozenset[str]]:
    """Per short id: the files that changed between when the finding was last seen and `head`.

    A commit that was rebased away and is no longer to be had is no evidence of any change.
    """
    by_sha: dict[str, frozenset[str]] = {}
    result: dict[str, frozenset[str]] = {}
    for finding in findings:
        seen = finding.last_seen_sha
        if seen not in by_sha:
            by_sha[seen] = await paths_between(repository, seen, head) or frozenset()
        result[finding.short_id] = by_sha[seen]
    return result


async def paths_between(repository: Repository, seen: str, head: str) -> frozenset[str] | None:
    """The paths that differ between two commits; None if the first is no longer to be had."""
    try:
        return await repository.changed_paths(seen, head)
    except GitError:
        if await repository.has(seen):
            raise
        return None
