"""Branches that others touch: nobody's push is written over (fixer/flow.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.agents.port import HostTool
from app.domain.jobs import JobKind
from app.domain.pull_request import PullRequestState
from app.domain.tasks import FixTaskState
from app.store.tables import FixTask
from tests.git.repos import git
from tests.handoff.fixtures import in_module_loop
from tests.handoff.stage import FILE, OTHER, SOURCE, Play, Stage, edits

pytestmark = in_module_loop

BRANCH = "mergeward/fix/1"
REF = f"refs/heads/{BRANCH}"
THEIRS = {FILE: SOURCE, "app/b.py": OTHER, "notes.txt": b"a person's work\n"}


async def handed_off(stage: Stage) -> FixTask:
    """A merged finding whose first turn waits."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.queue(stage.close_request())
    await stage.run(JobKind.CLOSE_PULL_REQUEST)
    return await stage.task()


async def proposed(stage: Stage) -> FixTask:
    """A task with its fix pull request open."""
    await handed_off(stage)
    await stage.run()
    return await stage.task()


def tip(stage: Stage) -> str | None:
    out = git("for-each-ref", "--format=%(objectname)", REF, cwd=stage.git.path).decode().strip()
    return out or None


def meanwhile(act: str, stage: Stage) -> Play:
    """A session during which somebody else does something to the branch."""

    async def play(tools: Mapping[str, HostTool]) -> str:
        said = await edits(*(("return 0", "return 1") if tip(stage) else ()))(tools)
        if act == "push":
            stage.git.commit(THEIRS, parent=tip(stage) or stage.main, ref=REF)
        else:
            git("update-ref", "-d", REF, cwd=stage.git.path)
        return said

    return play


async def test_a_branch_of_somebody_else_is_left_alone(stage: Stage) -> None:
    """There is a branch of that name before our first push: it is not ours, and no model runs."""
    await handed_off(stage)
    theirs = stage.git.commit(THEIRS, parent=stage.main, ref=REF)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "branch_taken")
    assert (tip(stage), stage.agent.tasks, stage.fix_pulls()) == (theirs, [], [])
    assert "not the fixer's" in stage.comments()[-1]


async def test_who_takes_the_branch_during_the_first_turn_keeps_it(stage: Stage) -> None:
    """The push is refused, not forced, and the task ends with a reason at once."""
    await handed_off(stage)
    stage.agent.plays[:] = [meanwhile("push", stage)]
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "branch_taken")
    assert git("show", f"{REF}:notes.txt", cwd=stage.git.path) == THEIRS["notes.txt"]
    assert (len(stage.agent.tasks), stage.fix_pulls()) == (1, [])


async def test_a_person_who_pushes_to_the_fix_goes_first(stage: Stage) -> None:
    """The turn's work is dropped: the round that the person's push asks for goes on from theirs."""
    task = await proposed(stage)
    said = stage.comments(2)
    stage.agent.plays[:] = [meanwhile("push", stage)]
    await stage.reviewed(task.id, fixed=False)
    task = await stage.task()
    assert (task.state, task.state_reason, task.turns) == (
        FixTaskState.REVIEWING,
        "branch_moved",
        2,
    )
    assert git("show", f"{REF}:notes.txt", cwd=stage.git.path) == THEIRS["notes.txt"]
    assert (stage.comments(2), len(stage.fix_pulls())) == (said, 1)

    stage.agent.plays[:] = [edits(), edits()]
    await stage.reviewed(task.id, fixed=False)
    assert (await stage.task()).turns == 3
    assert git("show", f"{REF}:notes.txt", cwd=stage.git.path) == THEIRS["notes.txt"]
    assert b"return 0" in git("show", f"{REF}:{FILE}", cwd=stage.git.path)


@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_deleted_branch_ends_the_task(stage: Stage, when: str) -> None:
    """Nobody who deletes the branch wants it back: it is not made anew."""
    task = await proposed(stage)
    if when == "before":
        git("update-ref", "-d", REF, cwd=stage.git.path)
    stage.agent.plays[:] = [meanwhile("delete", stage)]
    await stage.reviewed(task.id, fixed=False)
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "branch_deleted")
    assert tip(stage) is None
    assert len(stage.agent.tasks) == (1 if when == "before" else 2)
    assert "deleted the branch" in stage.comments(2)[-1]


@pytest.mark.parametrize("state", [PullRequestState.MERGED, PullRequestState.CLOSED])
async def test_a_fix_that_is_closed_gets_no_turn(stage: Stage, state: PullRequestState) -> None:
    """The event of its end may be late: the turn waits for that and does not speak for it."""
    task = await proposed(stage)
    pull = stage.world.pull(stage.repo, 2).value
    stage.world.put_pull(stage.repo, replace(pull, state=state, merge_commit_sha=stage.main))
    git("update-ref", "-d", REF, cwd=stage.git.path)
    await stage.reviewed(task.id, fixed=False)
    assert (await stage.task()).state is FixTaskState.QUEUED
    assert (len(stage.agent.tasks), stage.comments(2)) == (1, [])
    await stage.closed(2)
    ended = FixTaskState.MERGED if state is PullRequestState.MERGED else FixTaskState.CLOSED
    assert (await stage.task()).state is ended


async def test_a_base_that_is_gone_ends_the_task(stage: Stage) -> None:
    """A fix for a branch that nobody has any more is for nobody."""
    task = await handed_off(stage)
    await stage.change(FixTask, task.id, base_ref="release-1")
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "base_gone")
    assert task.lease_ended_at is not None
    assert stage.agent.tasks == []


async def test_a_git_that_does_not_answer_is_no_missing_base(stage: Stage) -> None:
    """The forge's word decides whether the branch is gone or git alone can't be reached."""
    await handed_off(stage)
    stage.world.branches[stage.repo.repository_id, "main"] = stage.main
    stage.git.path.rename(stage.git.path.with_suffix(".away"))
    await stage.run()
    assert (await stage.task()).state is FixTaskState.QUEUED
    stage.git.path.with_suffix(".away").rename(stage.git.path)
    await stage.later(minutes=1)
    assert (await stage.task()).state is FixTaskState.REVIEWING
