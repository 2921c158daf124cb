"""A pull request that is larger than what its reviewers can read, told as stories."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.agents.port import AgentTask
from app.control.routing import Routing, Window, shipped_routing
from app.domain.coverage import Coverage, CoverageState
from app.domain.policy import Policy
from app.domain.runs import AgentName, RunState
from app.plugins.facts import no_file
from app.review.brief import plan_of
from app.review.budget import FIXED_TOKENS, MOST_PARTS
from app.review.render import reason_words
from app.review.source import open_source
from tests.plugins.factories import FACTS, Made
from tests.review.story import BASE, NOTHING, Story, finding, findings, plugins

POLICY = "human_prs: gate\n"
FILES = {
    **{
        f"src/part{n:02}.py": b"".join(b"x = %05d\n" % (n + i) for i in range(40)) for n in range(9)
    },
    "src/auth/login.py": b"".join(b"y = %05d\n" % n for n in range(40)),
    "src/huge.py": b"".join(b"z = %05d\n" % n for n in range(900)),
}
HEAD = {**BASE, **FILES, ".github/mergeward.yml": POLICY.encode()}


def narrow(patches: int) -> Routing:
    """Models that have room for so many tokens of patches."""
    window = Window(
        FIXED_TOKENS + 2 * patches,
        next(iter(shipped_routing("anthropic").windows.values())).checked,
    )
    wide = replace(window, tokens=1_000_000)
    routing = shipped_routing("anthropic")
    return replace(
        routing, windows={"default": window, **dict.fromkeys(routing.chains["top"].models, wide)}
    )


def files_of(task: AgentTask) -> list[str]:
    return re.findall(r'<file path="([^"]+)"', task.prompt)


async def large(story: Story, patches: int = 1_600) -> None:
    story.policy(POLICY)
    story.services = replace(story.services, plugins=plugins(narrow(patches)))
    story.open_pull(HEAD)


def read_by(story: Story, agent: AgentName) -> list[list[str]]:
    return [files_of(task) for task in story.model.tasks if task.agent is agent]


async def test_a_large_change_is_split_named_and_not_approved(story: Story) -> None:
    """Each reviewer reads the same parts, what guards something first; what has no place is named
    on the page; nobody found anything, and still nothing is approved."""
    await large(story)
    await story.review()
    parts = read_by(story, AgentName.SECURITY)
    assert len(parts) == MOST_PARTS
    assert read_by(story, AgentName.CODE_QUALITY) == parts
    assert parts[0][0] == "src/auth/login.py"
    placed = [path for part in parts for path in part]
    assert len(placed) == len(set(placed)) < len(FILES)
    [coordinator] = read_by(story, AgentName.COORDINATOR)
    assert sorted(coordinator) == sorted(placed)
    run = await story.last_run()
    missing = {
        e.path: e.reason for e in Coverage.from_json(run.coverage).of(CoverageState.TOO_LARGE)
    }
    assert missing == {
        path: "larger_than_window" if path == "src/huge.py" else "no_room_left"
        for path in FILES.keys() - placed
    }
    assert run.state is RunState.DONE
    assert all(
        f"Not reviewed: `{path}` ({reason_words(why)})" in story.bodies[-1]
        for path, why in missing.items()
    )
    assert story.page() == [
        "check in_progress: Reviewing",
        "review COMMENT []",
        "status",
        "check action_required: Not reviewed completely: no findings",
    ]


async def test_findings_of_all_parts_are_heard(story: Story) -> None:
    """Two parts may each call their finding the first: both reach the page."""
    await large(story)

    async def one_each(task: AgentTask) -> str:
        path = files_of(task)[0]
        return findings(finding(path=path, line=1, title=f"In {path}", severity="warning"))

    story.model.answers = {AgentName.SECURITY: [one_each]}
    await story.review()
    firsts = [part[0] for part in read_by(story, AgentName.SECURITY)]
    assert sorted(path for path, _ in story.open_threads) == sorted(firsts)


async def test_a_part_that_nobody_could_read_is_named(story: Story) -> None:
    """All reviewers fail on one part: its files are failed in the ledger, not reviewed."""
    await large(story)
    unread: set[str] = set()

    async def fails_second(task: AgentTask) -> str:
        if "part 2 of" not in task.prompt:
            return NOTHING
        unread.update(files_of(task))
        return "no answer at all"

    story.model.answers = {
        AgentName.SECURITY: [fails_second],
        AgentName.CODE_QUALITY: [fails_second],
        AgentName.PERFORMANCE: [fails_second],
        AgentName.DOCUMENTATION: [fails_second],
    }
    await story.review()
    run = await story.last_run()
    failed = Coverage.from_json(run.coverage).of(CoverageState.FAILED)
    assert {entry.path for entry in failed} == unread
    assert unread
    assert set(run.incomplete) == {"security", "code_quality", "performance", "documentation"}


async def test_a_change_of_one_huge_file_asks_nobody(story: Story) -> None:
    """Nothing fits: no model is paid, the check says which file and asks for action."""
    story.policy(POLICY)
    story.services = replace(story.services, plugins=plugins(narrow(1_600)))
    story.open_pull(
        {**BASE, "src/huge.py": FILES["src/huge.py"], ".github/mergeward.yml": POLICY.encode()}
    )
    await story.review()
    assert story.page() == ["check action_required: Not reviewed: too large"]
    assert "`src/huge.py` (too large for a model's context window)" in story.check.summary
    assert story.model.calls == []


@pytest.mark.parametrize("patches", [20_000, 100_000])
async def test_a_change_that_fits_is_read_at_once(story: Story, patches: int) -> None:
    """One session a reviewer, full coverage."""
    await large(story, patches)
    await story.review()
    assert [len(part) for part in read_by(story, AgentName.SECURITY)] == [len(FILES)]
    assert story.page()[-1] == "check success: Approved: no findings"


async def test_what_plugins_tell_takes_from_the_room(story: Story) -> None:
    """A long codex in every prompt leaves less room for patches: the change is split for it."""
    story.policy(POLICY)
    story.open_pull({**BASE, **{f"src/p{n}.py": FILES["src/part00.py"] for n in range(4)}})
    told = Made("rules", lambda context: context.prompt_section("Rules", "x" * 4_000))
    for more, parts in ((), 1), ((told,), 2):
        host = plugins(narrow(3_600), *more)
        configuration = await host.configured(FACTS, no_file)
        repository = story.git.repository
        source = await open_source(repository, story.git.tip(), story.pull.head_sha)
        plan = await plan_of(source, Policy(), configuration)
        assert len(plan.parts) == parts
