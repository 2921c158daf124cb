"""Buttons of our check run: who may press them and what then happens (commands/check_actions)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlmodel import col, select

from app.commands.check_actions import REVIEW_ACTIONS, SAID, handle_check_action
from app.domain.jobs import Cause, JobKind, JobState
from app.domain.pull_request import AccountKind, Permission
from app.domain.tasks import OrderState
from app.errors import ForgeUnavailable
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.requests import PRIORITY_PERSON, JobRequest
from app.jobs.worker import Worker
from app.review.publish import EXPLAIN, QUEUE_FIXES, RE_REVIEW
from app.store.tables import DecisionRow
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import Stage, account
from tests.store.rows import INSTALLATION, REPOSITORY

pytestmark = in_module_loop

REVIEW = JobKind.REVIEW_PULL_REQUEST


def pressed(
    stage: Stage, *, by: str = "alice", through: int | None = None, **difference: Any
) -> JobRequest:
    """The job that the webhook of a pressed button makes."""
    kind = AccountKind.BOT if by.endswith("[bot]") else AccountKind.USER
    actor = replace(account(by), kind=kind)
    cause = Cause("requested_action", actor, stage.clock.now(), "d1", through)
    payload = {
        "repository_id": REPOSITORY,
        "check_run_id": 31,
        "head_sha": stage.world.pull(stage.repo, 1).value.head_sha,
        "external_id": "run-3",
        "numbers": [1],
        "action": "re-review",
        "causes": [cause.to_json()],
    }
    return JobRequest(
        kind=JobKind.HANDLE_CHECK_ACTION,
        key="check:1:31:re-review:d1",
        payload={**payload, **difference},
        installation_id=INSTALLATION,
        repository_id=REPOSITORY,
    )


async def press(stage: Stage, request: JobRequest) -> None:
    await stage.queue(request)
    await work(stage)


async def work(stage: Stage) -> None:
    story = partial(handle_check_action, services=stage.commands)
    worker = Worker(
        stage.store,
        {JobKind.HANDLE_CHECK_ACTION: story},
        clock=stage.clock,
        wakeups=InProcessDispatcher(),
    )
    await worker.run_until_idle()


async def decisions(stage: Stage) -> list[tuple[str, str]]:
    async with stage.store.read() as session:
        found = await session.exec(
            select(DecisionRow)
            .where(DecisionRow.kind == "check_action")
            .order_by(col(DecisionRow.id))
        )
        return [(row.outcome, row.reason) for row in found.all()]


@pytest.mark.parametrize("action", ["re-review", "rerequested"])
async def test_a_writers_press_asks_for_a_review_like_the_command(
    stage: Stage, action: str
) -> None:
    """Our button and GitHub's own mean `/mergeward review`: the same job, nothing written."""
    stage.open()
    await press(stage, pressed(stage, action=action))
    (job,) = await stage.jobs(REVIEW)
    assert (job.payload["trigger"], job.payload["number"]) == ("command", 1)
    assert job.payload["causes"][0]["actor_login"] == "alice"
    assert (job.priority, job.subject) == (PRIORITY_PERSON, f"pr:{REPOSITORY}:1")
    assert await decisions(stage) == [("review", "allowed")]
    assert stage.reviewer.effects == []


@pytest.mark.parametrize(
    ("difference", "reason"),
    [
        pytest.param({"by": "mallory"}, "no_write_access", id="reader"),
        pytest.param({"by": "stranger"}, "no_write_access", id="stranger"),
        pytest.param({"by": "scribe[bot]"}, "not_human", id="bot"),
        pytest.param({"by": "mergeward[bot]"}, "not_human", id="ourselves"),
        pytest.param({"through": 77}, "not_human", id="through-an-app"),
        pytest.param({"action": "dance"}, "unknown_action", id="no-button-of-ours"),
    ],
)
async def test_whoever_may_not_ask_gets_nothing(
    stage: Stage, difference: dict[str, Any], reason: str
) -> None:
    """A refused press starts nothing and writes nothing; the ledger says why."""
    stage.open()
    stage.world.permissions["scribe[bot]"] = Permission.WRITE
    await press(stage, pressed(stage, **difference))
    assert await stage.jobs(REVIEW) == []
    assert await decisions(stage) == [("refused", reason)]
    assert stage.reviewer.effects == []


async def test_the_permission_is_the_one_of_this_moment(stage: Stage) -> None:
    """Who lost write access since the check was made may press no more."""
    stage.open()
    stage.world.permissions["alice"] = Permission.READ
    await press(stage, pressed(stage))
    assert await decisions(stage) == [("refused", "no_write_access")]


async def test_a_closed_pull_request_is_not_reviewed(stage: Stage) -> None:
    """The button stays on the page after the merge; it does nothing there."""
    stage.open()
    request = pressed(stage)
    stage.close()
    await press(stage, request)
    assert await stage.jobs(REVIEW) == []
    assert await decisions(stage) == [("refused", "closed")]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        pytest.param("machine_accounts: [alice]\n", "not_human", id="machine-account"),
        pytest.param("mode: shadow\n", "shadow", id="shadow"),
    ],
)
async def test_the_policy_is_heeded(make_stage: MakeStage, policy: str, reason: str) -> None:
    """A machine's account is no person, and in shadow mode nothing is published."""
    stage = await make_stage(policy)
    stage.open()
    await press(stage, pressed(stage))
    assert await stage.jobs(REVIEW) == []
    assert await decisions(stage) == [("refused", reason)]


async def test_without_a_number_the_head_is_looked_up(stage: Stage) -> None:
    """GitHub names no pull request for a head in a fork: the ledger knows it."""
    stage.open()
    await stage.known()
    await press(stage, pressed(stage, numbers=[]))
    (job,) = await stage.jobs(REVIEW)
    assert job.payload["number"] == 1


async def test_an_unknown_head_is_nobodys(stage: Stage) -> None:
    """Nothing is guessed about a head that no pull request has."""
    stage.open()
    await press(stage, pressed(stage, numbers=[], head_sha="f" * 40))
    assert await stage.jobs(REVIEW) == []
    assert await decisions(stage) == [("refused", "no_pull_request")]


async def test_of_two_pull_requests_with_one_head_the_open_one_we_know_is_meant(
    stage: Stage,
) -> None:
    """A head may have two pull requests; the closed one is not what somebody wants reviewed."""
    first = stage.open()
    await stage.known(1)
    stage.world.put_pull(stage.repo, replace(first, number=2))
    await stage.known(2)
    stage.close(2)
    await stage.known(2)
    await press(stage, pressed(stage, numbers=[2, 1]))
    (job,) = await stage.jobs(REVIEW)
    assert job.payload["number"] == 1


async def test_a_retried_press_is_one_press(stage: Stage) -> None:
    """An outage in between, and the same job told twice: one review, one decision."""
    stage.open()
    stage.reviewer.fail_next("permission", ForgeUnavailable("no answer"))
    await press(stage, pressed(stage))
    assert await stage.jobs(REVIEW) == []
    await stage.queue(pressed(stage))
    stage.clock.move_to(stage.clock.now().replace(minute=5))
    await work(stage)
    assert len(await stage.jobs(REVIEW)) == 1
    assert await decisions(stage) == [("review", "allowed")]


async def test_two_clicks_are_one_review_while_it_waits(stage: Stage) -> None:
    """Impatience costs nothing: the second click finds the review that was asked for."""
    stage.open()
    await press(stage, pressed(stage))
    await press(stage, pressed(stage))
    assert [job.state for job in await stage.jobs(REVIEW)] == [JobState.QUEUED]
    assert await decisions(stage) == [("review", "allowed")] * 2


async def test_queue_fixes_is_fix_all(stage: Stage) -> None:
    """The same orders, in the name of whoever pressed, and one answer on the page; a later try says
    nothing twice."""
    stage.open()
    await stage.finds()
    stage.reviewer.fail_next("ensure_comment", ForgeUnavailable("a bad moment"), after=True)
    await press(stage, pressed(stage, action="queue-fixes"))
    stage.clock.move_to(stage.clock.now() + timedelta(hours=1))
    await work(stage)
    (order,) = await stage.orders()
    assert (order.ordered_by_login, order.source) == ("alice", "check:31")
    (said,) = stage.comments()
    assert "**F1**" in said


async def test_a_refused_order_says_why(stage: Stage) -> None:
    """Who may not write learns it where they pressed."""
    stage.open()
    await stage.finds()
    await press(stage, pressed(stage, by="mallory", action="queue-fixes"))
    assert [order.state for order in await stage.orders()] == [OrderState.REFUSED]
    (said,) = stage.comments()
    assert "write access" in said


async def test_explain_is_why(stage: Stage) -> None:
    """Each press is answered: things may stand differently by then."""
    stage.open()
    await stage.finds()
    await press(stage, pressed(stage, action="explain"))
    again = replace(pressed(stage, action="explain"), key="check:1:31:explain:d2")
    await press(stage, again)
    first, second = stage.comments()
    assert first
    assert second


@pytest.mark.parametrize("action", ["queue-fixes", "explain"])
async def test_machines_press_nothing(stage: Stage, action: str) -> None:
    """No order, no answer, and the ledger says why."""
    stage.open()
    await stage.finds()
    stage.world.permissions["scribe[bot]"] = Permission.WRITE
    await press(stage, pressed(stage, by="scribe[bot]", action=action))
    assert list(await stage.orders()) == []
    assert stage.reviewer.effects == []
    assert await decisions(stage) == [("refused", "not_human")]


async def test_every_button_of_ours_is_answered() -> None:
    """What a check run shows does something."""
    buttons = {button.identifier for button in (RE_REVIEW, QUEUE_FIXES, EXPLAIN)}
    assert buttons <= REVIEW_ACTIONS | SAID.keys()
