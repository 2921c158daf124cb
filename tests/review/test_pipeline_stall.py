"""A fix that does not converge: bounce, flip, stall, and what a resume forgets. Real git."""

from __future__ import annotations

import asyncio

import pytest

from app.domain.runs import AgentName, Trigger
from app.store.tables import DecisionRow, FixTask
from loop_guards import FindingStatus, Severity, TaskState
from tests.review.story import (
    BASE,
    BEFORE,
    NOTHING,
    PERSON,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
)

C, W = Severity.CRITICAL, Severity.WARNING
GOOD = {**BASE, SEARCH: BEFORE + b"# bound\n"}
BAD = {**BASE, SEARCH: PLANTED}
AGAIN = findings(finding(title="Old critical"))
"""What a reviewer says of the task's finding as if it were new."""


async def task_of(story: Story) -> FixTask:
    return (await story.tasks())[0]


async def judged(story: Story) -> list[tuple[str, dict[str, object]]]:
    """Reason and compared values of each return, in order."""
    rows = [row for row in await story.rows(DecisionRow) if row.kind == "return"]
    return [(row.reason, row.record["compared"]) for row in rows]


def says(story: Story, *, raised: str = NOTHING, **carried: str) -> None:
    """What the next round's agents say."""
    story.model.answers = {AgentName.GENERAL: [raised]}
    story.model.carried = dict(carried)


async def blocked_then_fixed(story: Story) -> None:
    """One round in which the finding blocks, and one in which it is fixed beside another."""
    await open_fix(story, C, W, tree={**BASE, SEARCH: PLANTED + b"# tried\n"})
    await story.review(actor=None)
    story.push(GOOD)
    says(story, F1="fixed")
    await story.review(actor=None)
    assert (await story.findings())[0].status is FindingStatus.FIXED
    assert (await task_of(story)).state is TaskState.QUEUED


async def test_a_bounce_is_escalated(story: Story) -> None:
    """A bot's push puts back the line that was fixed: it blocks again and a person is asked."""
    await blocked_then_fixed(story)
    story.push(BAD)
    says(story, raised=AGAIN)
    await story.review(actor=None)
    task = await task_of(story)
    assert (task.state, task.escalation_reason) == (TaskState.ESCALATED, "bounce")
    [(reason, compared)] = await judged(story)
    assert (reason, compared["bot_touched"]) == ("bounce", True)
    assert (await story.findings())[0].status is FindingStatus.OPEN


async def test_a_persons_push_is_no_bounce(story: Story) -> None:
    """The same, but a person pushed it: no machine went round in a circle."""
    await blocked_then_fixed(story)
    story.push(BAD)
    says(story, raised=AGAIN)
    await story.review(PERSON, action="synchronize")
    assert (await task_of(story)).state is TaskState.QUEUED
    assert [reason for reason, _ in await judged(story)] == ["flip"]


async def flip(story: Story, mark: bytes) -> None:
    """The finding is fixed, and reported again though its line stayed as it is."""
    tree = {**BASE, SEARCH: PLANTED + b"\n\n# " + mark}
    story.push(tree)
    says(story, F1="fixed")
    await story.review(actor=None)
    story.push({**tree, SEARCH: tree[SEARCH] + b"!\n"})
    says(story, raised=AGAIN)
    await story.review(actor=None)


@pytest.mark.parametrize(
    ("resumed", "reason"),
    [pytest.param(False, "unstable_review", id="second"), pytest.param(True, None, id="forgotten")],
)
async def test_a_second_flip_is_escalated(story: Story, resumed: bool, reason: str | None) -> None:
    """Fixed and back twice without a change of its line: the review is unstable, a person is
    asked. A resume between forgets the first one."""
    await open_fix(story, C, W, tree={**BASE, SEARCH: PLANTED + b"# tried\n"}, allowance=9)
    await story.review(actor=None)
    await flip(story, b"one")
    assert (await task_of(story)).state is TaskState.QUEUED
    if resumed:
        async with story.store.write() as session:
            (await session.get_one(FixTask, 1)).resumes = 1
    await flip(story, b"two")
    assert (await task_of(story)).escalation_reason == reason
    assert [why for why, _ in await judged(story)] == ["flip", reason or "flip"]


async def test_a_turn_beside_the_findings_is_a_stall(story: Story) -> None:
    """A turn that touches no file of what blocks: escalated at once, not after two more."""
    await open_fix(story, C, tree={**BASE, SEARCH: PLANTED + b"# tried\n"})
    await story.review(actor=None)
    story.push({**BASE, SEARCH: PLANTED + b"# tried\n", "README.md": b"elsewhere\n"})
    await story.review(actor=None)
    task = await task_of(story)
    assert (task.state, task.escalation_reason) == (TaskState.ESCALATED, "stall")


async def test_an_empty_turn_has_one_more_look(story: Story) -> None:
    """A turn without any change: the same head is looked at again, and what still blocks is a
    stall. Nobody has to command that look."""
    await open_fix(story, C, tree={**BASE, SEARCH: PLANTED + b"# tried\n"})
    await story.review(actor=None)
    async with story.store.write() as session:
        task = await session.get_one(FixTask, 1)
        task.state, task.state_reason = TaskState.REVIEWING, "nothing_changed"
    await story.review(actor=None)
    task = await task_of(story)
    assert (task.state, task.escalation_reason) == (TaskState.ESCALATED, "stall")


async def test_a_commanded_look_is_no_turn(story: Story) -> None:
    """The same head again because a person asked: nothing was between, so nothing stalls."""
    await open_fix(story, C, tree={**BASE, SEARCH: PLANTED + b"# tried\n"})
    await story.review(actor=None)
    await story.review(PERSON, trigger=Trigger.COMMAND, action="created")
    assert (await task_of(story)).state is TaskState.QUEUED


@pytest.mark.parametrize(
    ("by_person", "state"),
    [
        pytest.param(False, TaskState.ESCALATED, id="a bot"),
        pytest.param(True, TaskState.QUEUED, id="a person"),
    ],
)
async def test_a_known_patch_is_a_stall(story: Story, by_person: bool, state: TaskState) -> None:
    """A bot pushes what was judged before as another commit: it goes in a circle. A person may."""
    first = {**BASE, SEARCH: PLANTED + b"# one\n"}
    await open_fix(story, C, W, tree=first)
    await story.review(actor=None)
    story.push({**BASE, SEARCH: PLANTED + b"# two\n"})
    says(story, F2="fixed")
    await story.review(actor=None)
    assert (await task_of(story)).state is TaskState.QUEUED
    story.push(first)
    says(story)
    await story.review(PERSON if by_person else None, action="synchronize")
    task = await task_of(story)
    assert task.state is state
    assert task.escalation_reason == (None if by_person else "stall")
    assert (await story.last_run()).patch_id == (await story.runs())[0].patch_id


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        pytest.param("app/search.py:3", TaskState.APPROVED, id="a line of the fix"),
        pytest.param("README.md:1", TaskState.ESCALATED, id="another file"),
        pytest.param("line 3", TaskState.ESCALATED, id="no place"),
    ],
)
async def test_a_reviewer_can_take_back_what_it_kept(
    story: Story, evidence: str, state: TaskState
) -> None:
    """Kept open though it was fixed: the reviewer may point at the fix later, when nothing more
    changes in that file."""
    await open_fix(story, C, tree=GOOD)
    await story.review(actor=None)
    story.push({**GOOD, "README.md": b"elsewhere\n"})
    says(story, F1="fixed")
    story.model.evidence = evidence
    await story.review(actor=None)
    assert (await task_of(story)).state is state


async def test_what_a_fix_brought_in_is_no_evidence_of_its_repair(story: Story) -> None:
    """A critical of the fix itself: its own hunk was there when it was raised, so citing that
    closes nothing; a later change of the line does."""
    await open_fix(story, W, tree=BAD)
    new = findings(finding(title="Brought in"))
    says(story, raised=new, F1="fixed")
    await story.review(actor=None)
    story.push({**BAD, "README.md": b"elsewhere\n"})
    says(story, F2="fixed")
    story.model.evidence = "app/search.py:2"
    await story.review(PERSON, action="synchronize")
    assert (await story.findings())[1].status is FindingStatus.OPEN
    story.push(GOOD)
    await story.review(PERSON, action="synchronize")
    assert (await story.findings())[1].status is FindingStatus.FIXED


async def test_a_later_try_knows_of_the_empty_turn(story: Story) -> None:
    """The worker dies in the look that an empty turn led to; the charged round has other words
    for its task's state by then, and is a stall nevertheless."""
    await open_fix(story, C, tree={**BASE, SEARCH: PLANTED + b"# tried\n"})
    await story.review(actor=None)
    async with story.store.write() as session:
        task = await session.get_one(FixTask, 1)
        task.state, task.state_reason = TaskState.REVIEWING, "nothing_changed"

    async def dies(_: object) -> str:
        async with story.store.write() as session:
            (await session.get_one(FixTask, 1)).state_reason = "round_started"
        raise asyncio.CancelledError

    story.model.answers = {AgentName.GENERAL: [dies, NOTHING]}
    story.model.calls.clear()
    await story.review(actor=None)
    await story.recover()
    assert (await task_of(story)).escalation_reason == "stall"
