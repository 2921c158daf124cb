"""A fix task at work: turns of an adversarial fixer, rounds of an adversarial reviewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from loop_guards import (
    AfterRoundFacts,
    FindingStatus,
    FixedFacts,
    FixFinding,
    Limits,
    NextDecision,
    NextOutcome,
    Origin,
    ReturnFacts,
    ReturnOutcome,
    ReturnReason,
    ReviewStart,
    RoundFacts,
    RoundRecord,
    Severity,
    Spent,
    StartDecision,
    StartReason,
    TaskEvent,
    TaskState,
    VerifyFacts,
    allowance,
    blocking_since_resume,
    event_after_round,
    ever_blocked,
    purse,
    rounds_started,
    short_looks,
)
from tests.loop_guards.model import asked
from tests.loop_guards.model.check import require
from tests.loop_guards.model.field import (
    PULL_OPEN,
    Introduced,
    Round,
    Setting,
    State,
    Task,
    bits,
)
from tests.loop_guards.model.moves import (
    FIX_ROUND,
    NOTHING,
    TURN,
    VERIFY,
    Cost,
    Step,
    blocking_kind,
    left_to_fix,
    moved,
    new_head,
    reach,
    replaced,
)

WORST_CASE = 2
"""What one run may use at most, in the units of a world with a budget."""


class Look(NamedTuple):
    """What a reviewer says in one round: masks of findings said to be fixed and reported again, the
    severity of a new one, whether everything was looked at, and what it used. `cites`: it points at
    the hunks that fixed what it says is fixed."""

    fixed: int = 0
    again: int = 0
    new: Severity | None = None
    full: bool = True
    upgrade: bool = False
    used: int = 1
    cites: bool = False


def working_acts(state: State, setting: Setting) -> Iterator[Step]:
    """Everything that targets, reviewers and queues can do to the tasks."""
    for place, task in enumerate(state.tasks):
        yield from task_works(state, setting, place, task)


def task_works(
    state: State, setting: Setting, place: int, task: Task, *, ends: bool = True
) -> Iterator[Step]:
    """What can happen to one of them; every way in which a round can end, if `ends`."""
    if task.state is TaskState.QUEUED:
        yield "turn_begins", place, *turn_begun(state, setting, place)
        if setting.may(state, "silence"):
            after = _left(state, setting, place, "silence", TaskEvent.SILENCE)
            yield "silence", place, after, NOTHING
    elif task.state is TaskState.FIXING:
        yield from _turns(state, setting, place, task)
    if task.has_pull == PULL_OPEN and not task.running:
        yield from _looks_begin(state, setting, place, task)
    if task.running:
        yield from _looks_end(state, setting, place, task, ends=ends)


def a_look(
    state: State, setting: Setting, place: int, choose: Callable[[Sequence[int]], int]
) -> Step:
    """One way in which a round can end, of all there are."""
    task = state.tasks[place]
    ways = tuple(looks(state, setting, task))
    look = ways[choose(range(len(ways)))]
    return "round_ends", (place, look), reported(state, setting, place, look), NOTHING


def records(task: Task) -> tuple[RoundRecord, ...]:
    """The rounds of a task as the guards take them."""
    return _records(task.rounds)


@cache
def _records(rounds: tuple[Round, ...]) -> tuple[RoundRecord, ...]:
    return tuple(
        RoundRecord(
            head=str(item.head),
            called=True,
            published=item.published,
            resumes=item.resumes,
            blocking=None if item.blocking < 0 else frozenset(bits(item.blocking)),
            coverage_full=item.full,
        )
        for item in rounds
    )


def granted(setting: Setting, task: Task) -> int:
    """Rounds that humans granted the task, counted without the guards."""
    first = setting.limits.max_review_iterations
    return first + task.resumes * max(1, first // 2)


def turn_begun(state: State, setting: Setting, place: int) -> tuple[State, Cost]:
    """A target asks for its turn."""
    task = state.tasks[place]
    decision = asked.may_start_turn(_before(state, setting, task), setting.limits)
    if not decision.allowed:
        return _refused_turn(state, setting, place, decision), NOTHING
    _may_run(state, task)
    if not left_to_fix(state, setting, task):
        return moved(state, setting, place, TaskEvent.EMPTIED_BY_BASE), NOTHING
    require(task.turns < granted(setting, task), "allowance", f"turn {task.turns + 1}")
    begun = task._replace(turns=task.turns + 1, reserved=_reservation(decision))
    return moved(replaced(state, place, begun), setting, place, TaskEvent.TURN_BEGUN), TURN


def _refused_turn(state: State, setting: Setting, place: int, decision: StartDecision) -> State:
    if decision.reason in (StartReason.STOPPED, StartReason.KILL_SWITCH):
        return state
    return moved(state, setting, place, TaskEvent.ESCALATE)


def _may_run(state: State, task: Task) -> None:
    halted = state.pulls[task.pull].stopped or state.kill_switch
    require(not halted, "halted_stays_halted", "a run starts in a stopped lineage")
    require(task.state is not TaskState.ESCALATED, "halted_stays_halted", "an escalated task runs")


def _reservation(decision: StartDecision) -> int:
    return decision.reservation.input_tokens


def _before(state: State, setting: Setting, task: Task) -> RoundFacts:
    pull = state.pulls[task.pull]
    reserved = sum(other.reserved for other in state.tasks)
    return RoundFacts(
        rounds_started=rounds_started(records(task)),
        turns_begun=task.turns,
        allowance=allowance(setting.limits, task.resumes),
        spent=Spent(input_tokens=state.spent),
        reserved=Spent(input_tokens=reserved),
        worst_case=Spent(input_tokens=WORST_CASE if setting.budgeted else 0),
        stopped=pull.stopped,
        kill_switch=state.kill_switch,
        escalated=task.state is TaskState.ESCALATED,
        lineage_resumes=pull.resumes,
    )


class Push(NamedTuple):
    """What a turn pushes: paths it changed, fixed findings whose anchor it touched, and whether the
    patch was judged before."""

    name: str
    changed: int
    broken: int = 0
    known: bool = False


def _turns(state: State, setting: Setting, place: int, task: Task) -> Iterator[Step]:
    for push in _pushes(setting, task):
        if setting.may(state, push.name):
            yield (
                push.name,
                place,
                pushed(setting.used(state, push.name), setting, place, push),
                NOTHING,
            )
    for name, event in (
        ("pushes_nothing", TaskEvent.TURN_EMPTY),
        ("turn_fails", TaskEvent.TURN_FAILED),
        ("silence", TaskEvent.SILENCE),
    ):
        if setting.may(state, name):
            yield name, place, _left(state, setting, place, name, event), NOTHING
    if setting.may(state, "verify"):
        yield "verify", place, *verified(state, setting, place)


def _pushes(setting: Setting, task: Task) -> Iterator[Push]:
    yield Push("fixes_all", reach(setting, task))
    if task.paths & (task.paths - 1):
        yield Push("fixes_some", task.paths & -task.paths)
    elsewhere = ((1 << setting.paths) - 1) & ~task.paths
    yield Push("widens", elsewhere & -elsewhere)
    if task.fixed:
        yield Push("breaks_others", task.paths, broken=task.fixed)
    if task.rounds:
        yield Push("reverts", task.paths, known=True)


def pushed(state: State, setting: Setting, place: int, push: Push) -> State:
    """The turn is over: its commit is on the branch, the fix pull request is open."""
    task = state.tasks[place]
    task = new_head(task, push.changed)._replace(
        has_pull=task.has_pull or PULL_OPEN,
        idle=False,
        broken=task.broken | push.broken,
        known=push.known,
        reserved=0,
    )
    state = _paid(replaced(state, place, task), setting, WORST_CASE)
    return moved(state, setting, place, TaskEvent.TURN_DONE)


def _left(state: State, setting: Setting, place: int, act: str, event: TaskEvent) -> State:
    """The turn ends without a push."""
    task = state.tasks[place]
    used = WORST_CASE if task.reserved else 0
    idle = event is TaskEvent.TURN_EMPTY
    state = replaced(setting.used(state, act), place, task._replace(reserved=0, idle=idle))
    return moved(_paid(state, setting, used), setting, place, event)


def _paid(state: State, setting: Setting, used: int) -> State:
    if not setting.budgeted:
        return state
    spent = state.spent + used
    total = purse(setting.limits, state.pulls[0].resumes).input_tokens
    require(spent <= total, "purse", f"{spent} of {total}")
    return state._replace(spent=spent)


def verified(state: State, setting: Setting, place: int) -> tuple[State, Cost]:
    """The fixer asks for a review of its own diff."""
    task, pull = state.tasks[place], state.pulls[state.tasks[place].pull]
    facts = VerifyFacts(task.state, task.verified, pull.stopped, state.kill_switch)
    if not asked.may_verify(facts, setting.limits).allowed:
        return state, NOTHING
    _may_run(state, task)
    require(task.verified < setting.limits.verify_cycles, "verify_cycles")
    return replaced(state, place, task._replace(verified=task.verified + 1)), VERIFY


def _looks_begin(state: State, setting: Setting, place: int, task: Task) -> Iterator[Step]:
    if task.state is TaskState.REVIEWING:
        yield "round_begins", place, *round_begun(state, setting, place)
    if setting.may(state, "command"):
        used = setting.used(state, "command")
        yield "command", place, *round_begun(used, setting, place, commanded=True)
    if setting.may(state, "base_merged_in"):
        yield "base_merged_in", place, base_merged_in(state, task), NOTHING


def base_merged_in(state: State, task: Task) -> State:
    """A push that only merges the base, or a doubled delivery: no run, the same verdict."""
    for known in ({"same_patch": True}, {"already_reviewed": True}):
        decision = asked.may_review(_start(state, task, **known), Limits())
        require(not decision.allowed, "allowance", f"a round for {known}")
    return state


def _start(state: State, task: Task, *, commanded: bool = False, **different: bool) -> ReviewStart:
    return ReviewStart(
        is_open=task.has_pull == PULL_OPEN,
        is_newest_head=True,
        draft=False,
        by_human=commanded,
        commanded=commanded,
        machine_rounds=0,
        already_reviewed=different.get("already_reviewed", False),
        same_patch=different.get("same_patch", False),
        is_fix_pr=True,
        stopped=state.pulls[task.pull].stopped,
        kill_switch=state.kill_switch,
        escalated=task.state is TaskState.ESCALATED,
    )


def round_begun(
    state: State, setting: Setting, place: int, *, commanded: bool = False
) -> tuple[State, Cost]:
    """A review of the fix pull request is asked for; if it starts, it is charged at once."""
    task = state.tasks[place]
    if not asked.may_review(_start(state, task, commanded=commanded), setting.limits).allowed:
        return state, NOTHING
    decision = asked.may_start_round(_before(state, setting, task), setting.limits)
    if not decision.allowed:
        if decision.reason in (StartReason.CAP, StartReason.BUDGET):
            return _followed(state, setting, place, _without_answer(state, setting, task)), NOTHING
        return state, NOTHING
    _may_run(state, task)
    require(len(task.rounds) < granted(setting, task), "allowance", f"round {len(task.rounds) + 1}")
    record = Round(task.head, published=False, resumes=task.resumes, blocking=-1, full=False)
    begun = task._replace(
        rounds=(*task.rounds, record), running=True, reserved=_reservation(decision)
    )
    return moved(replaced(state, place, begun), setting, place, TaskEvent.FIRST_CALL), FIX_ROUND


def _looks_end(
    state: State, setting: Setting, place: int, task: Task, *, ends: bool
) -> Iterator[Step]:
    for look in looks(state, setting, task) if ends else ():
        yield "round_ends", (place, look), reported(state, setting, place, look), NOTHING
    if setting.may(state, "superseded"):
        yield (
            "superseded",
            place,
            _superseded(setting.used(state, "superseded"), setting, place),
            NOTHING,
        )
    if setting.may(state, "unavailable"):
        used = setting.used(state, "unavailable")
        yield "unavailable", place, _unanswered(used, setting, place), NOTHING


def looks(state: State, setting: Setting, task: Task) -> Iterator[Look]:
    """Every answer that makes a difference to the guards."""
    count = len(setting.kinds)
    tracked = task.findings | ((1 << len(task.introduced)) - 1) << count
    fixed = _fixed_mask(setting, task)
    news: list[Severity | None] = [None]
    if len(task.introduced) < setting.max_introduced:
        news += [Severity.CRITICAL, Severity.WARNING]
    fulls = (True, False) if setting.may(state, "short") else (True,)
    suggestions = any(
        setting.kinds[number].severity is Severity.SUGGESTION for number in bits(task.findings)
    )
    upgrades = (False, True) if suggestions and setting.may(state, "upgrades") else (False,)
    uses = (1, WORST_CASE) if setting.budgeted else (1,)
    again = fixed if setting.may(state, "raises_again") else 0
    for said, back, new, full, upgrade, used in product(
        _subsets(tracked & ~fixed), _subsets(again), news, fulls, upgrades, uses
    ):
        yield Look(said, back, new, full, upgrade, used)
        late = any(not _paths_of(setting, task, number) & task.changed for number in bits(said))
        if late and new is None and full:
            yield Look(said, back, new, full, upgrade, used, cites=True)


def _subsets(mask: int) -> Iterator[int]:
    part = mask
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & mask


def _fixed_mask(setting: Setting, task: Task) -> int:
    count = len(setting.kinds)
    introduced = sum(1 << count + place for place, item in enumerate(task.introduced) if item.fixed)
    return task.fixed | introduced


def _superseded(state: State, setting: Setting, place: int) -> State:
    """Another head came while the run was at work: the round is spent and said nothing."""
    task = state.tasks[place]
    task = new_head(task._replace(running=False, reserved=0), reach(setting, task))
    return _paid(replaced(state, place, task), setting, WORST_CASE)


def _unanswered(state: State, setting: Setting, place: int) -> State:
    """No model could be asked to the end."""
    task = state.tasks[place]._replace(running=False, reserved=0)
    state = _paid(replaced(state, place, task), setting, WORST_CASE)
    return _followed(state, setting, place, _without_answer(state, setting, task, unavailable=True))


def _without_answer(
    state: State, setting: Setting, task: Task, *, unavailable: bool = False
) -> NextDecision:
    past = records(task)
    return asked.after_round(
        AfterRoundFacts(
            rounds_started=rounds_started(past),
            allowance=allowance(setting.limits, task.resumes),
            blocking_history=blocking_since_resume(past, task.resumes),
            coverage_full=False,
            spent=Spent(input_tokens=state.spent),
            stopped=state.pulls[task.pull].stopped,
            unavailable=unavailable,
            lineage_resumes=state.pulls[task.pull].resumes,
        ),
        setting.limits,
    )


def reported(state: State, setting: Setting, place: int, look: Look) -> State:
    """The reviewer's answer is judged, stored and followed."""
    before = state.tasks[place]
    state = _paid(state, setting, look.used)
    # The answer is a matter of the task alone, and the same tasks are met in very many states.
    statuses = tuple(finding.status for finding in state.findings)
    pull = state.pulls[before.pull]
    key = before, look, statuses, pull, state.spent, state.kill_switch
    found = setting.memory.get(key)
    if found is None:
        found = setting.memory[key] = _report(state, setting, before, look)
    task, decision = found
    return _followed(replaced(state, place, task), setting, place, decision)


def _report(state: State, setting: Setting, before: Task, look: Look) -> tuple[Task, NextDecision]:
    task, bounced, unstable = _judged(setting, before, look)
    past = records(before)[:-1]
    verdict = asked.decide_fix_verdict(
        tuple(_fix_findings(state, setting, task, ever_blocked(past))), coverage_full=look.full
    )
    blocking = sum(1 << number for number in verdict.blocking)
    _check_blocking(state, setting, before, task, blocking, cites=look.cites)
    last = before.rounds[-1]
    record = last._replace(published=True, blocking=blocking, full=look.full)
    touched = _touched(setting, before)
    known = task.known
    task = task._replace(
        rounds=(*task.rounds[:-1], record),
        changed=0,
        idle=False,
        known=False,
        broken=task.broken & task.fixed,
        running=False,
        reserved=0,
    )
    decision = _after(
        state, setting, task, known=known, touched=touched, bounced=bounced, unstable=unstable
    )
    _check_stall(setting, task, decision, touched=touched, known=known)
    return task, decision


def _after(
    state: State,
    setting: Setting,
    task: Task,
    *,
    known: bool = False,
    touched: bool = True,
    bounced: bool = False,
    unstable: bool = False,
) -> NextDecision:
    past, pull = records(task), state.pulls[task.pull]
    return asked.after_round(
        AfterRoundFacts(
            rounds_started=rounds_started(past),
            allowance=allowance(setting.limits, task.resumes),
            blocking_history=blocking_since_resume(past, task.resumes),
            coverage_full=task.rounds[-1].full,
            newest_head=task.rounds[-1].head == task.head,
            spent=Spent(input_tokens=state.spent),
            stopped=pull.stopped,
            coverage_attempts=short_looks(past, task.resumes),
            bounced=bounced,
            second_flip=unstable,
            touched=touched,
            known_patch=known,
            lineage_resumes=pull.resumes,
        ),
        setting.limits,
    )


def asked_again(state: State, setting: Setting, place: int) -> State:
    """A stop is lifted: what a finished round said is followed now, without a round."""
    task = state.tasks[place]
    said = task.rounds and task.rounds[-1].blocking >= 0 and task.rounds[-1].head == task.head
    if task.state is not TaskState.REVIEWING or task.running or not said:
        return state
    return _followed(state, setting, place, _after(state, setting, task))


def _followed(state: State, setting: Setting, place: int, decision: NextDecision) -> State:
    task = state.tasks[place]
    if decision.outcome == NextOutcome.APPROVE and task.state is TaskState.REVIEWING:
        require(task.rounds[-1].head == task.head, "approves_what_it_saw", "an older head")
    return moved(state, setting, place, event_after_round(decision.outcome))


def _judged(setting: Setting, task: Task, look: Look) -> tuple[Task, bool, bool]:
    """Every claim on its evidence; then whether anything bounced, and whether a flip was one too
    many."""
    count, limits = len(setting.kinds), setting.limits
    blocked = ever_blocked(records(task)[:-1])
    fixed, flips, broken = _fixed_mask(setting, task), task.flips, task.broken
    bounced = unstable = False
    for number in bits(look.again):
        facts = ReturnFacts(number in blocked, bool(broken >> number & 1), flips >> number & 1)
        said = asked.judge_return(facts, limits)
        bounced = bounced or said.reason == ReturnReason.BOUNCE
        unstable = unstable or said.reason == ReturnReason.UNSTABLE_REVIEW
        assert (said.outcome == ReturnOutcome.ESCALATE) == (
            said.reason in (ReturnReason.BOUNCE, ReturnReason.UNSTABLE_REVIEW)
        )
        flips |= (1 << number) if said.is_flip else 0
        fixed &= ~(1 << number)
        broken &= ~(1 << number)
    tracked = task.findings | ((1 << len(task.introduced)) - 1) << count
    for number in bits(tracked & ~_fixed_mask(setting, task)):
        if _is_fixed(setting, task, number, look):
            fixed |= 1 << number
            broken &= ~(1 << number)
    introduced = tuple(
        item._replace(fixed=bool(fixed >> count + place & 1))
        for place, item in enumerate(task.introduced)
    )
    if look.new is not None:
        introduced += (Introduced(look.new),)
    task = task._replace(
        fixed=fixed & ((1 << count) - 1),
        flips=flips,
        broken=broken,
        introduced=introduced,
        upgraded=task.upgraded | (_suggestions(setting, task) if look.upgrade else 0),
    )
    return task, bounced, unstable


def _suggestions(setting: Setting, task: Task) -> int:
    return sum(
        1 << number
        for number in bits(task.findings)
        if setting.kinds[number].severity is Severity.SUGGESTION
    )


def _is_fixed(setting: Setting, task: Task, number: int, look: Look) -> bool:
    paths = _paths_of(setting, task, number)
    facts = FixedFacts(
        claimed_fixed=bool(look.fixed >> number & 1),
        cited_hunk_changed=look.cites and bool((paths or -1) & task.proposed),
        files=frozenset(str(path) for path in bits(paths)),
        changed_files=frozenset(str(path) for path in bits(task.changed)),
    )
    return asked.judge_fixed(facts).fixed


def _paths_of(setting: Setting, task: Task, number: int) -> int:
    """A finding first raised on the fix lies in the task's first path."""
    if number >= len(setting.kinds):
        return task.paths & -task.paths
    kind = setting.kinds[number]
    return kind.also | (0 if kind.path is None else 1 << kind.path)


def _fix_findings(
    state: State, setting: Setting, task: Task, blocked: frozenset[int]
) -> Iterator[FixFinding]:
    count = len(setting.kinds)
    for number, kind in enumerate(setting.kinds):
        of_task = bool(task.findings >> number & 1)
        fixed = bool(task.fixed >> number & 1)
        if not of_task and (kind.path is None or not task.paths >> kind.path & 1):
            continue
        status = FindingStatus.FIXED if of_task and fixed else state.findings[number].status
        upgraded = bool(task.upgraded >> number & 1)
        yield FixFinding(
            id=number,
            status=status,
            origin=kind.origin,
            of_task=of_task,
            severity_at_handoff=kind.severity if of_task else None,
            severity_when_raised=kind.severity,
            ordered=bool(task.ordered >> number & 1),
            severity_now=Severity.WARNING if upgraded else None,
            anchor_changed=upgraded,
            was_blocking=number in blocked,
        )
    for place, item in enumerate(task.introduced):
        yield FixFinding(
            id=count + place,
            status=FindingStatus.FIXED if item.fixed else FindingStatus.OPEN,
            origin=Origin.INTRODUCED,
            of_task=False,
            severity_when_raised=item.severity,
            in_own_diff=True,
            was_blocking=count + place in blocked,
        )


def _check_blocking(
    state: State, setting: Setting, before: Task, task: Task, blocking: int, *, cites: bool
) -> None:
    last = next((item.blocking for item in reversed(before.rounds) if item.blocking >= 0), 0)
    for number in bits(blocking):
        allowed = blocking_kind(setting, task, number) or last >> number & 1
        require(bool(allowed), "only_task_blocks", f"finding {number}")
    count = len(setting.kinds)
    now_fixed, was_fixed = _fixed_mask(setting, task), _fixed_mask(setting, before)
    for number in bits(last & ~blocking):
        gone = number < count and (
            not task.findings >> number & 1
            # Dismissed by a human, lost by the base, or fixed by another task meanwhile.
            or state.findings[number].status is not FindingStatus.OPEN
        )
        changed = before.changed | (before.proposed if cites else 0)
        paths = _paths_of(setting, before, number) or -1
        evidence = was_fixed >> number & 1 or paths & changed
        on_evidence = now_fixed >> number & 1 and evidence
        require(bool(gone or on_evidence), "blocking_stays", f"finding {number}")
    for place, item in enumerate(task.introduced):
        if item.severity is Severity.CRITICAL and not item.fixed:
            require(bool(blocking >> count + place & 1), "blocking_stays", "an introduced critical")


def _touched(setting: Setting, task: Task) -> bool:
    """Whether the turn before this round changed a file of what blocked before it."""
    if task.idle:
        return False
    looked = [
        item for item in task.rounds[:-1] if item.resumes >= task.resumes and item.blocking >= 0
    ]
    if not looked or looked[-1].head == task.head:
        return True
    paths = 0
    for number in bits(looked[-1].blocking):
        # One that names no file is touched by any change.
        paths |= _paths_of(setting, task, number) or -1
    return not looked[-1].blocking or bool(paths & task.changed)


def _check_stall(
    setting: Setting, task: Task, decision: NextDecision, *, touched: bool, known: bool
) -> None:
    """A stall by repetition needs enough rounds since the latest resume."""
    if decision.reason != "stall" or not touched or known:
        return
    since = [item for item in task.rounds if item.resumes >= task.resumes and item.blocking >= 0]
    require(len(since) > setting.limits.stall_turns, "resume_forgets", f"{len(since)} rounds")
