"""The code's half of the judge pass: what the coordinator said, held against what is known.

Pure. The coordinator proposes; nothing here trusts it. A finding it forgot is kept, a file it made
up is refused, and "fixed" counts only together with a change that could have fixed it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.domain.diff import Diff
from app.domain.findings import (
    CarriedClaim,
    CarriedState,
    DroppedFinding,
    Finding,
    JudgedFinding,
    ReportedFinding,
)
from app.review.heard import Heard
from app.review.traces import cites
from loop_guards import FixedDecision, FixedFacts, Origin, Severity, judge_fixed


@dataclass(frozen=True, slots=True)
class CarriedResult:
    """One earlier finding after this round, with the evidence that was given for it. `heard` is
    what a person did in its thread; `settled`: that decided to live with it."""

    finding: Finding
    decision: FixedDecision
    evidence: str
    heard: Heard | None = None
    settled: bool = False


@dataclass(frozen=True, slots=True)
class NewFinding:
    """A finding that enters the ledger in this round."""

    reported: ReportedFinding
    origin: Origin
    fingerprint: str
    code: str


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """Everything the judge pass is a function of.

    `reported` are all findings of all reviewers; `judged`, `carried` and `dropped` are the
    coordinator's words about them. `changed_since` holds per short id of an earlier finding the
    files that changed since it was last seen. `code_at` gives the source line a finding
    points at ("" when unknown); `touched` says whether the pull request's own diff shows that line.
    `since_handoff` is, on a fix pull request, per short id the change since the finding was handed
    off or raised: a hunk of it may be cited as evidence. `heard` is what people did in the threads
    of earlier findings, and `settled` maps fingerprints of those that people decided to live with
    before to their names.
    """

    existing: tuple[Finding, ...]
    reported: tuple[ReportedFinding, ...]
    judged: tuple[JudgedFinding, ...]
    carried: tuple[CarriedClaim, ...]
    dropped: tuple[DroppedFinding, ...]
    known_paths: frozenset[str]
    changed_since: Mapping[str, frozenset[str]]
    code_at: Mapping[tuple[str | None, int | None], str]
    touched: frozenset[tuple[str | None, int | None]]
    is_fix_pr: bool
    since_handoff: Mapping[str, Diff] = field(default_factory=dict)
    heard: Mapping[str, Heard] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of the judge pass. `problems` are protocol errors, one sentence each."""

    new: tuple[NewFinding, ...]
    carried: tuple[CarriedResult, ...]
    dropped: tuple[DroppedFinding, ...]
    problems: tuple[str, ...]


def judge(facts: JudgeInput) -> Judgement:
    """Hold the coordinator's answer against reviewers, ledger and diff.

    Every earlier finding gets exactly one outcome; every reviewer's finding is kept, folded into
    an earlier one, or dropped for a named reason.
    """
    candidates, problems = _candidates(facts)
    fresh, reraised = _fold(candidates, facts)
    carried, carried_problems = _carried(facts, reraised)
    new, known = _unsettled(fresh, facts)
    return Judgement(
        new=tuple(_enter(item, facts) for item in new),
        carried=carried,
        dropped=facts.dropped,
        problems=(*problems, *carried_problems, *known),
    )


def fingerprint(path: str | None, title: str, code: str) -> str:
    """Identity of a finding within one pull request: file, claim and the line it points at.

    Line numbers are left out, since every push above the line moves them.
    """
    text = "\0".join((path or "", _normal(title), code.strip()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _normal(text: str) -> str:
    return re.sub(r"\W+", " ", text.casefold()).strip()


def _candidates(facts: JudgeInput) -> tuple[tuple[JudgedFinding, ...], tuple[str, ...]]:
    """The coordinator's findings that hold, plus the reviewers' findings it left unmentioned."""
    problems: list[str] = []
    kept: list[JudgedFinding] = []
    known_ids = {finding.short_id for finding in facts.existing}
    for item in facts.judged:
        path = item.finding.location.path
        if item.short_id is not None and item.short_id not in known_ids:
            problems.append(f"The judge named the unknown finding {item.short_id}.")
            item = replace(item, short_id=None)  # noqa: PLW2901 - kept as a new finding
        if path is not None and path not in facts.known_paths and item.short_id is None:
            problems.append(f"The judge named {path!r}, which is not part of this change.")
            continue
        kept.append(item)
    mentioned = {ref for item in facts.judged for ref in item.refs}
    mentioned |= {ref for item in facts.dropped for ref in item.refs}
    for reported in facts.reported:
        if reported.ref not in mentioned:
            problems.append(f"The judge said nothing of {reported.ref}; it is kept as reported.")
            kept.append(JudgedFinding(finding=reported, refs=(reported.ref,)))
    return tuple(kept), tuple(problems)


def _unsettled(
    fresh: tuple[ReportedFinding, ...], facts: JudgeInput
) -> tuple[tuple[ReportedFinding, ...], tuple[str, ...]]:
    """The new findings without those that people decided to live with: the same claim about the
    same code is not raised again."""
    names = {item.ref: facts.settled.get(_fingerprint_of(item, facts)) for item in fresh}
    new = tuple(item for item in fresh if names[item.ref] is None)
    known = ((item.ref, names[item.ref]) for item in fresh if names[item.ref] is not None)
    said = tuple(f"{ref} is {name}, which a person decided to live with." for ref, name in known)
    return new, said


def _fold(
    candidates: tuple[JudgedFinding, ...], facts: JudgeInput
) -> tuple[tuple[ReportedFinding, ...], Mapping[str, Severity]]:
    """Split candidates into new findings and earlier ones that were raised again, by id with the
    severity they now have."""
    by_print = {fingerprint(f.location.path, f.title, f.code): f.short_id for f in facts.existing}
    fresh: dict[str, ReportedFinding] = {}
    reraised: dict[str, Severity] = {}
    for item in candidates:
        key = _fingerprint_of(item.finding, facts)
        short_id = item.short_id or by_print.get(key)
        if short_id is not None:
            now, known = item.finding.severity, reraised.get(short_id)
            reraised[short_id] = now if known is None or now.at_least(known) else known
        else:
            fresh.setdefault(key, item.finding)
    return tuple(fresh.values()), reraised


def _carried(
    facts: JudgeInput, reraised: Mapping[str, Severity]
) -> tuple[tuple[CarriedResult, ...], tuple[str, ...]]:
    claims = {claim.short_id: claim for claim in facts.carried}
    results: list[CarriedResult] = []
    problems: list[str] = []
    for finding in facts.existing:
        claim = claims.get(finding.short_id)
        if claim is None and finding.short_id not in reraised:
            problems.append(f"The judge did not account for {finding.short_id}; it stays open.")
        says_fixed = claim is not None and claim.state is CarriedState.FIXED
        if says_fixed and finding.short_id in reraised:
            problems.append(f"{finding.short_id} was called fixed and raised again; it stays open.")
            says_fixed = False
        evidence = claim.evidence if claim else ""
        decision = judge_fixed(_fixed_facts(finding, evidence, facts, claimed=says_fixed))
        said = facts.heard.get(finding.short_id)
        settled = not decision.fixed and _settles(
            said, finding, claim, reraised.get(finding.short_id)
        )
        results.append(CarriedResult(finding, decision, evidence, said, settled))
    return tuple(results), tuple(problems)


def _settles(
    said: Heard | None, finding: Finding, claim: CarriedClaim | None, now: Severity | None
) -> bool:
    """Whether a person decided to live with it, and it has become no worse than that decision."""
    worse = now is not None and not finding.severity.at_least(now)
    conceded = claim is not None and claim.state is CarriedState.ACKNOWLEDGED
    return said is not None and not worse and said.settles(conceded=conceded)


def _fixed_facts(
    finding: Finding, evidence: str, facts: JudgeInput, *, claimed: bool
) -> FixedFacts:
    files = frozenset(name for name in (finding.location.path, *finding.also) if name is not None)
    shown = facts.since_handoff.get(finding.short_id)
    return FixedFacts(
        claimed_fixed=claimed,
        files=files,
        changed_files=facts.changed_since.get(finding.short_id, frozenset()),
        cited_hunk_changed=shown is not None and cites(evidence, files, shown),
    )


def _enter(reported: ReportedFinding, facts: JudgeInput) -> NewFinding:
    return NewFinding(
        reported=reported,
        origin=_origin(reported, facts),
        fingerprint=_fingerprint_of(reported, facts),
        code=_code_of(reported, facts),
    )


def _origin(reported: ReportedFinding, facts: JudgeInput) -> Origin:
    """First sight decides, once: outside the change's own diff is `pre_existing`."""
    spot = (reported.location.path, reported.location.start_line)
    located = spot[0] is not None and spot[1] is not None
    if located and spot not in facts.touched:
        return Origin.PRE_EXISTING
    return Origin.INTRODUCED if facts.is_fix_pr else Origin.ORIGINAL


def _code_of(reported: ReportedFinding, facts: JudgeInput) -> str:
    return facts.code_at.get((reported.location.path, reported.location.start_line), "")


def _fingerprint_of(reported: ReportedFinding, facts: JudgeInput) -> str:
    return fingerprint(reported.location.path, reported.title, _code_of(reported, facts))
