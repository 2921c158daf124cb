"""Doubt is settled by reading: what the coordinator looked at is known, and what it kept in doubt
without a look is sent back once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from app.agents.findings_xml import ParseOutcome
from app.agents.hedging import is_hedged
from app.agents.port import (
    AgentEvent,
    AgentResult,
    AgentTask,
    EventSink,
    ToolCalled,
    ToolError,
    ignore_events,
)
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.domain.runs import AgentName
from app.errors import AgentError
from app.review.conduct import conduct
from app.review.looked import looked_at
from app.review.reviewing import MemoryJournal
from tests.review.story import (
    BROKEN,
    NONSENSE,
    SEARCH,
    ScriptedModel,
    Speech,
    finding,
    findings,
    use,
)
from tests.review.test_bad_answers import report
from tests.review.test_conduct import brief

DOUBT = finding(body="This might possibly fail, please verify.")
PATCH = "diff/0001.patch"


@dataclass
class Looking(ScriptedModel):
    """Whose coordinator can look at files: `look` tells the events of it as a runtime does."""

    sink: EventSink = field(default=ignore_events)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        if task.agent is AgentName.COORDINATOR:
            self.sink = on_event
        return await super().run(task, on_event)

    async def looks(self, task: AgentTask) -> str:
        await self.sink(ToolCalled(task.key, "read_file", {"path": SEARCH}, 10, failed=False))
        return await self.judge(task)

    async def drops(self, task: AgentTask) -> str:
        await use(task, "spawn_reviewers")
        item = '<item source="security-1" reason="hedged">The source does not show it.</item>'
        return self.review(task, dropped=item)


def model(*coordinator: Speech, found: str = DOUBT) -> Looking:
    said = Looking({AgentName.SECURITY: [findings(found)]})
    said.answers[AgentName.COORDINATOR] = coordinator or (said.judge,)
    return said


async def test_doubt_without_a_look_is_sent_back_once() -> None:
    """The second time it is told which; what it then says counts."""
    asked = Looking({AgentName.SECURITY: [findings(DOUBT)]})
    asked.answers[AgentName.COORDINATOR] = [asked.judge, asked.drops]
    journal = MemoryJournal()
    conducted = await conduct(brief(AgentName.SECURITY), asked, journal, ignore_events)
    assert asked.calls == ["coordinator", "security", "coordinator"]
    assert "security-1, although their files" in asked.tasks[-1].prompt
    assert "security-1, although" not in asked.tasks[0].prompt
    assert [item.refs for item in conducted.review.dropped] == [("security-1",)]
    assert conducted.usage.model_calls == 3
    again = await conduct(brief(AgentName.SECURITY), asked, journal, ignore_events)
    assert (again.review, again.read) == (conducted.review, conducted.read)
    assert len(asked.calls) == 3


async def test_who_looked_is_not_asked_again() -> None:
    """A look settles it, and it is kept with the answer, also over a restart."""
    asked = Looking({AgentName.SECURITY: [findings(DOUBT)]})
    asked.answers[AgentName.COORDINATOR] = [asked.looks]
    journal, events = MemoryJournal(), list[AgentEvent]()

    async def sink(event: AgentEvent) -> None:
        events.append(event)

    conducted = await conduct(brief(AgentName.SECURITY), asked, journal, sink)
    assert asked.calls == ["coordinator", "security"]
    assert conducted.read == {SEARCH}
    assert [event.name for event in events if isinstance(event, ToolCalled)] == ["read_file"]
    again = await conduct(brief(AgentName.SECURITY), asked, journal, sink)
    assert again.read == {SEARCH}


async def test_a_sure_report_needs_no_second_question() -> None:
    """Nobody doubts it: the reviewer read its source."""
    asked = model(found=finding())
    conducted = await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
    assert asked.calls == ["coordinator", "security"]
    assert conducted.read == frozenset()


SECOND: list[Speech] = [NONSENSE, BROKEN]


@pytest.mark.parametrize("second", SECOND, ids=["nonsense", "provider-down"])
async def test_a_worse_second_answer_loses_nothing(second: Speech) -> None:
    """The first answer stands when the question about it comes to nothing."""
    asked = Looking({AgentName.SECURITY: [findings(DOUBT)]})
    asked.answers[AgentName.COORDINATOR] = [asked.judge, second]
    conducted = await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
    assert asked.calls.count("coordinator") == 2
    assert conducted.review.outcome is ParseOutcome.OK
    assert [item.refs for item in conducted.review.judged] == [("security-1",)]


async def test_an_unread_answer_is_not_sent_back_for_ever() -> None:
    """Twice in doubt and unread: it stays as it was reported."""
    asked = Looking({AgentName.SECURITY: [findings(DOUBT)]})
    conducted = await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
    assert asked.calls.count("coordinator") == 2
    assert [item.refs for item in conducted.review.judged] == [("security-1",)]


async def test_without_a_session_left_nothing_is_sent_back() -> None:
    """Unreadable answers have used them up."""
    asked = Looking({AgentName.SECURITY: [findings(DOUBT)]})
    asked.answers[AgentName.COORDINATOR] = [NONSENSE, NONSENSE, asked.judge, BROKEN]
    conducted = await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
    assert asked.calls.count("coordinator") == 3
    assert conducted.review.judged


def called(name: str, path: object, *, failed: bool = False) -> ToolCalled:
    return ToolCalled("coordinator", name, {"path": path}, 10, failed)


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        pytest.param(called("read_file", SEARCH), {SEARCH}, id="the-source"),
        pytest.param(called("read_file", f"./{SEARCH} "), {SEARCH}, id="in-another-form"),
        pytest.param(called("read_patch", SEARCH), {SEARCH}, id="the-patch"),
        pytest.param(called("read_patch", PATCH), {SEARCH}, id="the-patch-by-its-name"),
        pytest.param(called("grep", SEARCH), {SEARCH}, id="a-search-in-it"),
        pytest.param(called("grep", "app"), set(), id="a-search-around-it"),
        pytest.param(called("list", SEARCH), set(), id="a-list-shows-no-source"),
        pytest.param(called("read_file", SEARCH, failed=True), set(), id="a-failed-look"),
        pytest.param(called("read_file", "app/other.py"), set(), id="another-file"),
        pytest.param(called("read_file", ["x"]), set(), id="no-path"),
    ],
)
def test_a_look(event: AgentEvent, seen: set[str]) -> None:
    """Only what showed the file's own text counts as having looked at it."""
    assert looked_at(event, {SEARCH: PATCH}, {SEARCH}) == seen


@pytest.mark.parametrize(
    ("text", "hedged"),
    [
        pytest.param("This might be exploitable.", True, id="might-be"),
        pytest.param("Could potentially leak.", True, id="could-potentially"),
        pytest.param("I think the lock is not held.", True, id="i-think"),
        pytest.param("It is unclear whether callers check.", True, id="unclear"),
        pytest.param("Please verify the input is checked.", True, id="please-verify"),
        pytest.param("I could not confirm the caller.", True, id="could-not-confirm"),
        pytest.param("It seems to ignore errors.", True, id="seems-to"),
        pytest.param("`q` reaches the statement.", False, id="sure"),
        pytest.param("Any user can read any note.", False, id="can"),
        pytest.param("The `might_be_none()` helper returns None.", False, id="a-name"),
        pytest.param("The comment `this might be slow` is wrong.", False, id="quoted"),
        pytest.param("Runs in May and fails.", False, id="a-month"),
        pytest.param("The caller must check the result; it does not.", False, id="must-check"),
    ],
)
def test_doubt(text: str, hedged: bool) -> None:
    """Doubt is known by its words, and code is not words."""
    assert is_hedged(report("security-1", body=text)) is hedged


def test_doubt_is_marked_for_the_judge() -> None:
    """The coordinator is told which reports doubt themselves, and only those."""
    sure = report("security-1")
    doubtful = report("security-2", body="This might be slow.")
    outcome = ReviewerOutcome(AgentName.SECURITY, ParseOutcome.OK, (sure, doubtful))
    shown = render_reviewer_results([outcome])
    assert '<finding ref="security-1">' in shown
    assert '<finding ref="security-2" hedged="true">' in shown


async def test_reviewers_are_all_run_whichever_are_named() -> None:
    """Some, twice, or by names that do not exist: each reviewer of the tier runs once."""
    both = (AgentName.SECURITY, AgentName.CODE_QUALITY)
    asked = Looking({AgentName.SECURITY: [findings(finding())]})

    async def asks(task: AgentTask) -> str:
        first = await use(task, "spawn_reviewers", reviewers=["fashion"])
        assert await use(task, "spawn_reviewers", reviewers=["security"]) == first
        assert await use(task, "spawn_reviewers") == first
        assert 'name="code_quality"' in first
        return await asked.judge(task)

    asked.answers[AgentName.COORDINATOR] = [asks]
    await conduct(brief(*both), asked, MemoryJournal(), ignore_events)
    assert sorted(asked.calls) == ["code_quality", "coordinator", "security"]


async def test_a_call_that_cannot_be_read_is_no_call() -> None:
    """The reviewers run all the same, and the coordinator is asked again with their results."""
    asked = Looking({AgentName.SECURITY: [findings(finding())]})

    async def asks(task: AgentTask) -> str:
        with pytest.raises(ToolError):
            await use(task, "spawn_reviewers", reviewers=42)
        return asked.review(task)

    asked.answers[AgentName.COORDINATOR] = [asks, asked.judge]
    conducted = await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
    assert asked.calls == ["coordinator", "security", "coordinator"]
    assert 'ref="security-1"' in asked.tasks[-1].prompt
    assert [item.refs for item in conducted.review.judged] == [("security-1",)]


async def test_no_reviewer_is_lost_when_the_coordinator_only_fails() -> None:
    """A coordinator that cannot be asked ends the review by name, with no empty approval."""
    asked = model(BROKEN)
    with pytest.raises(AgentError, match="auth"):
        await conduct(brief(AgentName.SECURITY), asked, MemoryJournal(), ignore_events)
