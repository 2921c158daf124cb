"""Caps on what models cost: held before a run begins, told once, and never overdrawn."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from sqlmodel import select

from app.agents.port import AgentTask, ModelCallFinished, ModelRef, ignore_events
from app.cli.spend import show
from app.control.routing import shipped_routing
from app.domain.policy import Policy, SpendCaps
from app.domain.runs import AgentName, Booked, RunState, Tier, Trigger, Usage
from app.domain.spend import Period, Standing
from app.errors import UserError
from app.review.spending import CappedRuntime, Spending, caps_of, cheaper
from app.store.session import Store
from app.store.spend import Cap, book_spend, hold
from app.store.tables import JobStep, Repository, ReviewRun, SpendDay, SpendNotice
from app.telemetry.cost import Tokens
from tests.review.story import BASE, NOTHING, PLANTED, SEARCH, START, ScriptedModel, Story
from tests.store.rows import REPOSITORY, add_pull_request, add_repository

HEAD = {**BASE, SEARCH: PLANTED}
DAY = Cap(installation=False, period=Period.DAY, dollars=Decimal(10))


def five_dollars(tokens: Tokens, *, provider: str, model: str) -> Decimal | None:
    """Every agent's part of an estimate costs as much: the coordinator's and one reviewer's."""
    del tokens, provider
    return Decimal("2.5") if "opus" not in model else Decimal(5)


async def used(story: Story, dollars: str) -> None:
    async with story.store.write() as session:
        item = Booked(usage=Usage(model_calls=1, cost_usd=Decimal(dollars)))
        await book_spend(session, REPOSITORY, [item], now=story.clock.now())


def capped(story: Story, policy: str = "spend:\n  day_usd: 10\n", **caps: float) -> None:
    story.policy(policy)
    story.services = replace(
        story.services, price=five_dollars, installation_caps=SpendCaps(**caps)
    )


async def test_what_calls_cost_is_booked_by_day(story: Story) -> None:
    """Two sessions of a cent each; a call without a price counts in tokens."""
    story.open_pull(HEAD)
    await story.review()
    (day,) = await story.rows(SpendDay)
    assert (day.repository_id, day.day, day.micro_dollars) == (REPOSITORY, "2026-03-01", 20_000)
    async with story.store.write() as session:
        unknown = Usage(model_calls=1, input_tokens=70, output_tokens=7, cost_usd=None)
        await book_spend(session, REPOSITORY, [Booked(usage=unknown)], now=story.clock.now())
    (day,) = await story.rows(SpendDay)
    assert (day.micro_dollars, day.unpriced_tokens) == (20_000, 77)


@pytest.mark.parametrize(
    ("before", "policy", "caps", "title"),
    [
        pytest.param("0", "spend: {day_usd: 10}\n", {}, "Approved: no findings", id="enough"),
        pytest.param("6", "spend: {day_usd: 10}\n", {}, "Not reviewed: spend cap", id="day"),
        pytest.param("6", "spend: {month_usd: 10}\n", {}, "Not reviewed: spend cap", id="month"),
        pytest.param(
            "6",
            "human_prs: advise\n",
            {"day_usd": 10},
            "Not reviewed: spend cap",
            id="installation",
        ),
        pytest.param("6", "human_prs: advise\n", {}, "Approved: no findings", id="no-cap"),
        pytest.param("0", "spend: {day_usd: 0}\n", {}, "Not reviewed: spend cap", id="nothing"),
    ],
)
async def test_a_run_that_might_not_fit_is_not_begun(
    story: Story, before: str, policy: str, caps: dict[str, float], title: str
) -> None:
    """No model is asked, the check says which cap it is, and a day later it fits again."""
    capped(story, policy, **caps)
    await used(story, before)
    story.open_pull(HEAD)
    await story.review()
    assert story.check.title == title
    if title.startswith("Not"):
        assert story.model.calls == []
        assert "cap of $" in story.check.summary
        run = await story.last_run()
        assert (run.state, run.reason, run.reserved_micro) == (RunState.SKIPPED, "spend_cap", 0)


async def test_behind_a_gate_it_asks_for_action(story: Story) -> None:
    """Neutral would pass: money must not be a way around a review."""
    capped(story, "human_prs: gate\nspend: {day_usd: 1}\n")
    story.open_pull(HEAD)
    await story.review()
    assert story.check.conclusion == "action_required"


async def test_little_left_means_cheaper_models(story: Story) -> None:
    """A full review whose coordinator would run on the top chain runs on the standard one, says
    so, and what it held is free again when it is over."""
    capped(story, "spend: {day_usd: 100}\n")
    await used(story, "81")
    story.open_pull({**HEAD, "app/auth/login.py": b"x = 1\n"})
    await story.review()
    asked = {task.agent.value: task.models[0] for task in story.model.tasks}
    assert asked["coordinator"] == ModelRef("anthropic", "claude-sonnet-4-6")
    assert "this review ran on cheaper models" in story.bodies[-1]
    run = await story.last_run()
    assert run.reserved_micro > 0
    assert run.state is RunState.DONE


async def test_a_mark_is_told_once(story: Story) -> None:
    """Half of the cap: in the next review and in no other of that day; the highest mark alone."""
    capped(story, "spend: {day_usd: 100}\n")
    await used(story, "76")
    for number in (7, 8):
        story.open_pull(HEAD, number=number)
        await story.review()
        told = "75 % of the day's cap of $100.0 for this repository is used" in story.bodies[-1]
        assert told is (number == 7)
    assert sorted(row.percent for row in await story.rows(SpendNotice)) == [50, 75]


@pytest.mark.parametrize(
    ("left", "agent", "begins"),
    [
        pytest.param("10", "security", True, id="something-left"),
        pytest.param("5", "security", False, id="reached"),
        pytest.param("5", "coordinator", True, id="what-there-is-is-judged"),
        pytest.param(None, "security", True, id="no-cap"),
    ],
)
async def test_a_cap_that_is_reached_on_the_way_stops_reviewers(
    left: str | None, agent: str, begins: bool
) -> None:
    """Who has not begun does not begin, and is named in the review like any that failed; the
    coordinator goes on, so that what was paid for is not lost."""
    model = ScriptedModel(answers={AgentName(agent): ["<findings/>"]})
    spending = Spending(Decimal(left) if left else None)
    sink = spending.watching(ignore_events)
    ref = ModelRef("p", "m")
    await sink(ModelCallFinished("x", 1, ref, Usage(model_calls=1, cost_usd=Decimal(5))))
    runtime = CappedRuntime(model, lambda: spending.is_over)
    result = await runtime.run(AgentTask(AgentName(agent), "s", "p", (ref,)))
    assert (result.error is None) is begins
    assert bool(model.calls) is begins


async def test_a_restart_asks_for_the_money_once(story: Story) -> None:
    """The worker died after its run held its part: the next one goes on with the same answer."""
    capped(story, "spend: {day_usd: 10}\n")
    story.open_pull(HEAD)
    await story.ask()
    story.forge.kills.add(("ensure_check_run", True))
    await story.recover()
    held = (await story.last_run()).reserved_micro
    await story.recover()
    run = await story.last_run()
    assert (run.state, run.reserved_micro) == (RunState.DONE, held)


async def test_what_a_try_used_is_gone_for_the_next(story: Story) -> None:
    """Three of four reviewers had used the whole day when the worker died: the fourth, that it
    took along, does not begin again."""
    story.policy("spend: {day_usd: 0.03}\n")
    story.services = replace(story.services, price=lambda *_, **__: Decimal(0))
    story.open_pull({**BASE, "app/auth/login.py": PLANTED})
    others = {f"reviewer:{one}" for one in ("security", "performance", "documentation")}

    async def dies(task: AgentTask) -> str:
        async with asyncio.timeout(5):
            while not {step.name for step in await story.rows(JobStep)} >= others:  # noqa: ASYNC110  # the database tells nobody when it changes
                await asyncio.sleep(0.01)
        raise asyncio.CancelledError

    story.model.answers = {AgentName.CODE_QUALITY: [dies, NOTHING]}
    await story.review()
    await story.recover()
    run = await story.last_run()
    assert (run.state, run.incomplete) == (RunState.DONE, ["code_quality"])
    assert story.model.calls.count("code_quality") == 1


async def test_two_runs_never_hold_the_same_money(store: Store) -> None:
    """On both databases: of two that begin at the same moment, one fits."""
    async with store.write() as session:
        repository = await add_repository(session)
        pull = await add_pull_request(session)
        runs = [
            ReviewRun(
                pull_request_id=pull.id,
                head_sha=str(n),
                trigger=Trigger.WEBHOOK,
                state=RunState.RUNNING,
                created_at=START,
            )
            for n in range(6)
        ]
        session.add_all(runs)
        await session.flush()
        ids, number = [run.id for run in runs], repository.id

    async def begin(run_id: int) -> Standing:
        async with store.write() as session:
            run = await session.get_one(ReviewRun, run_id)
            place = await session.get_one(Repository, number)
            held = await hold(session, run, place, [DAY], (Decimal(6), Decimal(6)), now=START)
            await asyncio.sleep(0.01)
            return held.standing

    answers = await asyncio.gather(*(begin(run_id) for run_id in ids))
    assert sorted(answer is Standing.SPENT for answer in answers) == [False] + [True] * 5
    async with store.read() as session:
        held = (await session.exec(select(ReviewRun.reserved_micro))).all()
    assert sum(held) == 6_000_000


def test_caps_that_are_set() -> None:
    """A cap of nothing is a cap; none is none."""
    caps = caps_of(SpendCaps(day_usd=0), SpendCaps(month_usd=12.5))
    assert [(cap.installation, cap.period, cap.dollars) for cap in caps] == [
        (False, Period.DAY, Decimal("0.0")),
        (True, Period.MONTH, Decimal("12.5")),
    ]
    assert caps_of(Policy().spend, SpendCaps()) == ()


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("agent", ["coordinator", "security", "release", "general"])
def test_cheaper_is_one_step_down_the_same_table(tier: Tier, agent: str) -> None:
    """Nobody gets a model that the table does not have, and nobody a dearer chain."""
    routing = shipped_routing("anthropic")
    order = ["top", "standard", "light"]
    chains = [routing.chains[name].models for name in order]
    before = chains.index(routing.chain_for(AgentName(agent), tier).models)
    after = chains.index(cheaper(routing).chain_for(AgentName(agent), tier).models)
    assert after >= before


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("sqlite:///{0}/new.db", "run `mergeward db upgrade`", id="no-tables"),
        pytest.param(
            "postgresql://u:secret@127.0.0.1:1/x",
            r"postgresql\S+u:\*\*\*@127.0.0.1:1/x does not answer",
            id="nobody-there",
        ),
    ],
)
def test_a_database_that_cannot_be_asked(
    url: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy, or the place without its password; no traceback."""
    monkeypatch.setenv("MERGEWARD_DATABASE_URL", url.format(tmp_path))
    with pytest.raises(UserError, match=words):
        show(None, as_json=False, out=io.StringIO())


async def test_what_was_spent_can_be_asked_for(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By repository, today and this month, for people and machines; one that used nothing is
    named."""
    monkeypatch.setenv("MERGEWARD_DATABASE_URL", f"sqlite:///{story.folder}/ledger.db")
    now = datetime.now(UTC)
    async with story.store.write() as session:
        item = Booked(usage=Usage(model_calls=1, cost_usd=Decimal("1.5")))
        await book_spend(session, REPOSITORY, [item], now=now)
    out, raw = io.StringIO(), io.StringIO()
    await asyncio.to_thread(lambda: show(None, as_json=False, out=out))
    await asyncio.to_thread(lambda: show("Acme/Shop", as_json=True, out=raw))
    assert "acme/shop" in out.getvalue()
    assert "$1.50" in out.getvalue()
    assert json.loads(raw.getvalue())[0]["day_usd"] == "1.5"
    with pytest.raises(UserError, match="acme/other has used nothing"):
        await asyncio.to_thread(lambda: show("acme/other", as_json=False, out=out))
