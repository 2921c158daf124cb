"""Stories of stop, resume, unfix and dismiss, and of what is only told (commands/acts, render)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.domain.effects import Reaction
from app.domain.jobs import JobKind, JobState
from app.domain.pull_request import Permission
from app.domain.tasks import FixTaskState, LineageState, OrderState
from app.errors import ForgeForbidden, ForgeUnavailable
from app.store.tables import FindingRow, FixTask, ThreadRow
from loop_guards import FindingStatus, Severity
from tests.commands.test_comments import COMMENT, REVIEW, TURN, answer, comments, ends, merged
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import Stage

pytestmark = in_module_loop


async def live(stage: Stage, kind: JobKind) -> int:
    return sum(job.state.is_live for job in await stage.jobs(kind))


def last(stage: Stage, number: int = 1) -> str:
    """What we said last, without its marker."""
    return stage.comments(number)[-1].rpartition("\n\n<!--")[0]


async def test_a_stop_ends_the_turn_and_a_resume_starts_it(stage: Stage) -> None:
    """A stopped lineage starts no turn; a resume by name starts the one that was stopped."""
    task = await merged(stage)
    await comments(stage, "/mergeward stop")
    assert (await stage.lineage()).state is LineageState.STOPPED
    assert await live(stage, TURN) == 0
    await stage.run()
    assert ((await stage.task()).state, stage.agent.tasks) == (FixTaskState.QUEUED, [])
    await comments(stage, "/mergeward resume")
    assert ((await stage.lineage()).state, await live(stage, TURN)) == (LineageState.ACTIVE, 1)
    await stage.run()
    assert ((await stage.task()).id, (await stage.task()).state) == (
        task.id,
        FixTaskState.REVIEWING,
    )
    assert await stage.reasons("stop") == ["by_human"]
    assert await stage.reasons("resume") == ["stopped"]


async def test_a_stop_before_the_first_review_is_kept(stage: Stage) -> None:
    """Nothing needs to be in the ledger for a person to say stop, and it says who did."""
    stage.open()
    await comments(stage, "/mergeward stop")
    lineage = await stage.lineage()
    assert (lineage.state, lineage.stopped_by_login) == (LineageState.STOPPED, "alice")
    await comments(stage, "/mergeward status")
    assert "Automation is stopped by alice" in last(stage)


async def test_what_a_stop_deferred_at_the_merge_a_resume_hands_off(stage: Stage) -> None:
    """The merge's findings wait for the resume, which asks about them again, once (DESIGN 3.1)."""
    stage.open()
    await stage.finds()
    await comments(stage, "/mergeward stop")
    stage.merge()
    await stage.closed()
    assert (await stage.tasks(), await stage.reasons("handoff")) == ([], ["stopped"])
    await comments(stage, "/mergeward resume")
    await stage.run(JobKind.CLOSE_PULL_REQUEST)
    assert (await stage.task()).batch.startswith("resume:")
    assert (await stage.reasons("handoff"))[-1] == "auto"
    await comments(stage, "/mergeward resume")
    assert last(stage) == "Not resumed: nothing is stopped here, and nothing waits."


async def test_a_resume_on_the_fix_names_its_escalation(stage: Stage) -> None:
    """Half of the rounds again, once for one escalation."""
    task = await merged(stage)
    await stage.run()
    await stage.change(FixTask, task.id, state=FixTaskState.ESCALATED, escalation_reason="cap")
    await comments(stage, "/mergeward resume", number=2)
    task = await stage.task()
    assert (task.state, task.allowance, task.resumes) == (FixTaskState.QUEUED, 7, 1)
    await comments(stage, "/mergeward resume", number=2)
    assert (await stage.task()).resumes == 1
    assert last(stage, 2) == "Not resumed: the fix waits for nobody."


async def test_unfix_removes_the_order(stage: Stage) -> None:
    """An order that waits ends as withdrawn, and the merge hands off nothing for it."""
    stage.open()
    await stage.finds(severity=Severity.SUGGESTION)
    await comments(stage, "/mergeward fix F1")
    await comments(stage, "/mergeward unfix F1")
    assert await ends(stage) == [(OrderState.WITHDRAWN, "order_pending")]
    assert last(stage) == "- **F1** is no longer queued."
    stage.merge()
    await stage.closed()
    assert await stage.tasks() == []


async def test_unfix_of_the_last_finding_ends_its_task(stage: Stage) -> None:
    """Its turn is called off, its file is free; only a new order hands the finding off again."""
    await merged(stage)
    await comments(stage, "/mergeward unfix F1")
    task = await stage.task()
    assert (task.state, await live(stage, TURN)) == (FixTaskState.WITHDRAWN, 0)
    assert task.lease_ended_at is not None
    await comments(stage, "/mergeward unfix F1")
    assert "refused: it is neither queued" in last(stage)
    await comments(stage, "/mergeward fix F1")
    await stage.run(JobKind.CLOSE_PULL_REQUEST)
    assert len(await stage.tasks()) == 2


async def test_dismiss_settles_the_finding_with_its_reason(stage: Stage) -> None:
    """Who and why are kept, the order is withdrawn, the thread resolved; nobody gets it."""
    pull = stage.world.pull
    stage.open()
    stage.world.open_thread(
        pull(stage.repo, 1), stage.reviewer.me.account, ("app/a.py", 2), "**F1**"
    )
    (thread,) = pull(stage.repo, 1).threads
    await stage.finds()
    await in_thread(stage, thread.comments[0][1].id)
    await comments(stage, "/mergeward fix F1\n/mergeward dismiss F1 @bob wrote it so")
    (row,) = await stage.findings()
    assert (row.status, row.status_by_login, row.status_reason) == (
        FindingStatus.DISMISSED,
        "alice",
        "@bob wrote it so",
    )
    assert await ends(stage) == [(OrderState.WITHDRAWN, "dismissed")]
    assert pull(stage.repo, 1).threads[0].resolved_by == "mergeward[bot]"
    assert "@bob" not in last(stage)
    stage.merge()
    await stage.closed()
    assert await stage.tasks() == []


async def in_thread(stage: Stage, comment_id: int) -> None:
    """The only finding has its thread on the page."""
    (row,) = await stage.findings()
    now = stage.clock.now()
    async with stage.store.write() as session:
        thread = ThreadRow(
            pull_request_id=row.pull_request_id,
            comment_id=comment_id,
            created_at=now,
            updated_at=now,
        )
        session.add(thread)
        await session.flush()
        (await session.get_one(FindingRow, row.id)).thread_id = thread.id


async def test_a_dismissal_on_the_fix_counts_for_both(stage: Stage) -> None:
    """It stands on two pull requests and is one finding; nothing is left to fix, so it is looked at
    once more."""
    await merged(stage)
    await stage.run()
    await comments(stage, "/mergeward dismiss F1 the caller checks", number=2)
    for number in (1, 2):
        (row,) = await stage.findings(number)
        assert (row.status, row.status_reason) == (FindingStatus.DISMISSED, "the caller checks")
    assert (await stage.task()).state is FixTaskState.REVIEWING


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/mergeward dismiss F1", "F1 is not dismissed: say why"),
        ("/mergeward dismiss F9 no", "There is no such finding here: F9"),
        ("/mergeward explain F9", "There is no such finding here: F9"),
        ("/mergeward unfix F1", "it is neither queued nor in a fix"),
        ("/mergeward resume", "Not resumed: nothing is stopped here"),
        ("break glass\n/mergeward status", "Nothing was approved by force"),
    ],
)
async def test_what_is_refused_says_why(stage: Stage, body: str, said: str) -> None:
    """No command is dropped in silence."""
    stage.open()
    await stage.finds()
    await comments(stage, body)
    assert said in answer(stage)
    assert (await stage.findings())[0].status is FindingStatus.OPEN


async def test_behind_a_gate_authors_do_not_waive_their_own_critical(
    make_stage: MakeStage,
) -> None:
    """Somebody else with write access may (DESIGN 4)."""
    stage = await make_stage("human_prs: gate\n")
    stage.world.permissions["bob"] = Permission.WRITE
    stage.open(author="alice")
    await stage.finds()
    await comments(stage, "/mergeward dismiss F1 fine")
    assert (await stage.findings())[0].status is FindingStatus.OPEN
    await comments(stage, "/mergeward dismiss F1 fine", by="bob")
    assert (await stage.findings())[0].status is FindingStatus.DISMISSED


EVERYTHING = [
    *("review", "fix F1", "unfix F1", "dismiss F1 so", "explain F1", "why", "stop", "resume"),
    *("status", "help", "dance"),
]


@pytest.mark.parametrize("verb", EVERYTHING)
async def test_a_reader_commands_nothing(stage: Stage, verb: str) -> None:
    """Each command needs write access, is refused in words, and leaves things as they are."""
    stage.open()
    await stage.finds()
    await comments(stage, f"/mergeward {verb}", by="mallory")
    assert "write access" in answer(stage)
    assert (await stage.findings())[0].status is FindingStatus.OPEN
    assert (await stage.lineage()).state is LineageState.ACTIVE
    assert (await stage.jobs(REVIEW), await stage.jobs(TURN)) == ([], [])
    assert all(order.state is OrderState.REFUSED for order in await stage.orders())


@pytest.mark.parametrize("verb", EVERYTHING)
async def test_where_github_does_not_say_who_may_nobody_may(stage: Stage, verb: str) -> None:
    """An answer that no pause cures is a refusal with its reason."""
    stage.open()
    await stage.finds()
    stage.reviewer.fail_next("permission", ForgeForbidden("no", status=403))
    await comments(stage, f"/mergeward {verb}")
    assert "GitHub refuses to say what you may do here" in answer(stage)
    assert (await stage.jobs(REVIEW), (await stage.lineage()).state) == ([], LineageState.ACTIVE)


async def test_a_command_survives_an_outage_of_the_permission(stage: Stage) -> None:
    """What may be cured by a pause is asked again: nothing is lost, nothing is done twice."""
    stage.open()
    stage.reviewer.fail_next("permission", ForgeUnavailable("no answer"))
    await comments(stage, "/mergeward stop")
    assert stage.comments() == []
    await stage.later(minutes=1)
    assert (await stage.lineage()).state is LineageState.STOPPED
    assert len(stage.comments()) == 1


async def test_explain_tells_the_finding_and_what_follows(stage: Stage) -> None:
    """What, where, by whom, by which prompt, what was decided, what happens next; nobody is named
    by a mention, and no command comes out of our mouth."""
    stage.open()
    await stage.finds(
        body="Ask @everyone about it: /mergeward fix all",
        evidence="rows can be empty",
        reviewers=["security"],
        prompt_version="security@3",
    )
    await comments(stage, "/mergeward fix F1")
    await comments(stage, "/mergeward explain F1 F2")
    text = last(stage)
    for told in (
        "**F1** `app/a.py:2` critical, original: Division by zero",
        "Evidence:\n\nrows can be empty",
        "Found by: security; prompt security@3",
        "Order: marked. It is kept until the pull request is merged.",
        "Next: it goes to the fixer at the merge, as ordered by alice.",
        "There is no such finding here: F2",
    ):
        assert told.replace("@3", "") in text.replace("@&#8203;3", "@3").replace("@3", "")
    assert "@everyone" not in text
    assert "/mergeward fix all" not in text


async def test_status_and_why(stage: Stage) -> None:
    """How things stand, and the latest decision of each kind with what its reason means."""
    stage.open()
    await comments(stage, "/mergeward status\n/mergeward why")
    assert "Never reviewed." in answer(stage)
    assert "Nothing was decided here yet" in answer(stage)
    await stage.finds()
    await comments(stage, "/mergeward fix F1")
    await comments(stage, "/mergeward status\n/mergeward why")
    assert "Open findings: 1 critical (F1)." in last(stage)
    assert "Queued for the fixer: F1 by alice." in last(stage)
    assert "Order: marked. It is kept until the pull request is merged." in last(stage)


async def test_commands_of_one_comment_meet_what_the_ones_before_left(stage: Stage) -> None:
    """They are carried out in their order, as if they came one after the other."""
    verbs = ("stop", "resume", "fix F1", "unfix F1")
    stage.open()
    await stage.finds()
    await comments(stage, "\n".join(map("/mergeward {}".format, verbs)))
    assert (await stage.lineage()).state is LineageState.ACTIVE
    assert await ends(stage) == [(OrderState.WITHDRAWN, "order_pending")]


@pytest.mark.parametrize("where", ["thread", "review"])
async def test_words_in_a_thread_or_a_review_count(stage: Stage, where: str) -> None:
    """A person may command wherever they speak; the answer is in the conversation."""
    stage.open()
    request = stage.comment_request(5, "/mergeward review", 1, "alice")
    payload: dict[str, Any] = {**request.payload, "where": where}
    await stage.queue(replace(request, payload=payload))
    await stage.run(COMMENT)
    assert len(await stage.jobs(REVIEW)) == 1
    assert "A review of the present head starts" in answer(stage)
    assert stage.world.reactions == ([(5, Reaction.EYES)] if where == "thread" else [])
    assert [job.state for job in await stage.jobs(COMMENT)] == [JobState.DONE]


async def test_the_sign_comes_before_what_may_take_long(stage: Stage) -> None:
    """With the policy that was seen last, a reaction needs no fetch; the answer does."""
    stage.open()
    await comments(stage, "/mergeward help")
    stage.reviewer.fail_next("clone_remote", ForgeUnavailable("slow"))
    second = await comments(stage, "/mergeward status")
    assert (second, Reaction.EYES) in stage.world.reactions
    assert len(stage.comments()) == 1
    await stage.later(minutes=1)
    assert len(stage.comments()) == 2
    assert len(stage.world.reactions) == 2


async def test_machines_and_shadow_get_no_early_sign(make_stage: MakeStage) -> None:
    """What the last policy forbids is not done to be quick."""
    stage = await make_stage("machine_accounts: [alice]\n")
    stage.open()
    for body in ("/mergeward help", "/mergeward status"):
        await comments(stage, body)
    assert stage.world.reactions == []


async def test_a_command_that_fails_for_good_is_answered(stage: Stage) -> None:
    """Nothing was carried out, and the person learns it, once."""
    stage.open()
    await comments(stage, "/mergeward help")
    stage.reviewer.fail_next("pull_request", ForgeForbidden("suspended @octocat", status=403))
    await comments(stage, "/mergeward stop")
    assert last(stage).startswith("Nothing was carried out; say it again later.")
    assert "@octocat" not in last(stage)
    assert len(stage.comments()) == 2
