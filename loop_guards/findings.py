"""What the guards know of a finding: severities, origins, states, verdicts."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is. `critical`: outage or exploitable. `warning`: measurable regression or
    concrete risk. `suggestion`: everything else worth saying."""

    CRITICAL = "critical"
    WARNING = "warning"
    SUGGESTION = "suggestion"

    @property
    def rank(self) -> int:
        """0 for the worst. Compare by this, never by the words."""
        return _RANKS[self]

    def at_least(self, other: Severity) -> bool:
        """Whether this is as bad as `other`, or worse."""
        return self.rank <= other.rank


_RANKS = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.SUGGESTION: 2}


class Origin(StrEnum):
    """Where a finding was first seen; written once."""

    ORIGINAL = "original"
    INTRODUCED = "introduced"
    VERIFY = "verify"
    PRE_EXISTING = "pre_existing"
    POST_MERGE = "post_merge"


class FindingStatus(StrEnum):
    """Where a finding stands."""

    OPEN = "open"
    FIXED = "fixed"
    DISMISSED = "dismissed"
    ACKNOWLEDGED = "acknowledged"
    GONE = "gone"


class Verdict(StrEnum):
    """What a round ends with."""

    APPROVED = "approved"
    APPROVED_WITH_COMMENTS = "approved_with_comments"
    MINOR_ISSUES = "minor_issues"
    SIGNIFICANT_CONCERNS = "significant_concerns"
    CHANGES_REQUESTED = "changes_requested"
    ESCALATED = "escalated"
