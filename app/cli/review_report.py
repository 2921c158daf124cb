"""What `mergeward review` came to: exit code, the text for a person, the document for machines.

Everything that strangers or models wrote is cleaned here, on its way out and nowhere else.
"""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from app.cli.output import Exit, one_line, path_name, plain, shown
from app.cli.review_source import Change
from app.domain.coverage import MISSING, CoverageEntry, CoverageState
from app.domain.findings import DroppedFinding, Finding, Location
from app.domain.runs import Usage
from app.review.conduct import Conducted
from app.review.plan import ReviewPlan
from app.review.render import counts
from loop_guards import Severity, VerdictDecision

SCHEMA = 1
"""Version of the JSON document; it changes when a field changes its meaning or goes."""

_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.SUGGESTION: "bold cyan",
}
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class Round:
    """What the agents came to, judged. `full`: every file and every reviewer's part is in it."""

    findings: tuple[Finding, ...]
    dropped: tuple[DroppedFinding, ...]
    conducted: Conducted
    verdict: VerdictDecision
    full: bool


@dataclass(frozen=True, slots=True)
class Report:
    """The whole result. `round` is None when there was nothing to read; `fail_on` None is never."""

    change: Change
    plan: ReviewPlan
    fail_on: Severity | None
    round: Round | None = None

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings for which the command does not end well."""
        if self.round is None or self.fail_on is None:
            return ()
        return tuple(f for f in self.round.findings if f.severity.at_least(self.fail_on))

    @property
    def exit_code(self) -> Exit:
        """What was found counts even if the rest could not be read."""
        if self.failing:
            return Exit.FINDINGS
        covered = self.plan.coverage.is_full if self.round is None else self.round.full
        return Exit.CLEAN if covered else Exit.FAILED

    @property
    def result(self) -> str:
        """`passed`, `findings`, `incomplete` or `nothing_to_review`."""
        if self.exit_code is Exit.FAILED:
            return "incomplete"
        if self.round is None:
            return "nothing_to_review"
        return "findings" if self.failing else "passed"

    def to_json(self) -> dict[str, Any]:
        """The document of `--format json`; docs/cli.md describes every field."""
        change = self.change
        return {
            "schema": SCHEMA,
            "result": self.result,
            "exit_code": int(self.exit_code),
            "fail_on": self.fail_on.value if self.fail_on else "never",
            "error": None,
            "repository": one_line(change.name),
            "base": {"name": one_line(change.base_name), "sha": change.base},
            "merge_base": change.source.merge_base,
            "head": {"name": one_line(change.head_name), "sha": change.source.head},
            "policy": {
                "source": change.policy.source.value,
                "problem": plain(change.policy.problem) if change.policy.problem else None,
            },
            "remarks": [plain(remark) for remark in change.remarks],
            "tier": self.plan.tier.value if self.plan.files else None,
            "coverage": {
                "full": self.plan.coverage.is_full,
                "files": [_entry_json(entry) for entry in self.plan.coverage.entries],
            },
            **_round_json(self.round),
        }


def unable(error: str, fail_on: str) -> dict[str, Any]:
    """The document of a review that could not be carried out."""
    return {
        "schema": SCHEMA,
        "result": "failed",
        "exit_code": int(Exit.FAILED),
        "fail_on": fail_on,
        "error": plain(error),
    }


def print_json(document: dict[str, Any], out: TextIO) -> None:
    """One document and a new line, in ASCII."""
    out.write(json.dumps(document, indent=2) + "\n")
    out.flush()


def print_text(report: Report, console: Console) -> None:
    """Findings by severity, then the verdict, what was read, and what it cost."""
    if report.round is None:
        _say(console, _nothing(report))
        _coverage(report, console)
        return
    for finding in report.round.findings:
        _finding(finding, report.change.top, console)
    _say(console, _verdict(report.round), style="bold")
    if summary := plain(report.round.conducted.review.summary).strip():
        _block(console, summary, indent=0)
    _coverage(report, console)
    _say(console, _figures(report.round.conducted))
    for line in _by_agent(report.round.conducted):
        _say(console, line)


def _nothing(report: Report) -> str:
    change = report.change
    if not change.source.diff.files:
        head, base = one_line(change.head_name), one_line(change.base_name)
        return f"Nothing to review: {head} changes nothing that is not in {base}."
    if not report.plan.coverage.is_full:
        return "Nothing was reviewed: no file of this change can be read by a reviewer."
    return "Nothing to review: nothing in this change is for a reviewer to read."


def _finding(finding: Finding, top: Path | None, console: Console) -> None:
    head = Text()
    head.append(finding.severity.value, style=_STYLES[finding.severity])
    head.append(f"  {_place(finding.location, top)}", style="bold")
    head.append(f"  {one_line(finding.title)}")
    head.append(f"  [{one_line(finding.category)}]", style="dim")
    console.print(head, soft_wrap=True)
    _block(console, plain(finding.body))
    if finding.production_risk:
        _block(console, f"In production: {plain(finding.production_risk)}")
    if finding.suggestion is not None:
        _block(console, "Suggested instead:" if finding.suggestion.strip() else "Suggested: remove")
        code = shown(finding.suggestion).rstrip("\n").split("\n")
        console.print(
            Text("\n".join(f"    | {line}" for line in code), style="green"), soft_wrap=True
        )
    console.print()


def _place(location: Location, top: Path | None) -> str:
    """`path:line`, from where the person stands, so that terminals and editors can open it."""
    if location.path is None:
        return "(whole change)"
    path = location.path
    if top is not None:
        path = os.path.join(os.path.relpath(top), path)  # noqa: PTH118 - relpath has no Path form
        path = os.path.normpath(path)
    line = f":{location.start_line}" if location.start_line else ""
    return f"{path_name(path)}{line}"


def _block(console: Console, text: str, *, indent: int = 2) -> None:
    """Prose, wrapped on a terminal and left alone elsewhere."""
    pad = " " * indent
    for line in text.strip("\n").split("\n"):
        if console.is_terminal and line.strip():
            width = max(20, min(console.width, _WIDEST))
            wrapped = textwrap.wrap(line, width, initial_indent=pad, subsequent_indent=pad)
            _say(console, "\n".join(wrapped))
        else:
            _say(console, f"{pad}{line}".rstrip())


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _verdict(done: Round) -> str:
    counted = counts(done.findings, 0)
    if not done.full:
        return f"Not completely reviewed: {counted} so far."
    words = done.verdict.verdict.value.replace("_", " ").capitalize()
    return f"{words}: {counted}."


def _coverage(report: Report, console: Console) -> None:
    coverage = report.plan.coverage
    read = len(coverage.of(CoverageState.REVIEWED))
    if report.round is not None:
        _say(console, f"{read} of {len(coverage.entries)} files read ({report.plan.tier} tier).")
        for outcome in report.round.conducted.outcomes:
            if outcome.reason:
                _say(console, f"The {outcome.reviewer} reviewer: {one_line(outcome.reason)}.")
    for entry in coverage.of(CoverageState.SKIPPED):
        _say(console, f"Left out: {_entry(entry)}")
    for state in MISSING:
        for entry in coverage.of(state):
            _say(console, f"Not reviewed: {_entry(entry)}")


def _entry(entry: CoverageEntry) -> str:
    return f"{path_name(entry.path)} ({one_line(entry.reason) or entry.state.value})"


def _figures(conducted: Conducted) -> str:
    usage = conducted.usage
    tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    models = ", ".join(one_line(model) for model in conducted.models) or "no model"
    return (
        f"{models}: {usage.model_calls} model calls, {tokens:,} tokens in, "
        f"{usage.output_tokens:,} out, {cost}."
    )


def _by_agent(conducted: Conducted) -> list[str]:
    """What each agent used: tokens in (of them from the cache), out, and dollars."""
    used = [("coordinator", conducted.coordinator_usage)]
    used += [(outcome.reviewer.value, outcome.usage) for outcome in conducted.outcomes]
    return [_used(one_line(name), usage) for name, usage in used]


def _used(name: str, usage: Usage) -> str:
    tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return (
        f"  {name}: {usage.model_calls} calls, {tokens:,} in ({usage.cache_read_tokens:,} cached), "
        f"{usage.output_tokens:,} out, {cost}"
    )


def _round_json(done: Round | None) -> dict[str, Any]:
    if done is None:
        return {
            "verdict": None, "summary": "", "findings": [], "dropped": [], "reviewers": [],
            "incomplete": [], "models": [], "usage": _usage_json(Usage()),
        }  # fmt: skip
    conducted = done.conducted
    return {
        "verdict": done.verdict.verdict.value,
        "summary": plain(conducted.review.summary),
        "findings": [_finding_json(finding) for finding in done.findings],
        "dropped": [
            {
                "refs": [one_line(ref) for ref in item.refs],
                "reason": item.reason.value,
                "why": plain(item.why),
            }
            for item in done.dropped
        ],
        "reviewers": [
            {"name": o.reviewer.value, "status": o.status.value, "reason": one_line(o.reason)}
            for o in conducted.outcomes
        ],
        "incomplete": list(conducted.incomplete),
        "models": [one_line(model) for model in conducted.models],
        "usage": _usage_json(conducted.usage),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    at = finding.location
    return {
        "id": finding.short_id,
        "severity": finding.severity.value,
        "category": one_line(finding.category),
        "path": None if at.path is None else path_name(at.path),
        "start_line": at.start_line,
        "end_line": at.end_line or at.start_line,
        "title": one_line(finding.title),
        "body": plain(finding.body),
        "evidence": plain(finding.evidence),
        "suggestion": None if finding.suggestion is None else shown(finding.suggestion),
        "production_risk": plain(finding.production_risk) if finding.production_risk else None,
        "trivial": finding.trivial,
        "origin": finding.origin.value,
        "also": [path_name(path) for path in finding.also],
    }


def _entry_json(entry: CoverageEntry) -> dict[str, str]:
    return {
        "path": path_name(entry.path),
        "state": entry.state.value,
        "reason": one_line(entry.reason),
    }


def _usage_json(usage: Usage) -> dict[str, Any]:
    """Dollars as a decimal string, so that no reader rounds them; null is an unknown price."""
    cost: Decimal | None = usage.cost_usd
    return {
        "model_calls": usage.model_calls,
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": None if cost is None else str(cost),
        "model_seconds": round(usage.model_seconds, 3),
    }
