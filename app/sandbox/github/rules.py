"""GitHub's own rules about reviews, bodies, checks and permissions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.sandbox.github.diffs import Diff, FileDiff
from app.sandbox.github.state import Anchor, ReviewState, Side

MAX_BODY = 65_536
MAX_CHECK_TEXT = 65_535
MAX_ANNOTATIONS = 50
MAX_ACTIONS = 3
MAX_TITLE = 255
LEVELS = ("none", "read", "write", "admin")
REACTIONS = frozenset({"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"})
EVENT_STATES: Mapping[str, ReviewState] = {
    "APPROVE": ReviewState.APPROVED,
    "REQUEST_CHANGES": ReviewState.CHANGES_REQUESTED,
    "COMMENT": ReviewState.COMMENTED,
}

_PREFIX = "Pull request review thread"
_BLANK_HUNK = f"{_PREFIX} diff hunk can't be blank"
BAD_LINE = f"{_PREFIX} line must be part of the diff"
BAD_PATH = f"{_PREFIX} path is invalid"
BAD_START_HUNK = f"{_PREFIX} start line must be part of the same hunk as the line."
BAD_START_ORDER = f"{_PREFIX} start line must precede the end line."
PENDING_EXISTS = "User can only have one pending review per pull request"


def allows(granted: str, needed: str) -> bool:
    """Whether a permission or collaborator level includes another."""
    return LEVELS.index(granted) >= LEVELS.index(needed)


def granted(permissions: Mapping[str, str], alternatives: Iterable[Mapping[str, str]]) -> bool:
    """Whether a token's permissions satisfy one of the alternatives."""
    return any(
        all(allows(permissions.get(name, "none"), level) for name, level in wanted.items())
        for wanted in alternatives
    )


def parse_needs(text: str) -> tuple[dict[str, str], ...]:
    """`pull_requests=write,contents=read;issues=write` as a tuple of alternatives."""
    return tuple(
        dict(pair.strip().split("=", 1) for pair in part.split(",")) for part in text.split(";")
    )


def anchor_errors(diff: Diff, anchor: Anchor) -> list[str]:
    """What is wrong with an anchor in GitHub's words; empty when it holds."""
    file = diff.file(anchor.path)
    if file is None:
        return [BAD_PATH, _BLANK_HUNK]
    if anchor.line is None:
        return []
    errors = [] if file.locate(anchor.side, anchor.line) else [BAD_LINE, _BLANK_HUNK]
    return errors + _start_errors(file, anchor, anchor.line)


def _start_errors(file: FileDiff, anchor: Anchor, line: int) -> list[str]:
    if anchor.start_line is None:
        return []
    side = anchor.start_side or anchor.side
    if side is anchor.side and anchor.start_line >= line:
        return [BAD_START_ORDER]
    last = file.locate(anchor.side, line)
    first = file.locate(side, anchor.start_line)
    if last is None or first is None or first[0] is not last[0]:
        return [BAD_START_HUNK]
    return [] if first[1].position < last[1].position else [BAD_START_ORDER]


def joined(errors: Iterable[str]) -> str:
    """GitHub joins the messages of a refused review to one string, each once."""
    return " and ".join(dict.fromkeys(errors))


def own_pull_error(event: str) -> str | None:
    """Why an author may not give this verdict on their own pull request."""
    if event == "APPROVE":
        return "Can not approve your own pull request"
    if event == "REQUEST_CHANGES":
        return "Can not request changes on your own pull request"
    return None


def body_required(event: str) -> bool:
    return event in {"COMMENT", "REQUEST_CHANGES"}


def dismissal_error(state: ReviewState) -> str | None:
    """Why a review in this state can't be dismissed."""
    match state:
        case ReviewState.APPROVED | ReviewState.CHANGES_REQUESTED:
            return None
        case ReviewState.COMMENTED | ReviewState.DISMISSED:
            return f"Can not dismiss a {state.lower()} pull request review"
        case ReviewState.PENDING:
            return "Can not dismiss a pending pull request review"


def side_of(text: object) -> Side | None:
    """The side a request names; None for anything but LEFT and RIGHT."""
    return Side(text) if isinstance(text, str) and text in {"LEFT", "RIGHT"} else None


def too_long(body: str) -> bool:
    return len(body) > MAX_BODY


def narrowed(have: Mapping[str, str], asked: Mapping[str, object] | None) -> dict[str, str] | None:
    """The permissions of a token: all, or those asked for; None when more than granted.

    `metadata: read` is part of every token.
    """
    if asked is None:
        return dict(have)
    wanted = {name: level for name, level in asked.items() if isinstance(level, str)}
    if len(wanted) < len(asked) or not set(wanted.values()) <= set(LEVELS[1:]):
        return None
    if not granted(have, [wanted]):
        return None
    return {"metadata": "read", **wanted}
