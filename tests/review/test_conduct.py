"""Conducting a review's agents: what finished is kept, what is lost ends, nothing runs on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.agents.port import AgentTask, ModelRef, ignore_events
from app.agents.prompt_context import ChangedFile, PromptContext
from app.agents.rationed import SESSIONS_PER_AGENT
from app.agents.workspace import Workspace
from app.domain.runs import AgentName
from app.errors import AgentError, LeaseLost
from app.review.conduct import conduct
from app.review.reviewing import Brief, MemoryJournal
from tests.review.factories import EmptyTree
from tests.review.story import (
    NONSENSE,
    NOTHING,
    SEARCH,
    SESSION,
    ScriptedModel,
    finding,
    findings,
    use,
)

TWO = (AgentName.SECURITY, AgentName.CODE_QUALITY)
MODEL = ModelRef("anthropic", "claude-sonnet-4-6")


def brief(*reviewers: AgentName) -> Brief:
    context = PromptContext(
        repository="acme/shop",
        number=7,
        title="Search",
        body="",
        author="mara",
        base_ref="main",
        base_sha="a" * 40,
        head_ref="feature",
        head_sha="b" * 40,
        changed_files=(ChangedFile(SEARCH, "modified", 1, 0, "diff/0001.patch"),),
    )
    return Brief(
        context=context,
        workspace=Workspace(tree=EmptyTree()),
        reviewers=reviewers,
        models=lambda agent: (MODEL,),
        known_paths=frozenset({SEARCH}),
    )


async def test_everything_that_was_said_and_used_is_told() -> None:
    """Findings, usage of all sessions, models and prompt versions."""
    model = ScriptedModel({AgentName.SECURITY: [findings(finding())]})
    conducted = await conduct(brief(*TWO), model, MemoryJournal(), ignore_events)
    assert [item.ref for item in conducted.reported] == ["security-1"]
    assert conducted.usage == SESSION + SESSION + SESSION
    assert conducted.models == (str(MODEL),)
    assert set(conducted.prompt_versions) == {"coordinator", "security", "code_quality"}
    assert conducted.incomplete == ()


async def test_a_finished_review_costs_nothing_again() -> None:
    """With its journal, a second conduct asks nobody and comes to the same."""
    model = ScriptedModel({AgentName.SECURITY: [findings(finding())]})
    journal = MemoryJournal()
    first = await conduct(brief(*TWO), model, journal, ignore_events)
    again = await conduct(brief(*TWO), ScriptedModel(), journal, ignore_events)
    assert len(model.calls) == 3
    assert (again.reported, again.review, again.usage) == (
        first.reported,
        first.review,
        first.usage,
    )


async def test_a_session_that_leaves_its_tool_waiting_is_no_end() -> None:
    """The coordinator's session ends while its reviewers work; asked again, it gets them all.

    The one that had finished is not asked a second time.
    """
    model = ScriptedModel()
    journal = MemoryJournal()

    async def leaves(task: AgentTask) -> str:
        waiting = asyncio.ensure_future(use(task, "spawn_reviewers"))
        async with asyncio.timeout(5):
            while not journal.has("reviewer:security"):  # noqa: ASYNC110  # a journal tells nobody
                await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return NONSENSE

    async def slow_once(task: AgentTask) -> str:
        if model.calls.count("code_quality") == 1:
            await asyncio.sleep(60)
        return NOTHING

    model.answers = {
        AgentName.COORDINATOR: [leaves, model.judge],
        AgentName.SECURITY: [findings(finding())],
        AgentName.CODE_QUALITY: [slow_once],
    }
    conducted = await conduct(brief(*TWO), model, journal, ignore_events)
    assert [item.ref for item in conducted.reported] == ["security-1"]
    assert model.calls.count("security") == 1
    assert model.calls.count("code_quality") == 2


class LostJournal(MemoryJournal):
    """Whose job belongs to another worker when the first reviewer has finished."""

    async def record(self, name: str, result: Any = None) -> None:
        if name.startswith("reviewer:"):
            raise LeaseLost("another worker has it")


async def test_a_lost_job_stops_every_session() -> None:
    """Nobody pays for reviewers whose results cannot be kept."""
    ended: list[str] = []

    async def long(task: AgentTask) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(task.key)
            raise
        return NOTHING

    model = ScriptedModel({AgentName.CODE_QUALITY: [long]})
    with pytest.raises(LeaseLost):
        await conduct(brief(*TWO), model, LostJournal(), ignore_events)
    assert ended == ["code_quality"]


async def test_a_coordinator_that_never_answers_names_its_reason() -> None:
    """Nonsense to the end is an error, not an empty review."""
    model = ScriptedModel({AgentName.COORDINATOR: [NONSENSE]})
    with pytest.raises(AgentError, match="no usable answer"):
        await conduct(brief(AgentName.GENERAL), model, MemoryJournal(), ignore_events)
    assert model.calls.count("general") == 1
    assert model.calls.count("coordinator") == SESSIONS_PER_AGENT


async def test_no_restart_gives_an_agent_more_sessions_than_it_may_have() -> None:
    """Deaths in the middle of a session use it up: the round costs no more for them."""
    journal = MemoryJournal()

    async def dies(task: AgentTask) -> str:
        raise asyncio.CancelledError

    model = ScriptedModel({AgentName.COORDINATOR: [dies]})
    for _ in range(SESSIONS_PER_AGENT):
        with pytest.raises(asyncio.CancelledError):
            await conduct(brief(AgentName.GENERAL), model, journal, ignore_events)
    with pytest.raises(AgentError, match="limit"):
        await conduct(brief(AgentName.GENERAL), model, journal, ignore_events)
    assert model.calls.count("coordinator") == SESSIONS_PER_AGENT
