"""A change of the policy file that would not hold once it is merged. Pure.

The policy is read from the default branch alone, so a broken file is only noticed after the merge,
and what it wanted to say is ignored then: whoever reviews the change should know before.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from app.domain.findings import JudgedFinding, Location, ReportedFinding
from app.domain.policy import POLICY_PATH
from app.errors import PolicyError
from app.policy.load import parse_policy
from loop_guards import Severity

REVIEWER = "policy_file"
_LINE = re.compile(r" line (\d{1,6}):")


def unusable_policy(changed: Collection[str], text: bytes | None) -> tuple[JudgedFinding, ...]:
    """One finding if the change touches the policy and leaves it unusable. `text` is the file's on
    the head, None when it is not there."""
    if POLICY_PATH not in changed or text is None:
        return ()
    try:
        parse_policy(text)
    except PolicyError as error:
        return (JudgedFinding(_finding(str(error))),)
    return ()


def _finding(problem: str) -> ReportedFinding:
    match = _LINE.search(problem)
    line = int(match[1]) if match else None
    lines = "\n".join(f"- {part}" for part in problem.splitlines())
    return ReportedFinding(
        ref=f"{REVIEWER}:{POLICY_PATH}",
        reviewer=REVIEWER,
        location=Location(POLICY_PATH, line, line),
        severity=Severity.WARNING,
        category="policy",
        title="This policy file can't be used",
        body=f"After the merge the last valid policy would go on to hold.\n\n{lines}",
        evidence=problem,
    )
