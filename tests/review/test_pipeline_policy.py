"""What the repository's policy does to a review: fallbacks, modes, and files nobody may see."""

from __future__ import annotations

import pytest

from app.agents.port import AgentTask, ToolError
from app.domain.effects import CheckConclusion
from app.domain.jobs import JobKind
from app.domain.runs import AgentName, RunState
from app.errors import ForgeForbidden
from app.store.tables import FixTask
from loop_guards import Severity, TaskState
from tests.review.story import (
    BASE,
    BROKEN,
    NOTHING,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
    use,
)

HEAD = {**BASE, SEARCH: PLANTED}
REPAIRED = {**BASE, SEARCH: b"def search(q):\n    return db.run('select ?', q)\n"}
STARTED = "check in_progress: Reviewing"
KEY = b"-----BEGIN KEY-----\nhunter2\n"


async def test_a_broken_policy_is_said_and_the_last_valid_one_holds(story: Story) -> None:
    """Line and key are named once in review and check; nobody is mentioned by it."""
    story.policy("human_prs: gate\n")
    story.policy("human_prs: gate\nlimits:\n  max_reviews: 3\nescalate_to: '@all'\n")
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    await story.review()
    assert "review REQUEST_CHANGES [app/search.py:2]" in story.page()
    for text in (story.bodies[0], story.check.summary):
        assert text.count("The policy file can't be used, so its last valid version holds.") == 1
        assert "mergeward.yml line 3: limits.max_reviews: there is no such key." in text
        assert "@all" not in text


async def test_a_policy_that_never_was_valid_means_the_default(story: Story) -> None:
    """Also where nothing is reviewed the check says so."""
    story.policy("mode: [live\n")
    story.open_pull(HEAD, draft=True)
    await story.review()
    assert story.page() == ["check neutral: Skipped: draft"]
    assert "The policy file can't be used, so the default holds." in story.check.summary


async def test_a_gate_approves_and_withdraws(story: Story) -> None:
    """Gate: request changes, approve what was repaired, and speak for each head anew."""
    story.policy("human_prs: gate\n")
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding()), NOTHING]}
    await story.review()
    assert story.page() == [
        STARTED,
        "review REQUEST_CHANGES [app/search.py:2]",
        "status",
        "check failure: Significant concerns: 1 critical",
    ]
    story.push(REPAIRED)
    story.model.carried = {"F1": "fixed"}
    await story.review(action="synchronize")
    assert story.page()[1:4] == ["review APPROVE []", "resolve", "status"]
    story.push({**REPAIRED, "README.md": b"more\n"})
    await story.review(action="synchronize")
    assert story.page() == [
        STARTED,
        "review APPROVE []",
        "status",
        "check success: Approved: no findings",
    ]


async def test_an_approval_does_not_outlive_a_worse_round(story: Story) -> None:
    """Gate: a later round that saw less neither approves nor lets the approval stand."""
    story.policy("human_prs: gate\n")
    tree = {**REPAIRED, "app/auth/login.py": PLANTED}
    story.open_pull(tree)
    await story.review()
    assert "review APPROVE []" in story.page()
    story.push({**tree, "README.md": b"more\n"})
    story.model.answers = {AgentName.SECURITY: [BROKEN]}
    await story.review(action="synchronize")
    assert story.page() == [
        STARTED,
        "review COMMENT []",
        "dismiss",
        "status",
        "check action_required: Not reviewed completely: no findings",
    ]


async def test_what_a_gate_said_is_taken_back_when_there_is_none(story: Story) -> None:
    """The repository goes over to advice: the approval of then counts for no head of now."""
    story.policy("human_prs: gate\n")
    story.open_pull(REPAIRED)
    await story.review()
    assert "review APPROVE []" in story.page()
    story.policy("human_prs: advise\n")
    story.push({**REPAIRED, "app/other.py": PLANTED})
    story.model.answers = {AgentName.GENERAL: [findings(finding(path="app/other.py"))]}
    await story.review(action="synchronize")
    assert story.page()[1:3] == ["review COMMENT [app/other.py:2]", "dismiss"]


async def test_advice_that_never_judged_is_not_looked_for(story: Story) -> None:
    """A request less for each re-review."""
    story.open_pull(REPAIRED)
    await story.review()
    story.push({**REPAIRED, "app/other.py": PLANTED})
    story.forge.fail_next("our_reviews", ForgeForbidden("nobody is to ask"))
    story.model.answers = {AgentName.GENERAL: [findings(finding(path="app/other.py"))]}
    await story.review(action="synchronize")
    assert "review COMMENT [app/other.py:2]" in story.page()


@pytest.mark.parametrize("changes", [{"draft": True}, {"labels": ("mergeward:skip",)}])
async def test_a_gate_is_opened_by_no_skip(story: Story, changes: dict[str, object]) -> None:
    """Neutral would pass a required check: behind a gate an unread head asks for action."""
    story.policy("human_prs: gate\n")
    story.open_pull(HEAD, **changes)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    await story.review()
    conclusion = story.check.conclusion
    assert conclusion in (CheckConclusion.ACTION_REQUIRED, CheckConclusion.FAILURE)


async def test_shadow_stores_everything_and_writes_nothing(story: Story) -> None:
    """Findings, verdict, cost: all in the ledger, and not a single request that writes."""
    story.policy("mode: shadow\n")
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    await story.review()
    story.change(draft=True)
    story.push(REPAIRED)
    await story.review(action="synchronize")
    assert story.forge.effects == []
    assert [row.short_id for row in await story.findings()] == ["F1"]
    assert [run.state for run in await story.runs()] == [RunState.DONE, RunState.SKIPPED]
    assert await story.spent() == (2, 200)


async def test_shadow_is_silent_about_failures_too(story: Story) -> None:
    """A review that fails for good says so in the ledger alone."""
    story.policy("mode: shadow\n")
    story.open_pull(HEAD)

    async def refuses(task: AgentTask) -> str:
        story.forge.fail_next("pull_request", ForgeForbidden("no longer granted"))
        return await story.model.judge(task)

    story.model.answers = {AgentName.COORDINATOR: [refuses]}
    await story.review()
    assert story.forge.effects == []
    assert (await story.last_run()).state is RunState.FAILED


async def test_shadow_moves_no_task(story: Story) -> None:
    """A fix is judged, but nobody gets a turn by it and nobody is escalated."""
    story.policy("mode: shadow\n")
    await open_fix(story, Severity.CRITICAL, tree=HEAD, rounds_started=4)
    await story.review(actor=None)
    assert story.forge.effects == []
    [task] = await story.rows(FixTask)
    assert (task.state, await story.jobs(JobKind.RUN_FIX_TASK)) == (TaskState.REVIEWING, [])


async def test_leaving_the_shadow_says_what_was_found_there(story: Story) -> None:
    """The first live round publishes, although the last verdict was the same."""
    story.policy("mode: shadow\n")
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding()), NOTHING]}
    await story.review()
    story.policy("mode: live\n")
    await story.review(action="reopened")
    assert story.page()[1] == "review COMMENT []"
    assert "F1" in story.bodies[0]


@pytest.mark.parametrize(
    ("base", "head", "hidden"),
    [
        pytest.param({}, {"deploy/server.pem": KEY}, "deploy/server.pem", id="a key"),
        pytest.param(
            {"server.pem": KEY}, {"server.txt": KEY + b"x\n"}, "server.txt", id="a key renamed"
        ),
    ],
)
async def test_withheld_files_reach_no_model(
    story: Story, base: dict[str, bytes], head: dict[str, bytes], hidden: str
) -> None:
    """Not in the patches, not by any tool; the review says that it was left out."""
    story.git.commit({**BASE, **base}, parent=story.git.tip())
    story.open_pull({**HEAD, **head})
    answers: list[str] = []

    async def tries(task: AgentTask) -> str:
        for tool, arguments in (
            ("read_patch", {"path": hidden}),
            ("read_file", {"path": hidden}),
            ("grep", {"pattern": "BEGIN"}),
            ("read_file", {"path": "shared-pr-context.txt"}),
        ):
            try:
                answers.append(await use(task, tool, **arguments))
            except ToolError as error:
                answers.append(str(error))
        return NOTHING

    story.model.answers = {AgentName.GENERAL: [tries], AgentName.CODE_QUALITY: [tries]}
    await story.review()
    assert len(answers) == 4
    written = [path.read_bytes() for path in story.services.runs.rglob("*") if path.is_file()]
    assert written
    seen = [*answers, *(task.prompt for task in story.model.tasks)]
    assert not any("BEGIN KEY" in text for text in seen)
    assert not any(b"BEGIN KEY" in text for text in written)
    assert f"`{hidden}` (withheld" in story.bodies[0]
