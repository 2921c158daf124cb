"""The world of source pull requests: people, outside bots, and rounds that machines cause. §3.5.

A second, smaller world beside `fixing`: fix tasks begin where it ends, at the merge. Its reviewer
finds what it likes each round, and one thread is argued about by a person and a bot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from loop_guards import (
    ActKind,
    Acts,
    Bound,
    Limits,
    ReviewReason,
    ReviewStart,
    RubricFinding,
    Severity,
    ThreadAction,
    ThreadFacts,
    asks_for_review,
    bound,
    machine_rounds_after_act,
    machine_rounds_after_call,
)
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import require
from tests.loop_guards.model.graph import World
from tests.loop_guards.model.moves import NOTHING, SOURCE_ROUND, Cost, Step

NONE, OPEN, CLOSED = range(3)
NOBODY, HUMAN, MACHINE, PERSON_ASKED = range(4)
"""Who asked for the review that waits; PERSON_ASKED: in words."""


class Source(NamedTuple):
    """A pull request. `counted` are machine-caused rounds as the ledger counts them, `since` as the
    model does; `asked` is who waits for a review, `late` that a doubled delivery of it is on its
    way, `reviewed` that this head was. `replies` and `disagrees` are of its one thread."""

    status: int = NONE
    by_bot: bool = False
    draft: bool = False
    admitted: bool = False
    counted: int = 0
    since: int = 0
    asked: int = NOBODY
    reviewed: bool = False
    running: int = NOBODY
    replies: int = 0
    disagrees: bool = False
    resolved: bool = False


class Sources(NamedTuple):
    """All of them, the acts that are left, and how many bots' pull requests were admitted."""

    pulls: tuple[Source, ...]
    human_left: int
    admitted: int = 0
    stopped: bool = False
    kill_switch: bool = False


@dataclass(frozen=True, slots=True)
class SourceSetting:
    """How many pull requests there may be, and what people may do to all of them together.

    `threads`: a person argues in a thread. `drafts`: bots open drafts too.
    """

    name: str
    limits: Limits
    pulls: int = 2
    human_acts: int = 2
    human_opens: bool = True
    threads: bool = True
    drafts: bool = True

    @property
    def bound(self) -> Bound:
        """The bound for these acts: every pull request that is not a human's may be a bot's."""
        return bound(self.limits, Acts(source_acts=self.human_acts, bot_prs=self.pulls))


def source_world(setting: SourceSetting) -> World[Sources]:
    """The world of one arrangement."""
    return World(
        name=setting.name,
        initial=Sources((Source(),) * setting.pulls, setting.human_acts),
        acts=lambda state: _acts(state, setting),
        canonical=lambda state: state._replace(pulls=tuple(sorted(state.pulls))),
        check=lambda state: _check(state, setting),
    )


def _check(state: Sources, setting: SourceSetting) -> None:
    cap = setting.limits.pingpong_cap
    for pull in state.pulls:
        require(pull.since <= cap, "ping_pong", f"{pull.since} machine-caused rounds")
        require(pull.replies <= setting.limits.thread_replies, "one_action_per_thread", "replies")


def _acts(state: Sources, setting: SourceSetting) -> Iterator[Step]:
    for place, pull in enumerate(state.pulls):
        if pull.status == NONE:
            yield from _opened(state, setting, place)
        else:
            yield from _human(state, setting, place, pull)
            yield from _machine(state, place, pull)
            yield from _rounds(state, setting, place, pull)
    if state.human_left:
        yield (
            "stop",
            None,
            state._replace(stopped=not state.stopped, human_left=state.human_left - 1),
            NOTHING,
        )
    yield "kill_switch", None, state._replace(kill_switch=not state.kill_switch), NOTHING


def _opened(state: Sources, setting: SourceSetting, place: int) -> Iterator[Step]:
    if setting.human_opens and state.human_left:
        mine = Source(OPEN, asked=HUMAN)
        yield "human_opens", place, _put(state, place, mine, human=1), NOTHING
    for draft in (False, True) if setting.drafts else (False,):
        bots = Source(OPEN, by_bot=True, draft=draft, asked=MACHINE)
        yield "bot_opens", place, _put(state, place, bots), NOTHING


def _human(state: Sources, setting: SourceSetting, place: int, pull: Source) -> Iterator[Step]:
    if not state.human_left:
        return
    for kind in (ActKind.PUSH, ActKind.COMMAND, ActKind.REOPEN, ActKind.READY, ActKind.RESUME):
        after = _acted(pull, kind, by_human=True)
        if after is not None:
            yield f"human_{kind}", place, _put(state, place, after, human=1), NOTHING
    if pull.status == OPEN:
        yield (
            "human_closes",
            place,
            _put(state, place, pull._replace(status=CLOSED, asked=NOBODY), human=1),
            NOTHING,
        )
        if setting.threads and not pull.disagrees and not pull.resolved:
            yield (
                "human_disagrees",
                place,
                _put(state, place, pull._replace(disagrees=True), human=1),
                NOTHING,
            )


def _machine(state: Sources, place: int, pull: Source) -> Iterator[Step]:
    """Outside bots never tire: nothing limits what they do."""
    for kind in (
        ActKind.PUSH,
        ActKind.REOPEN,
        ActKind.READY,
        ActKind.BASE_CHANGE,
        ActKind.COMMENT,
        ActKind.LABEL,
        ActKind.REVIEW,
        ActKind.COMMAND,
    ):
        after = _acted(pull, kind, by_human=False)
        if after is not None:
            yield f"bot_{kind}", place, _put(state, place, after), NOTHING
    if pull.status == OPEN:
        yield (
            "bot_closes",
            place,
            _put(state, place, pull._replace(status=CLOSED, asked=NOBODY)),
            NOTHING,
        )


def _acted(pull: Source, kind: ActKind, *, by_human: bool) -> Source | None:
    """The pull request after an act, None where the forge would not let it happen."""
    if (kind is ActKind.REOPEN) is (pull.status == OPEN) and kind is not ActKind.RESUME:
        return None
    if kind is ActKind.READY and not pull.draft:
        return None
    pull = pull._replace(
        counted=machine_rounds_after_act(pull.counted, kind, by_human=by_human),
        since=0 if by_human and kind in _HUMAN_RESETS else pull.since,
        status=OPEN if kind is ActKind.REOPEN else pull.status,
        draft=pull.draft and kind is not ActKind.READY,
        reviewed=pull.reviewed and kind not in (ActKind.PUSH, ActKind.BASE_CHANGE),
    )
    if not asks_for_review(kind) or (kind is ActKind.COMMAND and not by_human):
        return pull
    if by_human:
        return pull._replace(asked=PERSON_ASKED if kind is ActKind.COMMAND else HUMAN)
    return pull._replace(asked=max(pull.asked, MACHINE) if pull.asked != HUMAN else HUMAN)


_HUMAN_RESETS = (ActKind.OPEN, ActKind.PUSH, ActKind.COMMAND, ActKind.RESUME)
"""DESIGN §3.5, said a second time so that the guard's list is checked against it."""


def _rounds(state: Sources, setting: SourceSetting, place: int, pull: Source) -> Iterator[Step]:
    if pull.running == NOBODY:
        yield "review_of_nothing", place, _refused(state, setting, pull), NOTHING
        asked_by = pull.asked or MACHINE
        # A delivery may come again when all is done, or when nobody asked.
        yield "review_asked", place, *_started(state, setting, place, asked_by)
        return
    for fixed in (False, True):
        yield "round_ends", (place, fixed), _ended(state, setting, place, fixed=fixed), NOTHING
    killed = pull._replace(running=NOBODY)
    yield "round_killed", place, _put(state, place, killed), NOTHING


def _refused(state: Sources, setting: SourceSetting, pull: Source) -> Sources:
    """What asks for a review and never gets one, even of a person."""
    for fact in ("own_act", "skip_label", "ignored", "same_patch"):
        decision = asked.may_review(_start(state, pull, HUMAN, **{fact: True}), setting.limits)
        require(not decision.allowed, "halted_stays_halted", fact)
    old = replace(_start(state, pull, HUMAN), is_newest_head=False)
    require(not asked.may_review(old, setting.limits).allowed, "halted_stays_halted", "an old head")
    return state


def _start(state: Sources, pull: Source, asked_by: int, **different: bool) -> ReviewStart:
    return ReviewStart(
        is_open=pull.status == OPEN,
        is_newest_head=True,
        draft=pull.draft,
        by_human=asked_by in (HUMAN, PERSON_ASKED),
        commanded=asked_by == PERSON_ASKED,
        machine_rounds=pull.counted,
        already_reviewed=pull.reviewed,
        stopped=state.stopped,
        kill_switch=state.kill_switch,
        is_outside_bot_pr=pull.by_bot,
        admitted=pull.admitted,
        bot_prs_of_day=state.admitted,
        bot_prs_of_window=state.admitted,
        **different,
    )


def _started(
    state: Sources, setting: SourceSetting, place: int, asked_by: int
) -> tuple[Sources, Cost]:
    pull = state.pulls[place]
    human = asked_by in (HUMAN, PERSON_ASKED)
    decision = asked.may_review(_start(state, pull, asked_by), setting.limits)
    if not decision.allowed:
        waits = decision.reason in (ReviewReason.STOPPED, ReviewReason.KILL_SWITCH)
        return _put(state, place, pull._replace(asked=pull.asked if waits else NOBODY)), NOTHING
    halted = state.kill_switch or (state.stopped and not human)
    require(not halted, "halted_stays_halted", "a review starts in a stopped lineage")
    counts = not human
    new = counts and pull.by_bot and not pull.admitted
    pull = pull._replace(
        counted=machine_rounds_after_call(pull.counted, machine_caused=counts),
        since=pull.since + counts,
        asked=NOBODY,
        running=asked_by,
        admitted=pull.admitted or new,
    )
    state = _put(state, place, pull)
    return state._replace(admitted=state.admitted + new), SOURCE_ROUND


def _ended(state: Sources, setting: SourceSetting, place: int, *, fixed: bool) -> Sources:
    """The round says its verdict and does one thing with the thread."""
    pull = state.pulls[place]
    for findings in _FINDINGS if setting.threads else ():
        verdict = asked.decide_rubric(findings, coverage_full=fixed, limits=setting.limits)
        assert not (verdict.approves and not fixed)
    pull = pull._replace(running=NOBODY, reviewed=True)
    if pull.resolved or not setting.threads:
        return _put(state, place, pull)
    facts = ThreadFacts(fixed=fixed, disagreement=pull.disagrees, our_replies=pull.replies)
    action = asked.decide_thread(facts, setting.limits).action
    replied = action is ThreadAction.REPLY
    pull = pull._replace(
        resolved=action is ThreadAction.RESOLVE,
        replies=pull.replies + replied,
        disagrees=pull.disagrees and action is ThreadAction.KEEP,
    )
    return _put(state, place, pull)


def _of(severity: Severity, **different: bool) -> RubricFinding:
    return RubricFinding(severity=severity, category="code", path="a.py", **different)


_FINDINGS: tuple[tuple[RubricFinding, ...], ...] = (
    (),
    (_of(Severity.SUGGESTION),),
    (_of(Severity.WARNING),),
    (_of(Severity.WARNING), _of(Severity.WARNING)),
    (_of(Severity.WARNING, production_risk=True),),
    (_of(Severity.CRITICAL),),
)
"""One set of findings for each row of the rubric (DESIGN §3.7)."""


def _put(state: Sources, place: int, pull: Source, *, human: int = 0) -> Sources:
    pulls = list(state.pulls)
    pulls[place] = pull
    return state._replace(pulls=tuple(pulls), human_left=state.human_left - human)
