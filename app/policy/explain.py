"""What a policy means, in sentences for the person who wrote it."""

from __future__ import annotations

from typing import assert_never

from app.domain.policy import HumanPrs, Mode, Policy
from app.policy.load import EffectivePolicy, PolicySource
from loop_guards import ONE_MERGE, Acts, Bound, HandoffMode, bound


def explain(effective: EffectivePolicy) -> tuple[str, ...]:
    """Plain sentences, most important first: where the policy comes from, then what it does.

    They quote the policy's own words (logins, branches, paths); whoever publishes them neutralises
    them like any untrusted text.
    """
    policy = effective.policy
    return (
        _source(effective),
        *_mode(policy),
        _human_prs(policy),
        _handoff(policy),
        _limits(policy),
        *_most(policy),
        _escalation(policy),
        *_reviewers(policy),
        *_paths(policy),
        _fixer(policy),
    )


def _source(effective: EffectivePolicy) -> str:
    match effective.source:
        case PolicySource.FILE:
            return "The policy file on the default branch holds."
        case PolicySource.LAST_VALID:
            return (
                f"The last valid policy holds, because the file can't be used: {effective.problem}"
            )
        case PolicySource.DEFAULT if effective.problem is not None:
            return f"The defaults hold, because the file can't be used: {effective.problem}"
        case PolicySource.DEFAULT:
            return "There is no policy file; the defaults hold."
        case _:
            assert_never(effective.source)


def _mode(policy: Policy) -> tuple[str, ...]:
    if policy.mode is Mode.LIVE:
        return ()
    return ("Shadow mode: reviews run and are stored, and nothing is written to GitHub.",)


def _human_prs(policy: Policy) -> str:
    match policy.human_prs:
        case HumanPrs.ADVISE:
            return "Reviews of people's pull requests are advice: the check blocks nothing."
        case HumanPrs.GATE:
            return (
                "Reviews of people's pull requests gate: the check passes only when the whole head "
                "was reviewed and nothing serious was found, or a maintainer breaks the glass."
            )
        case _:
            assert_never(policy.human_prs)


def _handoff(policy: Policy) -> str:
    handoff = policy.handoff
    match handoff.mode:
        case HandoffMode.AUTO:
            bases = ", ".join(["the default branch", *handoff.bases])
            return (
                f"A merge into {bases} hands off open findings of severity "
                f"{handoff.minimum_severity} or above: one fix task a file, at most "
                f"{policy.limits.max_fix_tasks} a merge, to the target {handoff.default_target}."
            )
        case HandoffMode.MANUAL | HandoffMode.OFF:
            return (
                "A merge hands nothing off by itself; a person with write access can order a fix."
            )
        case _:
            assert_never(handoff.mode)


def _limits(policy: Policy) -> str:
    limits, budget = policy.limits, policy.limits.budget
    return (
        f"A fix task ends after {limits.max_review_iterations} review rounds at the latest; a pull "
        f"request with all its fixes may use {budget.input_tokens:,} uncached input tokens, "
        f"${budget.usd:g} and {budget.model_minutes} minutes of model time."
    )


_ADDED: tuple[tuple[str, Acts], ...] = (
    ("an order to fix a finding", Acts(orders=1)),
    ("a resume", Acts(resumes=1)),
    ("a push to a PR that is no fix", Acts(source_acts=1)),
)
"""What people do that lets machines do more, each with what is counted for one of it."""


def _most(policy: Policy) -> tuple[str, ...]:
    """The bound (DESIGN §3.8): what one merge can cause, what cuts that, what each act adds."""
    limits = policy.limits.for_guards()
    if policy.mode is Mode.SHADOW:
        by_itself, acts = (
            "In shadow mode a merged PR causes no fix PR, nor does an order",
            _ADDED[2:],
        )
    elif policy.handoff.mode is not HandoffMode.AUTO or limits.max_fix_tasks == 0:
        by_itself, acts = "With this policy a merged PR causes no fix PR by itself", _ADDED
    else:
        most = _amounts(bound(limits, ONE_MERGE))
        by_itself = (
            f"With this policy one merged PR can cause at most {most}, before your budget stops it"
        )
        acts = _ADDED
    added = (f"{act} adds at most {_amounts(bound(limits, each))}" for act, each in acts)
    words = "; ".join(added)
    return (f"{by_itself}.", *_cut(policy), f"{words[0].upper()}{words[1:]}.")


def _cut(policy: Policy) -> tuple[str, ...]:
    cut = policy.limits.max_model_runs
    if cut == 0:
        return ()
    used = _count(cut, "model run")
    return (f"No round or turn of a fix begins once a PR with all its fixes has used {used}.",)


def _amounts(most: Bound) -> str:
    """Fix PRs, rounds and model runs; what is zero is left out."""
    amounts = (
        (most.fix_tasks, "fix PR"),
        (most.source_rounds + most.fix_rounds, "round"),
        (most.model_runs, "model run"),
    )
    return ", ".join(_count(number, noun) for number, noun in amounts if number)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _escalation(policy: Policy) -> str:
    if policy.escalate_to is None:
        return "An escalation mentions nobody; it shows by its label and the check."
    return f"An escalation mentions {policy.escalate_to}."


def _reviewers(policy: Policy) -> tuple[str, ...]:
    by_name = policy.reviewers.model_dump()
    by_name |= by_name.pop("others")
    off = [name for name, allowed in by_name.items() if not allowed]
    return (f"These reviewers are off: {', '.join(off)}.",) if off else ()


def _paths(policy: Policy) -> tuple[str, ...]:
    sentences = []
    if policy.ignore_paths:
        sentences.append(f"Not reviewed: {', '.join(policy.ignore_paths)}.")
    if policy.never_send:
        sentences.append(
            f"Withheld from models, besides keys and .env files: {', '.join(policy.never_send)}."
        )
    return tuple(sentences)


def _fixer(policy: Policy) -> str:
    if not policy.verify_command:
        return "The fixer runs no command of yours before it pushes."
    return f"Before it pushes, the fixer runs: {' '.join(policy.verify_command)}"
