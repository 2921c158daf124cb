"""Stories of comments that command: what happens, and what is answered (commands/flow.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlmodel import col, select

from app.commands.flow import handle_comment
from app.domain.effects import Comment, React, Reaction
from app.domain.jobs import Cause, JobKind, JobState
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import POLICY_PATH
from app.domain.pull_request import Permission, PullRequestState
from app.domain.tasks import FixTaskState, OrderState
from app.errors import ForgeForbidden, ForgeUnavailable
from app.jobs.requests import PRIORITY_PERSON
from app.store.tables import FindingRow, FixTask, Job, Lineage
from loop_guards import FindingStatus, Severity
from tests.fixer.crashes import Died, MortalStore, carry_out
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import FILE, Stage, account

pytestmark = in_module_loop

REVIEW, COMMENT, TURN = (
    JobKind.REVIEW_PULL_REQUEST,
    JobKind.HANDLE_COMMENT,
    JobKind.RUN_FIX_TASK,
)
WAITS = "queued; it goes to the fixer when this pull request is merged"


async def comments(stage: Stage, body: str, *, number: int = 1, by: str = "alice") -> int:
    """Somebody comments; only that comment is handled. Its id."""
    comment_id = stage.world.comment(stage.repo, number, account(by), body)
    await stage.queue(stage.comment_request(comment_id, body, number, by))
    await stage.run(COMMENT)
    return comment_id


async def merged(stage: Stage, **finding: Any) -> FixTask:
    """A merged pull request whose one finding has a task, which waits for its turn."""
    stage.open()
    await stage.finds(**finding)
    stage.merge()
    await stage.queue(stage.close_request())
    await stage.run(JobKind.CLOSE_PULL_REQUEST)
    return await stage.task()


def answer(stage: Stage, number: int = 1) -> str:
    """The only answer to a command, without its marker."""
    said = [text for text in stage.comments(number) if "mergeward:comment:command:" in text]
    (only,) = said
    return only.rpartition("\n\n<!--")[0]


async def ends(stage: Stage) -> list[tuple[OrderState, str | None]]:
    return [(order.state, order.outcome_reason) for order in await stage.orders()]


async def test_an_order_on_an_open_pull_request_waits_for_its_merge(stage: Stage) -> None:
    """Nothing is handed off before the merge; the mark says who gave it (DESIGN 3.9)."""
    stage.open()
    wanted = await stage.finds()
    comment_id = await comments(stage, "/mergeward fix F1")
    (order,) = await stage.orders()
    assert (order.finding_id, order.state, order.ordered_by_login) == (
        wanted,
        OrderState.PENDING,
        "alice",
    )
    marker = Marker(MarkerKind.COMMENT, f"command:{comment_id}")
    assert stage.reviewer.written == [
        React(comment_id, Reaction.EYES),
        Comment(marker, f"- **F1** {WAITS}."),
    ]
    assert await stage.tasks() == []
    assert await stage.jobs(JobKind.CLOSE_PULL_REQUEST) == []
    assert await stage.reasons("order") == ["waits_for_merge"]


async def test_an_order_on_a_merged_pull_request_is_handed_off_now(stage: Stage) -> None:
    """A person may order what the automatic plan left out, and nothing else goes with it."""
    stage.open()
    await stage.finds(severity=Severity.SUGGESTION)
    await stage.finds(severity=Severity.SUGGESTION, path="app/b.py", code="    return 1")
    stage.merge()
    await stage.closed()
    await comments(stage, "/mergeward fix F1")
    assert answer(stage) == "- **F1** goes to the fixer now."
    (job,) = [job for job in await stage.jobs(JobKind.CLOSE_PULL_REQUEST) if job.state.is_live]
    assert (job.payload["batch"], job.priority) == ("order:1", PRIORITY_PERSON)
    await stage.run(JobKind.CLOSE_PULL_REQUEST)
    task = await stage.task()
    assert (task.batch, task.paths) == ("order:1", [FILE])
    assert await ends(stage) == [(OrderState.TASK, "merged")]


async def test_a_finding_is_ordered_once(stage: Stage) -> None:
    """The second order is refused and names who was first."""
    stage.open()
    await stage.finds()
    stage.world.permissions["bob"] = Permission.ADMIN
    await comments(stage, "/mergeward fix F1")
    await comments(stage, "/mergeward fix F1", by="bob")
    assert await ends(stage) == [
        (OrderState.PENDING, "waits_for_merge"),
        (OrderState.REFUSED, "already_queued"),
    ]
    assert "refused: it is queued already by alice." in stage.comments()[-1]


async def test_what_a_live_task_covers_is_not_ordered_again(stage: Stage) -> None:
    """The answer leads to the fix that is under way."""
    await merged(stage)
    await stage.run()
    await comments(stage, "/mergeward fix F1")
    assert await ends(stage) == [(OrderState.REFUSED, "live_task")]
    assert answer(stage) == "- **F1** refused: a fix for it is under way in #2."
    assert len(await stage.tasks()) == 1


async def test_an_unmerged_end_takes_no_orders(stage: Stage) -> None:
    """Nobody fixes what was thrown away."""
    stage.open()
    await stage.finds()
    stage.close()
    await comments(stage, "/mergeward fix F1")
    assert await ends(stage) == [(OrderState.REFUSED, "not_merged")]
    assert await stage.tasks() == []


@pytest.mark.parametrize("status", [FindingStatus.FIXED, FindingStatus.GONE])
async def test_what_is_fixed_is_not_ordered(stage: Stage, status: FindingStatus) -> None:
    """A finding that is fixed or gone stays so: an order reopens only what people closed."""
    stage.open()
    wanted = await stage.finds(status=status)
    await comments(stage, "/mergeward fix F1")
    assert await ends(stage) == [(OrderState.REFUSED, "not_open")]
    assert (await stage.findings())[0].status is status
    assert wanted == (await stage.findings())[0].id


@pytest.mark.parametrize("status", [FindingStatus.DISMISSED, FindingStatus.ACKNOWLEDGED])
@pytest.mark.parametrize(
    ("minutes", "reopened"),
    [pytest.param(-1, True, id="order-is-later"), pytest.param(1, False, id="order-is-earlier")],
)
async def test_the_latest_act_of_a_person_holds(
    stage: Stage, status: FindingStatus, minutes: int, reopened: bool
) -> None:
    """An order takes up what was dismissed before it; a dismissal after it stands, also when the
    order is carried out late."""
    stage.open()
    at = stage.clock.now() + timedelta(minutes=minutes)
    await stage.finds(status=status, status_at=at)
    await comments(stage, "/mergeward fix F1")
    (row,) = await stage.findings()
    assert row.status is (FindingStatus.OPEN if reopened else status)
    assert (row.status_by_login == "alice") is reopened


async def test_an_order_counts_from_when_it_was_given(stage: Stage) -> None:
    """A job that is tried again much later does not make the order younger."""
    stage.open()
    await stage.finds()
    given = stage.clock.now()
    stage.reviewer.fail_next("permission", ForgeUnavailable("no answer"))
    await comments(stage, "/mergeward fix F1")
    assert await stage.orders() == []
    await stage.later(minutes=10)
    (order,) = await stage.orders()
    assert order.ordered_at == given


@pytest.mark.parametrize("command", ["fix F1", "review"])
async def test_a_reader_is_refused_with_the_reason(stage: Stage, command: str) -> None:
    """Commands need write access at this moment; the refusal is answered and kept."""
    stage.open()
    await stage.finds()
    await comments(stage, f"/mergeward {command}", by="mallory")
    assert "needs write access" in answer(stage)
    assert await stage.jobs(REVIEW) == []
    assert all(order.state is OrderState.REFUSED for order in await stage.orders())


async def test_access_is_asked_about_when_the_command_is_carried_out(stage: Stage) -> None:
    """Who lost write access since the comment may command nothing."""
    stage.open()
    await stage.finds()
    stage.world.permissions["alice"] = Permission.READ
    await comments(stage, "/mergeward fix all")
    assert await ends(stage) == [(OrderState.REFUSED, "no_write_access")]


async def test_unknown_ids_are_named(stage: Stage) -> None:
    """What exists is ordered, what does not is said."""
    stage.open()
    await stage.finds()
    await comments(stage, "/mergeward fix F1 F8 F9")
    assert answer(stage).splitlines() == [
        f"- **F1** {WAITS}.",
        "- There is no such finding here: F8, F9.",
    ]


async def test_a_hundred_unknown_ids_get_a_short_answer(stage: Stage) -> None:
    """Nobody makes us write a page of numbers."""
    stage.open()
    await stage.known()
    ids = " ".join(f"F{number}" for number in range(1, 500))
    await comments(stage, f"/mergeward fix {ids}")
    assert answer(stage).endswith("F19, F20 and 479 more.")


async def test_all_means_what_is_open(stage: Stage) -> None:
    """`fix all` orders every open finding and nothing that is settled."""
    stage.open()
    for status in (FindingStatus.OPEN, FindingStatus.FIXED, FindingStatus.DISMISSED):
        await stage.finds(status=status)
    await stage.finds(severity=Severity.SUGGESTION)
    await comments(stage, "/mergeward fix all")
    assert answer(stage).splitlines() == [f"- **F1** {WAITS}.", f"- **F4** {WAITS}."]


async def test_all_of_nothing(stage: Stage) -> None:
    """A pull request that was never reviewed has nothing to fix, and says so."""
    stage.open()
    await comments(stage, "/mergeward fix all")
    assert answer(stage) == "There are no open findings here to fix."


async def test_an_escalated_task_is_resumed_with_half_its_rounds(stage: Stage) -> None:
    """An order for a finding of a stuck fix is a resume of that fix, once (DESIGN 3.4, 3.9)."""
    task = await merged(stage)
    await stage.run()
    await stage.change(
        FixTask,
        task.id,
        state=FixTaskState.ESCALATED,
        escalation_reason="cap",
        lease_ended_at=stage.clock.now(),
    )
    await comments(stage, "/mergeward fix F1")
    task = await stage.task()
    assert (task.state, task.allowance, task.resumes) == (FixTaskState.QUEUED, 7, 1)
    assert (task.escalation_reason, task.lease_ended_at) == (None, None)
    (order,) = await stage.orders()
    assert (order.state, order.fix_task_id) == (OrderState.TASK, task.id)
    assert answer(stage) == "- **F1** its fix was waiting for a person and goes on now."
    turns = [job for job in await stage.jobs(TURN) if job.state is JobState.QUEUED]
    assert len(turns) == 1
    await comments(stage, "/mergeward fix F1")
    assert (await stage.task()).resumes == 1
    assert (await ends(stage))[-1] == (OrderState.REFUSED, "live_task")


async def test_a_stopped_lineage_keeps_the_order(stage: Stage) -> None:
    """A stop holds until somebody resumes by name; the answer says that the order waits."""
    stage.open()
    await stage.finds(severity=Severity.SUGGESTION)
    stage.merge()
    await stage.closed()
    await stage.change(Lineage, (await stage.lineage()).id, state="stopped")
    await comments(stage, "/mergeward fix F1")
    assert await ends(stage) == [(OrderState.PENDING, "stopped")]
    assert "automation is stopped here" in answer(stage)
    assert [job for job in await stage.jobs(JobKind.CLOSE_PULL_REQUEST) if job.state.is_live] == []


async def test_review_asks_for_a_review_by_command(stage: Stage) -> None:
    """The job says that a person commanded it; nothing else is made."""
    stage.open()
    comment_id = await comments(stage, "/mergeward review")
    (job,) = await stage.jobs(REVIEW)
    assert job.payload["trigger"] == "command"
    assert job.payload["causes"][0]["actor_login"] == "alice"
    assert (job.priority, job.key.endswith(f"comment:{comment_id}")) == (PRIORITY_PERSON, True)
    assert answer(stage) == "A review of the present head starts, asked for by alice."


@pytest.mark.parametrize("state", [PullRequestState.CLOSED, PullRequestState.MERGED])
async def test_what_is_closed_is_not_reviewed(stage: Stage, state: PullRequestState) -> None:
    """There is no head to judge any more."""
    pull = stage.open()
    stage.world.put_pull(stage.repo, replace(pull, state=state))
    await comments(stage, "/mergeward review")
    assert await stage.jobs(REVIEW) == []
    assert answer(stage) == "No review: the pull request is closed."


async def test_two_commands_in_one_comment_get_one_answer(stage: Stage) -> None:
    """In their order, each with its own words; a finding named twice is answered once."""
    stage.open()
    await stage.finds()
    await comments(stage, "/mergeward fix F1\n\nand\n\n/mergeward review\n/mergeward fix all")
    assert answer(stage).split("\n\n") == [
        f"- **F1** {WAITS}.",
        "A review of the present head starts, asked for by alice.",
        "There are no open findings here to fix.",
    ]
    assert len(await stage.orders()) == 1


async def test_what_is_not_understood_gets_help_and_no_echo(stage: Stage) -> None:
    """The answer lists what may be said; the words of the comment do not come out of our mouth."""
    stage.open()
    await comments(stage, "/mergeward please @everyone fix #7")
    assert "`/mergeward fix F1 F3`" in answer(stage)
    assert "everyone" not in answer(stage)


@pytest.mark.parametrize(
    ("by", "through", "policy"),
    [
        pytest.param("scribe[bot]", None, "", id="bot"),
        pytest.param("mergeward[bot]", None, "", id="ourselves"),
        pytest.param("mergeward-fixer[bot]", None, "", id="our-fixer"),
        pytest.param("alice", 99, "", id="through-an-app"),
        pytest.param("alice", None, "machine_accounts: [Alice]\n", id="machine-account"),
    ],
)
async def test_machines_are_never_answered(
    make_stage: MakeStage, by: str, through: int | None, policy: str
) -> None:
    """Whatever a machine writes: no answer, no reaction, no order; the ledger says why."""
    stage = await make_stage(policy)
    stage.open()
    await stage.finds()
    stage.world.permissions[by] = Permission.ADMIN
    body = "/mergeward fix F1\n/mergeward review"
    comment_id = stage.world.comment(stage.repo, 1, account(by), body)
    request = stage.comment_request(comment_id, body, 1, by)
    cause = Cause("created", account(by), stage.clock.now(), "d", through)
    await stage.queue(replace(request, payload={**request.payload, "causes": [cause.to_json()]}))
    await stage.run(COMMENT)
    assert (stage.reviewer.effects, stage.fixer.effects) == ([], [])
    assert (await stage.orders(), await stage.jobs(REVIEW)) == ([], [])
    assert await stage.reasons("command") == ["not_human"]


async def test_a_quoted_command_asks_for_nothing(stage: Stage) -> None:
    """Who shows a command to somebody gives none."""
    stage.open()
    await comments(stage, "> /mergeward fix all\n\n```\n/mergeward review\n```")
    assert stage.reviewer.effects == []


async def test_shadow_answers_nobody(make_stage: MakeStage) -> None:
    """In shadow mode nothing is written, whoever asks."""
    stage = await make_stage("mode: shadow\n")
    stage.open()
    await stage.finds()
    await comments(stage, "/mergeward fix F1")
    assert (stage.reviewer.effects, await stage.orders()) == ([], [])


async def test_a_comment_told_twice_is_carried_out_once(stage: Stage) -> None:
    """Another job for the same comment: one order, one review, one reaction, one answer."""
    stage.open()
    await stage.finds()
    body = "/mergeward fix F1\n/mergeward review"
    comment_id = await comments(stage, body)
    written, orders = list(stage.reviewer.written), len(await stage.orders())
    await stage.queue(stage.comment_request(comment_id, body, 1, "alice"))
    await stage.run(COMMENT)
    assert stage.reviewer.written == written
    assert (len(await stage.orders()), len(await stage.jobs(REVIEW))) == (orders, 1)


@pytest.mark.parametrize(
    ("verb", "after"),
    [("react", False), ("react", True), ("ensure_comment", False), ("ensure_comment", True)],
)
async def test_a_retried_job_says_and_does_everything_once(
    stage: Stage, verb: str, after: bool
) -> None:
    """An answer of GitHub that got lost is looked for, not repeated."""
    stage.open()
    await stage.finds()
    stage.reviewer.fail_next(verb, ForgeUnavailable("no answer"), after=after)
    comment_id = await comments(stage, "/mergeward fix F1\n/mergeward review")
    await stage.later(minutes=1)
    assert stage.world.reactions == [(comment_id, Reaction.EYES)]
    assert len(stage.comments()) == 1
    assert (len(await stage.orders()), len(await stage.jobs(REVIEW))) == (1, 1)
    assert await stage.reasons("order") == ["waits_for_merge"]


async def test_an_answer_that_could_not_be_given_is_given_by_the_next_job(stage: Stage) -> None:
    """What was carried out is not carried out again, only said."""
    stage.open()
    await stage.finds()
    stage.reviewer.fail_next("ensure_comment", ForgeForbidden("locked", status=403))
    comment_id = await comments(stage, "/mergeward fix F1")
    assert (stage.comments(), len(await stage.orders())) == ([], 1)
    await stage.queue(stage.comment_request(comment_id, "/mergeward fix F1", 1, "alice"))
    await stage.run(COMMENT)
    assert answer(stage) == f"- **F1** {WAITS}."
    assert len(await stage.orders()) == 1


async def test_a_merge_that_comes_first_is_heeded(stage: Stage) -> None:
    """The forge said open, the ledger heard of the merge meanwhile: the order is handed off now."""
    stage.open()
    await stage.finds(severity=Severity.SUGGESTION)
    pull = stage.world.pull(stage.repo, 1).value
    stage.merge()
    await stage.closed()
    stage.world.put_pull(stage.repo, pull)
    await comments(stage, "/mergeward fix F1")
    assert answer(stage) == "- **F1** goes to the fixer now."


async def test_findings_titles_are_never_repeated(stage: Stage) -> None:
    """An answer names findings by their ids: no text of a model comes out with our authority."""
    stage.open()
    await stage.finds(title="@everyone /mergeward fix all <!-- mergeward:comment:x -->")
    await comments(stage, "/mergeward fix F1 F2\n/mergeward what")
    assert "everyone" not in answer(stage)
    assert len(stage.comments()) == 1


async def test_the_policy_of_the_default_branch_decides_who_is_a_machine(stage: Stage) -> None:
    """A change can't make itself a person: its own copy of the policy is not read."""
    stage.base_files[POLICY_PATH] = b"machine_accounts: [alice]\n"
    stage.main = stage.git.commit(stage.base_files, parent=stage.main)
    stage.open(files={POLICY_PATH: b"machine_accounts: []\n", FILE: b"x\n"})
    await stage.finds()
    await comments(stage, "/mergeward fix F1")
    assert stage.comments() == []


async def test_every_order_is_one_row(stage: Stage) -> None:
    """Accepted or refused, each order can be found again, with who gave it and where."""
    stage.open()
    wanted = await stage.finds()
    first = await comments(stage, "/mergeward fix F1")
    second = await comments(stage, "/mergeward fix F1", by="mallory")
    assert [(order.finding_id, order.source) for order in await stage.orders()] == [
        (wanted, f"comment:{first}"),
        (wanted, f"comment:{second}"),
    ]
    async with stage.store.read() as session:
        jobs = (await session.exec(select(Job).where(col(Job.kind) == COMMENT))).all()
    assert {job.state for job in jobs} == {JobState.DONE}
    assert isinstance((await stage.findings())[0], FindingRow)


@pytest.mark.parametrize("late", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("at", [1, 2])
async def test_a_death_at_any_write_answers_once(stage: Stage, at: int, late: bool) -> None:
    """One order and one reply, wherever the worker dies."""
    stage.open()
    await stage.finds()
    comment = stage.world.comment(stage.repo, 1, account("alice"), "/mergeward fix F1")
    await stage.queue(stage.comment_request(comment, "/mergeward fix F1", 1, "alice"))
    story = partial(handle_comment, services=stage.commands)
    with pytest.raises(Died):
        await carry_out(stage, story, MortalStore(stage.store, at, late=late))
    await stage.run()
    assert (len(await stage.orders()), len(stage.comments())) == (1, 1)
