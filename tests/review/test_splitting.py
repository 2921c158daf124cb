"""What is too much for one answer is read in halves, within the sessions that an agent has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.findings_xml import ParseOutcome
from app.agents.port import (
    AgentErrorKind,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelCallFinished,
    ModelRef,
    ignore_events,
)
from app.agents.prompt_context import ChangedFile
from app.agents.reviewer_results import ReviewerOutcome
from app.agents.splitting import halves_of, unread_after, with_halves
from app.domain.findings import Location
from app.domain.runs import AgentName, Usage
from app.review.conduct import Conducted, conduct
from app.review.reviewing import Brief, MemoryJournal
from tests.review.story import SESSION, ScriptedModel, finding, findings
from tests.review.test_bad_answers import report
from tests.review.test_conduct import brief

FILES = ("a.py", "b.py", "c.py", "d.py")
MODEL = ModelRef("anthropic", "claude-sonnet-4-6")
OVERFLOW = AgentFailure(AgentErrorKind.CONTEXT_OVERFLOW, "the prompt is too long")


def changed(path: str) -> ChangedFile:
    return ChangedFile(path, "modified", 1, 0, f"diff/{path}.patch")


def wide(*reviewers: AgentName, files: tuple[str, ...] = FILES) -> Brief:
    narrow = brief(*reviewers)
    context = replace(narrow.context, changed_files=tuple(map(changed, files)))
    return replace(narrow, context=context, known_paths=frozenset(files))


def found(path: str, title: str = "Trouble") -> str:
    return finding(path=path, title=title)


def cut(*items: str) -> AgentResult:
    """An answer that ends in the middle of a finding."""
    text = f"<findings>{''.join(items)}<finding><path>a"
    return AgentResult(text, SESSION, FinishReason.LENGTH, None, MODEL)


def whole(*items: str) -> AgentResult:
    return AgentResult(findings(*items), SESSION, FinishReason.STOP, None, MODEL)


def overflows() -> AgentResult:
    return AgentResult("", SESSION, FinishReason.ERROR, OVERFLOW, MODEL)


@dataclass
class Cutting(ScriptedModel):
    """Whose reviewers answer one after the other, session by session."""

    sessions: list[AgentResult] = field(default_factory=list)
    asked: list[AgentTask] = field(default_factory=list)

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        if task.agent is AgentName.COORDINATOR:
            return await super().run(task, on_event)
        self.asked.append(task)
        return self.sessions.pop(0)

    def files(self) -> list[set[str]]:
        """The files that each session was given."""
        return [{one for one in FILES if f"diff/{one}.patch" in t.prompt} for t in self.asked]


async def review(model: Cutting, journal: MemoryJournal | None = None) -> Conducted:
    return await conduct(wide(AgentName.SECURITY), model, journal or MemoryJournal(), ignore_events)


def titles(conducted: Conducted) -> list[tuple[str, str]]:
    return [(item.ref, item.title) for item in conducted.reported]


async def test_what_no_window_holds_is_read_in_halves() -> None:
    """Both halves come to a whole: nothing is missing, and each reference is there once."""
    model = Cutting(sessions=[overflows(), whole(found("a.py", "A")), whole(found("c.py", "C"))])
    conducted = await review(model)
    assert model.files() == [set(FILES), {"a.py", "b.py"}, {"c.py", "d.py"}]
    assert titles(conducted) == [("security-1", "A"), ("security-2", "C")]
    assert (conducted.incomplete, conducted.unread) == ((), frozenset())
    assert conducted.outcomes[0].sessions == 3


async def test_an_answer_cut_off_twice_is_split_within_the_ration() -> None:
    """More room first; then the half of which least is known. What nobody read is named."""
    model = Cutting(sessions=[cut(found("a.py", "A")), cut(found("a.py", "A")), whole()])
    conducted = await review(model)
    first, second, third = model.asked
    assert second.limits.max_output_tokens == 2 * first.limits.max_output_tokens
    assert third.limits.max_output_tokens == first.limits.max_output_tokens
    assert model.files() == [set(FILES), set(FILES), {"b.py", "c.py"}]
    assert titles(conducted) == [("security-1", "A")]
    assert conducted.incomplete == ("security",)
    assert conducted.unread == {"d.py"}


async def test_a_file_is_unread_only_if_nobody_read_it() -> None:
    """One reviewer that was cut off is named; what another has read was read."""
    model = Cutting(sessions=[whole(), cut(), cut(), whole()])

    async def run(task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        if task.agent is AgentName.CODE_QUALITY:
            return whole()
        return await Cutting.run(model, task, on_event)

    model.sessions.pop(0)

    class Two:
        async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
            return await run(task, on_event)

    both = wide(AgentName.SECURITY, AgentName.CODE_QUALITY)
    conducted = await conduct(both, Two(), MemoryJournal(), ignore_events)
    assert conducted.incomplete == ("security",)
    assert conducted.unread == frozenset()


async def test_a_half_takes_no_session_of_a_later_part() -> None:
    """A change in parts: the first part's halves get what the second can spare, and no more."""
    parts = (frozenset({"a.py", "b.py"}), frozenset({"c.py", "d.py"}))
    model = Cutting(sessions=[overflows(), whole(found("a.py", "A")), whole(found("c.py", "C"))])
    large = replace(wide(AgentName.SECURITY), parts=parts)
    conducted = await conduct(large, model, MemoryJournal(), ignore_events)
    assert model.files() == [{"a.py", "b.py"}, {"a.py"}, {"c.py", "d.py"}]
    assert titles(conducted) == [("security-1", "A"), ("security-2", "C")]
    assert conducted.incomplete == ("security",)
    assert conducted.unread == {"b.py"}


async def test_nothing_is_split_with_too_little_time_left() -> None:
    """Two minutes are the least that a session begins with."""
    spent = Usage(model_calls=1, model_seconds=200.0)
    late = replace(overflows(), usage=spent)

    @dataclass
    class Slow(Cutting):
        async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
            answer = await super().run(task, on_event)
            if task.agent is not AgentName.COORDINATOR:
                await on_event(ModelCallFinished(task.key, 1, MODEL, answer.usage))
            return answer

    model = Slow(sessions=[late])
    model.sessions.append(whole())
    both = wide(AgentName.SECURITY, AgentName.CODE_QUALITY)
    conducted = await conduct(both, model, MemoryJournal(), ignore_events)
    assert [task.agent for task in model.asked] == [AgentName.SECURITY, AgentName.CODE_QUALITY]
    assert conducted.incomplete == ("security",)


async def test_a_single_file_is_not_split() -> None:
    """There is nothing to halve: what was read is kept, and it is said that it is not all."""
    model = Cutting(sessions=[cut(found("a.py")), cut(found("a.py"))])
    one = wide(AgentName.SECURITY, files=("a.py",))
    conducted = await conduct(one, model, MemoryJournal(), ignore_events)
    assert len(model.asked) == 2
    assert (conducted.incomplete, len(conducted.reported)) == (("security",), 1)


class Dies(BaseException):
    """The worker is gone."""


@dataclass
class Mortal(MemoryJournal):
    """Whose worker dies just before, or right after, this step is kept."""

    step: str = ""
    after: bool = False

    async def record(self, name: str, result: object = None) -> None:
        if name == self.step and not self.after:
            raise Dies
        await super().record(name, result)
        if name == self.step:
            raise Dies


PAID = {
    ("reviewer:security", True): [{"a.py", "b.py"}, {"c.py", "d.py"}],
    ("reviewer:security:half-1", True): [{"c.py", "d.py"}],
    ("reviewer:security:half-2", True): [],
    ("coordinator", False): [],
}


@pytest.mark.parametrize(("death", "again"), PAID.items(), ids=[step for step, _ in PAID])
async def test_a_restart_pays_for_no_half_twice(
    death: tuple[str, bool], again: list[set[str]]
) -> None:
    """Another worker asks only for what was not kept, and comes to the same."""
    journal = Mortal(step=death[0], after=death[1])
    halves = [whole(found("a.py", "A")), whole(found("c.py", "C"))]
    with pytest.raises(Dies):
        await review(Cutting(sessions=[overflows(), *halves]), journal)
    left = Cutting(sessions=halves[len(halves) - len(again) :])
    conducted = await review(left, MemoryJournal(dict(journal.kept)))
    assert left.files() == again
    assert titles(conducted) == [("security-1", "A"), ("security-2", "C")]
    assert (conducted.incomplete, conducted.unread) == ((), frozenset())


async def test_a_half_that_a_death_used_up_is_named() -> None:
    """Its session was paid for and is lost: its files are unread, and that is said."""
    journal = Mortal(step="reviewer:security:half-2", after=False)
    halves = [whole(found("a.py", "A")), whole(found("c.py", "C"))]
    with pytest.raises(Dies):
        await review(Cutting(sessions=[overflows(), *halves]), journal)
    left = Cutting()
    conducted = await review(left, MemoryJournal(dict(journal.kept)))
    assert left.asked == []
    assert titles(conducted) == [("security-1", "A")]
    assert conducted.incomplete == ("security",)
    assert conducted.unread == {"c.py", "d.py"}


def outcome(status: ParseOutcome, reason: str = "", *paths: str) -> ReviewerOutcome:
    said = tuple(
        report(f"security-{n}", location=Location(path, n), title=f"T {path} {n}")
        for n, path in enumerate(paths, start=1)
    )
    return ReviewerOutcome(AgentName.SECURITY, status, said, reason, Usage(), MODEL, 1)


@pytest.mark.parametrize(
    ("given", "halves", "unread"),
    [
        pytest.param(outcome(ParseOutcome.OK), 0, 0, id="whole"),
        pytest.param(outcome(ParseOutcome.PARTIAL, "length", "a.py"), 2, 3, id="cut-off"),
        pytest.param(outcome(ParseOutcome.PARTIAL, "length", *FILES), 2, 0, id="of-all-it-spoke"),
        pytest.param(outcome(ParseOutcome.FAILED, "context_overflow"), 2, 4, id="too-large"),
        pytest.param(outcome(ParseOutcome.FAILED, "timeout"), 0, 4, id="too-slow"),
        pytest.param(outcome(ParseOutcome.FAILED, "malformed"), 0, 4, id="unreadable"),
        pytest.param(outcome(ParseOutcome.PARTIAL, "incomplete", "a.py"), 0, 0, id="a-bad-finding"),
    ],
)
def test_who_is_split(given: ReviewerOutcome, halves: int, unread: int) -> None:
    """Only what was too much is split; half the files help nobody who failed otherwise."""
    context = wide(AgentName.SECURITY).context
    assert len(halves_of(context, given)) == halves
    assert len(unread_after(context, given)) == unread


PATHS = st.lists(st.sampled_from([f"f{n}.py" for n in range(9)]), unique=True, min_size=2)


@given(paths=PATHS, spoken=PATHS, states=st.lists(st.sampled_from(ParseOutcome), max_size=2))
def test_halves_are_the_whole(
    paths: list[str], spoken: list[str], states: list[ParseOutcome]
) -> None:
    """Each file is in one half, neither is empty, those nobody spoke of come first, references
    are unique, no finding is lost, and it is whole only if both halves are."""
    context = replace(wide(AgentName.SECURITY).context, changed_files=tuple(map(changed, paths)))
    first = outcome(ParseOutcome.PARTIAL, "length", *spoken)
    one, two = halves_of(context, first)
    ordered = [file.path for file in (*one.changed_files, *two.changed_files)]
    assert sorted(ordered) == sorted(paths)
    assert one.changed_files
    assert two.changed_files
    assert [path in spoken for path in ordered] == sorted(path in spoken for path in paths)
    joined = with_halves(first, [outcome(state, "", "f0.py", "f1.py") for state in states])
    refs = [item.ref for item in joined.findings]
    assert len(refs) == len(set(refs))
    assert {item.title for item in first.findings} <= {item.title for item in joined.findings}
    complete = states == [ParseOutcome.OK] * 2
    assert (joined.status is ParseOutcome.OK) is complete
