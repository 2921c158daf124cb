"""Findings as the app passes them around; the guards' smaller view is `loop_guards.findings`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards import FindingStatus, Origin, Severity


@dataclass(frozen=True, slots=True)
class Location:
    """Where a finding is: a path of the head's tree and 1-based inclusive lines of that file.

    `path` is None for a remark on the whole change; lines are None for a remark on a whole file.
    """

    path: str | None
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """One finding as an agent reported it, after tolerant parsing. Untrusted text throughout.

    `ref` names it within one run (`security-1`); the coordinator refers to it by that.
    """

    ref: str
    reviewer: str
    location: Location
    severity: Severity
    category: str
    title: str
    body: str
    evidence: str = ""
    suggestion: str | None = None
    also: tuple[str, ...] = ()
    trivial: bool = False
    production_risk: str | None = None
    prompt_version: str = ""


class CarriedState(StrEnum):
    """What the coordinator says of an earlier finding. Its word alone never closes anything."""

    OPEN = "open"
    FIXED = "fixed"
    ACKNOWLEDGED = "acknowledged"


@dataclass(frozen=True, slots=True)
class CarriedClaim:
    """The coordinator's claim about one earlier finding, by its short id."""

    short_id: str
    state: CarriedState
    evidence: str


class DropReason(StrEnum):
    """Why the coordinator left a reviewer's finding out. There is no other reason: what is the same
    as another finding is merged into it, and what it gives no reason for stays."""

    SPECULATIVE = "speculative"
    NITPICK = "nitpick"
    FALSE_POSITIVE = "false_positive"
    CONTRADICTS_CONVENTION = "contradicts_convention"
    HEDGED = "hedged"


@dataclass(frozen=True, slots=True)
class DroppedFinding:
    """A reviewer's finding that the coordinator left out, with its reason."""

    refs: tuple[str, ...]
    reason: DropReason
    why: str


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """One finding of the coordinator: new (`refs` name its sources) or carried (`short_id`)."""

    finding: ReportedFinding
    refs: tuple[str, ...] = ()
    short_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding in the ledger of a pull request.

    `id` is the row's id; `short_id` (`F1`, `F2`, …) is stable for the life of the pull request.
    `code` is the source line it points at, as last seen ("" when it names no line).
    """

    id: int
    short_id: str
    location: Location
    severity: Severity
    category: str
    title: str
    body: str
    suggestion: str | None
    also: tuple[str, ...]
    origin: Origin
    status: FindingStatus
    first_seen_sha: str
    last_seen_sha: str
    trivial: bool = False
    production_risk: str | None = None
    severity_at_handoff: Severity | None = None
    code: str = ""
    evidence: str = ""
