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
from app.review.account import Accounted, Answered, account, worst_of
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
    """A finding that enters the ledger in this round; `refs` are all reports that are in it."""

    reported: ReportedFinding
    origin: Origin
    fingerprint: str
    code: str
    refs: tuple[str, ...] = ()


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
    before to their names. `read` are the files that the coordinator itself looked at; `by_code` is
    what was found without a model, which needs nobody's word.
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
    read: frozenset[str] = frozenset()
    by_code: tuple[JudgedFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of the judge pass. `problems` are protocol errors, one sentence each; `unread`
    are the references of doubtful findings that were kept and that the coordinator did not check:
    they stay as their reviewers rated them, for a doubt that nobody settled is no clearance."""

    new: tuple[NewFinding, ...]
    carried: tuple[CarriedResult, ...]
    dropped: tuple[DroppedFinding, ...]
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()


def judge(facts: JudgeInput) -> Judgement:
    """Hold the coordinator's answer against reviewers, ledger and diff.

    Every earlier finding gets exactly one outcome; every reviewer's finding is kept, folded into
    an earlier one, or dropped for a named reason.
    """
    said = _accounted(facts)
    fresh, reraised = _fold((*said.judged, *facts.by_code), facts)
    carried, carried_problems = _carried(facts, reraised)
    new, known = _unsettled(fresh, facts)
    return Judgement(
        new=tuple(_enter(item, facts) for item in new),
        carried=carried,
        dropped=said.dropped,
        problems=(*said.problems, *carried_problems, *known),
        unread=said.unread,
    )


def fingerprint(path: str | None, title: str, code: str) -> str:
    """Identity of a finding within one pull request: file, claim and the line it points at.

    Line numbers are left out, since every push above the line moves them.
    """
    text = "\0".join((path or "", _normal(title), code.strip()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _normal(text: str) -> str:
    return re.sub(r"\W+", " ", text.casefold()).strip()


def _accounted(facts: JudgeInput) -> Accounted:
    return account(
        Answered(
            judged=facts.judged,
            dropped=facts.dropped,
            reported=facts.reported,
            rated={finding.short_id: finding.severity for finding in facts.existing},
            known_paths=facts.known_paths,
            read=facts.read,
        )
    )


def _unsettled(
    fresh: tuple[JudgedFinding, ...], facts: JudgeInput
) -> tuple[tuple[JudgedFinding, ...], tuple[str, ...]]:
    """The new findings without those that people decided to live with: the same claim about the
    same code is not raised again."""
    new: list[JudgedFinding] = []
    said: list[str] = []
    for item in fresh:
        name = facts.settled.get(_fingerprint_of(item.finding, facts))
        if name is None:
            new.append(item)
        else:
            said.append(f"{item.finding.ref} is {name}, which a person decided to live with.")
    return tuple(new), tuple(said)


def _fold(
    candidates: tuple[JudgedFinding, ...], facts: JudgeInput
) -> tuple[tuple[JudgedFinding, ...], Mapping[str, Severity]]:
    """Split candidates into new findings and earlier ones that were raised again, by id with the
    severity they now have."""
    by_print = {fingerprint(f.location.path, f.title, f.code): f.short_id for f in facts.existing}
    fresh: dict[str, JudgedFinding] = {}
    reraised: dict[str, Severity] = {}
    for item in candidates:
        key = _fingerprint_of(item.finding, facts)
        short_id = item.short_id or by_print.get(key)
        if short_id is not None:
            known = reraised.get(short_id, item.finding.severity)
            reraised[short_id] = worst_of((item.finding.severity, known))
        else:
            fresh[key] = _merged(fresh[key], item) if key in fresh else item
    return tuple(fresh.values()), reraised


def _merged(first: JudgedFinding, again: JudgedFinding) -> JudgedFinding:
    """The same claim about the same code, said twice: one finding, at its worst, with all of its
    sources and places."""
    one, other = first.finding, again.finding
    finding = replace(
        one,
        severity=worst_of((one.severity, other.severity)),
        also=tuple(dict.fromkeys((*one.also, *other.also))),
        suggestion=one.suggestion or other.suggestion,
        trivial=one.trivial and other.trivial,
        production_risk=one.production_risk or other.production_risk,
    )
    return replace(first, finding=finding, refs=tuple(dict.fromkeys((*first.refs, *again.refs))))


def _carried(
    facts: JudgeInput, reraised: Mapping[str, Severity]
) -> tuple[tuple[CarriedResult, ...], tuple[str, ...]]:
    claims = {claim.short_id: claim for claim in facts.carried}
    results: list[CarriedResult] = []
    known = {finding.short_id for finding in facts.existing}
    problems = [
        f"The judge accounted for {name}, which is unknown." for name in claims.keys() - known
    ]
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


def _enter(item: JudgedFinding, facts: JudgeInput) -> NewFinding:
    return NewFinding(
        reported=item.finding,
        origin=_origin(item.finding, facts),
        fingerprint=_fingerprint_of(item.finding, facts),
        code=_code_of(item.finding, facts),
        refs=item.refs,
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
