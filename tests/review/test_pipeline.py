"""The review of one pull request, told as stories: what is on the page and in the ledger."""

from __future__ import annotations

import pytest

from app.agents.port import AgentTask
from app.domain.runs import AgentName, RunState, Trigger
from app.domain.tasks import ReviewerState
from loop_guards import FindingStatus, Origin, Verdict
from tests.review.story import (
    BASE,
    MACHINE,
    NOTHING,
    PERSON,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    use,
)

HEAD = {**BASE, SEARCH: PLANTED}
REPAIRED = {**BASE, SEARCH: b"def search(q):\n    return db.run('select ?', q)\n"}
ELSEWHERE = {**HEAD, "README.md": b"# Shop\nSearch works.\n"}
STARTED = "check in_progress: Reviewing"


async def reviewed(story: Story) -> None:
    """The first review found F1."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding()), NOTHING]}
    await story.review()
    story.page()


async def test_a_first_review_is_told_once_and_stored(story: Story) -> None:
    """One review with its comment, one status, the check from start to end; nothing else."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    charged: list[object] = []

    async def look(task: AgentTask) -> None:
        charged.append((await story.last_run()).charged_at)

    story.model.before = look
    await story.review()
    assert story.page() == [
        STARTED,
        "review COMMENT [app/search.py:2]",
        "status",
        "check neutral: Significant concerns: 1 critical",
    ]
    assert story.model.calls == ["coordinator", "general"]
    assert None not in charged, "a round is charged before its first model call"
    [row] = await story.findings()
    assert (row.short_id, row.origin, row.status) == ("F1", Origin.ORIGINAL, FindingStatus.OPEN)
    assert row.code == PLANTED.decode().splitlines()[1]
    assert row.fingerprint
    assert row.thread_id is not None
    run = await story.last_run()
    assert (run.state, run.verdict) == (RunState.DONE, Verdict.SIGNIFICANT_CONCERNS)
    assert (run.round_number, run.model_calls, run.blocking) == (1, 2, [row.id])
    assert await story.spent() == (2, 200)
    assert await story.sessions() == 2
    [reviewer] = await story.reviewer_runs()
    assert (reviewer.agent, reviewer.state, reviewer.findings_count, reviewer.model_calls) == (
        *(AgentName.GENERAL, ReviewerState.OK),
        *(1, 1),
    )
    assert await story.decisions() == [
        ("review_start", "review", "requested"),
        ("verdict", "significant_concerns", "critical"),
    ]


async def test_a_clean_change_is_approved_in_one_line(story: Story) -> None:
    """Nothing found: the check is green, and the review needs no comment."""
    story.open_pull(HEAD)
    await story.review()
    assert story.page() == [
        STARTED,
        "review COMMENT []",
        "status",
        "check success: Approved: no findings",
    ]
    assert await story.findings() == []


async def test_a_finding_repaired_by_a_push_is_resolved(story: Story) -> None:
    """The reviewer's word and a change of its file: fixed, and its thread is resolved."""
    await reviewed(story)
    story.push(REPAIRED)
    story.model.carried = {"F1": "fixed"}
    await story.review(action="synchronize")
    assert story.page() == [
        STARTED,
        "review COMMENT []",
        "resolve",
        "status",
        "check success: Approved: 1 fixed",
    ]
    [row] = await story.findings()
    assert (row.status, row.fixed_sha) == (FindingStatus.FIXED, story.pull.head_sha)
    assert story.open_threads == []
    assert (await story.last_run()).round_number == 2


async def test_a_word_without_a_change_fixes_nothing(story: Story) -> None:
    """Called fixed, but its file did not change: it stays open, and no second review says so."""
    await reviewed(story)
    story.push(ELSEWHERE)
    story.model.carried = {"F1": "fixed"}
    await story.review(action="synchronize")
    assert story.page() == [STARTED, "status", "check neutral: Significant concerns: 1 critical"]
    [row] = await story.findings()
    assert (row.status, row.last_seen_sha) == (FindingStatus.OPEN, story.pull.head_sha)
    assert story.open_threads == [(SEARCH, 2)]


async def test_a_finding_that_stays_is_not_said_twice(story: Story) -> None:
    """Raised again as if it were new, it is the finding that is known."""
    await reviewed(story)
    story.push(ELSEWHERE)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    await story.review(action="synchronize")
    assert story.page() == [STARTED, "status", "check neutral: Significant concerns: 1 critical"]
    assert [row.short_id for row in await story.findings()] == ["F1"]


async def test_a_new_finding_gets_the_next_number(story: Story) -> None:
    """Numbers are never used twice, and only the new one is commented."""
    await reviewed(story)
    story.push({**HEAD, "app/other.py": b"limit = None\n"})
    new = finding(path="app/other.py", line=1, severity="warning", title="No limit")
    story.model.answers = {AgentName.GENERAL: [findings(new)]}
    await story.review(action="synchronize")
    assert "review COMMENT [app/other.py:1]" in story.page()
    rows = await story.findings()
    assert [(row.short_id, row.path) for row in rows] == [("F1", SEARCH), ("F2", "app/other.py")]


async def test_a_later_review_knows_the_earlier_one(story: Story) -> None:
    """The second round's prompt names the open finding, its thread's answer and its own number."""
    await reviewed(story)
    thread = story.world.pull(*story.place).threads[0]
    story.world.reply(thread, story.pull.author, "It is on purpose.")
    story.push(ELSEWHERE)
    await story.review(action="synchronize")
    [prompt] = [task.prompt for task in story.model.tasks[2:] if "coordinator" in task.key]
    assert 'id="F1"' in prompt
    assert "It is on purpose." in prompt
    assert "Read." in prompt


async def test_a_person_may_ask_for_the_same_head_again(story: Story) -> None:
    """What was fixed in an earlier round is not announced as fixed again."""
    await reviewed(story)
    story.push(REPAIRED)
    story.model.carried = {"F1": "fixed"}
    await story.review(action="synchronize")
    story.page()
    await story.review(trigger=Trigger.COMMAND)
    assert story.page() == [STARTED, "status", "check success: Approved: no findings"]


async def test_agents_read_the_change_by_their_tools(story: Story) -> None:
    """Patch, file and search answer from the reviewed head."""
    story.open_pull(HEAD)
    seen: list[str] = []

    async def reads(task: AgentTask) -> str:
        seen.append(await use(task, "read_patch", path=SEARCH))
        seen.append(await use(task, "read_file", path=SEARCH))
        seen.append(await use(task, "grep", pattern="db.run"))
        return NOTHING

    story.model.answers = {AgentName.GENERAL: [reads]}
    await story.review()
    assert all("db.run" in answer for answer in seen)


@pytest.mark.parametrize(
    ("action", "rounds"),
    [
        pytest.param("synchronize", 0, id="a push"),
        pytest.param("created", 0, id="a command"),
        pytest.param("reopened", 1, id="a reopening"),
        pytest.param("edited", 1, id="a new base"),
    ],
)
async def test_which_acts_end_a_ping_pong(story: Story, action: str, rounds: int) -> None:
    """Machines' rounds are counted from a person's last open, push or command; other acts of
    persons are reviewed, and count anew for nobody."""
    story.open_pull(HEAD)
    await story.review(MACHINE)
    assert (await story.row()).machine_rounds == 1
    story.push(ELSEWHERE)
    await story.review(PERSON, action=action)
    assert (await story.row()).machine_rounds == rounds
