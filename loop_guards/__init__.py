"""Pure rules that make the fix loop halt. Facts in, decisions out; nothing else."""

from __future__ import annotations

from loop_guards.findings import FindingStatus, Origin, Severity, Verdict

__all__ = ["FindingStatus", "Origin", "Severity", "Verdict"]
