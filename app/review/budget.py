"""How much of a change its reviewers can read, and what is left out when that is not all. Pure.

Sizes are tokens, estimated from bytes without asking a model: a tokenizer of one provider says
little about another's, and the estimate need only err on the one side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.agents.numbered import LINE_CHARS, is_shown_whole
from app.domain.diff import FileChange
from app.review.plan import ReviewPlan
from app.review.risk import risk_order

BYTES_PER_TOKEN = 2
"""The providers' rule of thumb is 4 characters a token for English; code comes to about 3, and the
tokenizers of the newest models make up to 1.35 tokens of what was one: 3 / 1.35 = 2.2."""

NUMBERING_BYTES = 15
"""What each line of a patch gets in front of it when a model reads it (`app.agents.numbered`)."""

FILE_TOKENS = 100
"""A file's entry in the prompt and the call that reads its patch, besides its name (twice)."""

FIXED_TOKENS = 26_000
"""System prompt and tools (up to 10,000, see `tests/prompts/golden/tokens.md`), the list's frame,
and an answer of 16,000."""

PATCH_SHARE = 2
"""One part in two of what is left is for patches; the other is for the source that a reviewer
reads around them."""

LIST_SHARE = 4
"""One part in four of the coordinator's window may list the files: it reads results, not patches.
Its prompt thus stays below half of its window."""

MOST_PARTS = 3
"""Parts of a change, each read in a session of its own by each reviewer: the sessions that one
agent has in a round (DESIGN §3.8, A)."""


class NoRoom(StrEnum):
    """Why a file is left out."""

    LARGER_THAN_WINDOW = "larger_than_window"
    NO_ROOM_LEFT = "no_room_left"
    ENDLESS_LINE = "endless_line"


@dataclass(frozen=True, slots=True)
class Room:
    """What is to be had: tokens of patches in one session of a reviewer, parts, and tokens of the
    coordinator's list of files."""

    patches: int
    listing: int
    parts: int = MOST_PARTS


def room_in(reviewer_window: int, coordinator_window: int) -> Room:
    """What windows of so many tokens have room for; the smallest one that may be used counts."""
    return Room(
        patches=max(0, reviewer_window - FIXED_TOKENS) // PATCH_SHARE,
        listing=max(0, coordinator_window - FIXED_TOKENS) // LIST_SHARE,
    )


def text_tokens(text: str) -> int:
    """What a text costs at most in a prompt."""
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN


def tokens_of(file: FileChange) -> int:
    """What reading a file's patch costs at most."""
    lines = file.raw.count(b"\n", file.begins, file.ends)
    size = file.ends - file.begins + NUMBERING_BYTES * lines
    return size // BYTES_PER_TOKEN + list_tokens(file)


def list_tokens(file: FileChange) -> int:
    """What a file's entry in a prompt costs at most."""
    return FILE_TOKENS + text_tokens(file.path * 2)


def within(plan: ReviewPlan, room: Room) -> ReviewPlan:
    """The plan cut to what there is room for.

    What fits is one part, in the order it had. Else files go by risk into parts, what only says
    that it is generated last; those without a place are named in the coverage, so that nothing
    below full coverage is approved. A file with an added line that is cut for every reader counts
    as too large, whatever room there is.
    """
    endless = [file for file in plan.files if _has_endless_line(file)]
    files = [file for file in plan.files if file not in endless] if endless else plan.files
    if not endless and _fits(files, room):
        return plan
    parts, without = _parts(files, room, plan.doubtful)
    without = [*without, *((file, NoRoom.ENDLESS_LINE) for file in endless)]
    return replace(
        plan,
        files=tuple(file for part in parts for file in part),
        parts=parts,
        left_out=tuple(file for file, _ in without),
        coverage=plan.coverage.too_large({file.path: why.value for file, why in without}),
    )


_LONG_ADDED_LINE = re.compile(rb"^\+([^\n]{%d,})" % (LINE_CHARS // 10), re.MULTILINE)


def _has_endless_line(file: FileChange) -> bool:
    found = _LONG_ADDED_LINE.finditer(file.raw, file.begins, file.ends)
    return any(not is_shown_whole(match.group(1)) for match in found)


def _fits(files: Sequence[FileChange], room: Room) -> bool:
    return (
        sum(map(tokens_of, files)) <= room.patches and sum(map(list_tokens, files)) <= room.listing
    )


def _parts(
    files: Sequence[FileChange], room: Room, doubtful: frozenset[str]
) -> tuple[tuple[tuple[FileChange, ...], ...], list[tuple[FileChange, NoRoom]]]:
    """All files as one part in the order they had, or by risk in as many parts as there may be."""
    if _fits(files, room):
        return ((tuple(files),) if files else ()), []
    sure = [file for file in files if file.path not in doubtful]
    unsure = [file for file in files if file.path in doubtful]
    return _placed((*risk_order(sure), *risk_order(unsure)), room)


def _placed(
    files: Sequence[FileChange], room: Room
) -> tuple[tuple[tuple[FileChange, ...], ...], list[tuple[FileChange, NoRoom]]]:
    """Each file in the first part that has room for it; a new part is begun while there may be."""
    parts: list[list[FileChange]] = []
    left: list[int] = []
    listing = room.listing
    without: list[tuple[FileChange, NoRoom]] = []
    for file in files:
        size, entry = tokens_of(file), list_tokens(file)
        if size > room.patches:
            without.append((file, NoRoom.LARGER_THAN_WINDOW))
            continue
        at = next((n for n, free in enumerate(left) if free >= size), len(parts))
        if at == room.parts or entry > listing:
            without.append((file, NoRoom.NO_ROOM_LEFT))
            continue
        if at == len(parts):
            parts.append([])
            left.append(room.patches)
        parts[at].append(file)
        left[at] -= size
        listing -= entry
    return tuple(map(tuple, parts)), without
