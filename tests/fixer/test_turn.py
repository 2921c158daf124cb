"""Stories of the built-in fixer: one turn, once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from app.agents.port import AgentErrorKind, AgentFailure, AgentResult, FinishReason, HostTool
from app.agents.rationed import SESSIONS_PER_AGENT
from app.domain.effects import NEEDS_HUMAN, OpenPullRequest, PullRequestReceipt
from app.domain.jobs import JobKind, JobState
from app.domain.pull_request import RepoRef
from app.domain.runs import RunState, Trigger, Usage
from app.domain.tasks import FixTaskState
from app.errors import ForgeForbidden, ForgeUnavailable
from app.fixer.flow import run_fix_task
from app.jobs.turns import turn_request
from app.store.fixtasks import link_fix_pull_request
from app.store.tables import FixTask, FixTaskFinding, Lineage, PullRequestRow, ReviewRun
from loop_guards import FindingStatus, Severity
from tests.fixer.crashes import Died, MortalStore, carry_out
from tests.git.repos import git
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import (
    BAD,
    DECLINES,
    FILE,
    FIXED,
    FIXER,
    NONSENSE,
    SOURCE,
    USAGE,
    GitForge,
    Play,
    ScriptedAgent,
    Stage,
    edits,
    says,
)
from tests.store.rows import INSTALLATION

pytestmark = in_module_loop

TURN, CLOSING = JobKind.RUN_FIX_TASK, JobKind.CLOSE_PULL_REQUEST
BRANCH = "mergeward/fix/1"
WRITES = 6
"""What a turn that proposes something writes; the last one is that it is over."""


async def handed_off(stage: Stage) -> FixTask:
    """One finding was merged and is a queued task now."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.queue(stage.close_request())
    await stage.run(CLOSING)
    return await stage.task()


def content(stage: Stage, branch: str = BRANCH, path: str = FILE) -> bytes:
    return git("show", f"refs/heads/{branch}:{path}", cwd=stage.git.path)


def has_branch(stage: Stage, branch: str = BRANCH) -> bool:
    return bool(git("branch", "--list", branch, cwd=stage.git.path))


async def test_a_turn_pushes_a_commit_and_proposes_it(stage: Stage) -> None:
    """The fix stands on the tip of the base, by the fixer's account, linked to its task."""
    await handed_off(stage)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.turns) == (FixTaskState.REVIEWING, 1)
    (pull,) = stage.fix_pulls()
    assert (pull.head_ref, pull.base_ref, pull.author) == (BRANCH, "main", FIXER.account)
    assert (pull.title, "Fixed." in pull.body) == ("Fix 1 finding in app/a.py (#1)", True)
    assert content(stage) == SOURCE.replace(BAD.encode(), b"return 0")
    assert stage.commits_on(BRANCH) == 1
    (mirror,) = await stage.findings(pull.number)
    assert (mirror.source_finding_id, mirror.severity_at_handoff) == (
        (await stage.findings())[0].id,
        Severity.CRITICAL,
    )
    assert await stage.reasons("turn_start") == ["allowed"]


async def test_the_commit_is_the_bots(stage: Stage) -> None:
    """GitHub shows a commit as the bot's only by the bot user's own address."""
    await handed_off(stage)
    await stage.run()
    shown = git("log", "-1", "--format=%an <%ae>%n%cn <%ce>", BRANCH, cwd=stage.git.path).decode()
    who = f"{FIXER.commit_name} <{FIXER.commit_email}>"
    assert shown.splitlines() == [who, who]


async def test_a_later_turn_builds_on_the_branch(stage: Stage) -> None:
    """Changes requested: one more commit on the same branch and pull request, told what remains."""
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), edits("return 0", "return 1")]
    await stage.run()
    task = await stage.task()
    await stage.reviewed(task.id, fixed=False, summary="Zero is no answer.")
    task = await stage.task()
    assert (task.state, task.turns) == (FixTaskState.REVIEWING, 2)
    assert (stage.commits_on(BRANCH), len(stage.fix_pulls())) == (2, 1)
    assert b"return 1" in content(stage)
    first, second = stage.agent.tasks
    assert "Zero is no answer." in second.prompt
    assert "Zero is no answer." not in first.prompt


async def test_a_later_turn_is_about_what_blocks(stage: Stage) -> None:
    """Remarks that block nothing cost no turn: the fixer is not told of them."""
    stage.open()
    await stage.finds(title="Blocks")
    await stage.finds(title="Blocks no more", code="    return eval(rows)", start_line=3)
    stage.merge()
    stage.agent.plays[:] = [edits(), edits("return 0", "return 1")]
    await stage.closed()
    task = await stage.task()
    mirrors = await stage.findings(2)
    async with stage.store.write() as session:
        session.add(
            ReviewRun(
                pull_request_id=mirrors[0].pull_request_id,
                fix_task_id=task.id,
                head_sha="0" * 40,
                trigger=Trigger.WEBHOOK,
                state=RunState.DONE,
                blocking=[mirrors[0].id],
                created_at=stage.clock.now(),
            )
        )
    await stage.change(FixTask, task.id, state=FixTaskState.QUEUED)
    await stage.queue(turn_request(task, INSTALLATION))
    await stage.run()
    first, second = stage.agent.tasks
    assert ("Blocks no more" in first.prompt, "Blocks no more" in second.prompt) == (True, False)
    assert "Blocks" in second.prompt


async def test_what_was_used_is_booked_on_the_lineage(stage: Stage) -> None:
    """The purse belongs to the lineage: each model call of the fixer is taken from it."""
    await handed_off(stage)
    await stage.run()
    lineage = await stage.lineage()
    assert (lineage.usage, lineage.sessions) == (USAGE, 1)


async def test_nothing_left_ends_the_task(stage: Stage) -> None:
    """Findings are asked about again when the turn begins; none left is no work and no money."""
    await handed_off(stage)
    stage.base_files[FILE] = b"def a(rows):\n    return 0\n"
    stage.main = stage.git.commit(stage.base_files, parent=stage.main)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason, task.turns) == (FixTaskState.OBSOLETE, "nothing_left", 0)
    assert stage.agent.tasks == []
    assert await stage.reasons("turn_start") == ["allowed"]
    assert (await stage.findings())[0].status is FindingStatus.GONE
    assert "no longer there" in stage.comments()[-1]


async def test_what_is_gone_leaves_the_task(stage: Stage) -> None:
    """Only what is still there is worked on, and only that is carried to the fix."""
    stage.open()
    await stage.finds()
    await stage.finds(code="    return eval(rows)", start_line=3, title="Eval")
    stage.merge()
    await stage.queue(stage.close_request())
    await stage.run(CLOSING)
    stage.base_files[FILE] = SOURCE.replace(b"return eval(rows)", b"return rows")
    stage.main = stage.git.commit(stage.base_files, parent=stage.main)
    await stage.run()
    (pull,) = stage.fix_pulls()
    assert [row.title for row in await stage.findings(pull.number)] == ["Division by zero"]
    assert "Eval" not in stage.agent.tasks[0].prompt


async def test_a_fixer_that_declines_ends_the_task_with_its_reason(stage: Stage) -> None:
    """Nothing changed: no push, no pull request, and the page says what the fixer said."""
    await handed_off(stage)
    stage.agent.plays[:] = [DECLINES]
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.DECLINED, "nothing_changed")
    assert (has_branch(stage), stage.fix_pulls()) == (False, [])
    assert "It is right as it is." in stage.comments()[-1]
    async with stage.store.read() as session:
        (finding,) = await stage.findings()
        link = await session.get_one(FixTaskFinding, (task.id, finding.id))
    assert link.declined_reason == "It is right as it is."


async def test_a_later_turn_without_a_change_is_looked_at_once_more(stage: Stage) -> None:
    """ "Nothing to do" may be true: the task keeps its proposal, and one more round of the same
    head is asked for. Nothing is said on the page, since nothing has ended."""
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), DECLINES]
    await stage.run()
    said = stage.comments(2)
    await stage.reviewed((await stage.task()).id, fixed=False)
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.REVIEWING, "nothing_changed")
    assert (task.turns, task.finished_at, task.lease_ended_at) == (2, None, None)
    assert (stage.commits_on(BRANCH), stage.comments(2)) == (1, said)
    (look,) = await stage.jobs(JobKind.REVIEW_PULL_REQUEST)
    assert (look.state, look.payload["number"], look.payload["causes"]) == (JobState.QUEUED, 2, [])
    assert (await stage.reasons("task"))[-2:] == ["turn_begun", "nothing_changed"]


async def test_a_later_turn_that_fails_the_check_ends_the_task(make_stage: MakeStage) -> None:
    """What the check refuses is no empty turn, also if the second session changed nothing."""
    stage = await make_stage("verify_command: [grep, -q, 'return 0', app/a.py]\n")
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), edits("return 0", "return 1"), says(FIXED)]
    await stage.run()
    await stage.reviewed((await stage.task()).id, fixed=False)
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "verify_failed")
    assert (stage.commits_on(BRANCH), await stage.jobs(JobKind.REVIEW_PULL_REQUEST)) == (1, [])
    assert "check fails" in stage.comments(2)[-1]


@pytest.mark.parametrize("early", [False, True], ids=["to come", "over already"])
async def test_a_round_follows_every_push_of_a_turn(stage: Stage, early: bool) -> None:
    """A review that was over before its turn was moved nothing: another one is asked for then, and
    only then."""
    await handed_off(stage)
    story = partial(run_fix_task, services=stage.fixing)
    with pytest.raises(Died):
        await carry_out(stage, story, MortalStore(stage.store, WRITES, late=False))
    task = await stage.task()
    assert task.state is FixTaskState.FIXING
    row = await stage.known(2)
    async with stage.store.write() as session:
        session.add(
            ReviewRun(
                pull_request_id=row.id,
                fix_task_id=task.id,
                head_sha=stage.fix_pulls()[0].head_sha,
                trigger=Trigger.WEBHOOK,
                state=RunState.DONE if early else RunState.RUNNING,
                created_at=stage.clock.now(),
                finished_at=stage.clock.now() if early else None,
            )
        )
    await stage.run()
    assert (await stage.task()).state is FixTaskState.REVIEWING
    assert len(await stage.jobs(JobKind.REVIEW_PULL_REQUEST)) == int(early)


async def test_nonsense_is_asked_for_once_more_and_then_fails(stage: Stage) -> None:
    """An answer that can't be read is no fix, whatever was edited."""
    await handed_off(stage)
    stage.agent.plays[:] = [NONSENSE]
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "fixer_malformed")
    assert len(stage.agent.tasks) == 2
    assert (has_branch(stage), stage.fix_pulls()) == (False, [])
    assert "fixer_malformed" in stage.comments()[-1]
    assert (await stage.findings())[0].status is FindingStatus.OPEN


async def test_nonsense_once_is_forgiven(stage: Stage) -> None:
    """The second answer counts."""
    await handed_off(stage)
    stage.agent.plays[:] = [says("?"), edits()]
    await stage.run()
    assert (await stage.task()).state is FixTaskState.REVIEWING


async def test_a_provider_that_fails_fails_the_task(stage: Stage) -> None:
    """No answer is no fix; the lease is free and the page says so."""

    class Broken(ScriptedAgent):
        async def run(self, task: object, on_event: object = None) -> AgentResult:
            failure = AgentFailure(AgentErrorKind.AUTH, "no key")
            return AgentResult("", Usage(), FinishReason.ERROR, failure)

    await handed_off(stage)
    stage.agent = Broken()
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "fixer_auth")
    assert task.lease_ended_at is not None


async def test_tools_stay_inside_what_may_be_changed(make_stage: MakeStage) -> None:
    """Workflows, the policy, withheld files and places outside refuse; the model is told why."""
    stage = await make_stage("never_send: ['secret.txt']\n")
    stage.base_files["secret.txt"] = b"x\n"
    stage.main = stage.git.commit(stage.base_files, parent=stage.main)
    refused: list[str] = []

    async def play(tools: Mapping[str, HostTool]) -> str:
        for path in (
            ".github/workflows/ci.yml",
            ".github/mergeward.yml",
            "secret.txt",
            "./secret.txt",
            "../out.txt",
            "/out.txt",
            ".git/config",
        ):
            try:
                await tools["write_file"].call({"path": path, "content": "x"})
            except Exception as error:
                refused.append(type(error).__name__)
        try:
            await tools["read_file"].call({"path": "secret.txt"})
        except Exception as error:
            refused.append(type(error).__name__)
        return await edits()(tools)

    await handed_off(stage)
    stage.agent.plays[:] = [play]
    await stage.run()
    assert len(refused) == 8
    changed = git("diff", "--name-only", "main", BRANCH, cwd=stage.git.path).decode().split()
    assert changed == [FILE]


async def test_the_check_gates_the_push(make_stage: MakeStage) -> None:
    """What the repository's check refuses is tried once more with its words, then not proposed."""
    stage = await make_stage(
        "verify_command: ['sh', '-c', 'echo The answer is wrong; grep -q \"return 1\" app/a.py']\n"
    )
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), says(FIXED)]
    await stage.run()
    task = await stage.task()
    assert (task.state, has_branch(stage)) == (FixTaskState.DECLINED, False)
    assert task.state_reason == "verify_failed"
    assert "The answer is wrong" in stage.agent.tasks[1].prompt
    assert "check fails" in stage.comments()[-1]


async def test_a_second_session_may_satisfy_the_check(make_stage: MakeStage) -> None:
    """The check's output is a remark that helps."""
    stage = await make_stage("verify_command: [grep, -q, 'return 1', app/a.py]\n")
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), edits("return 0", "return 1")]
    await stage.run()
    assert (await stage.task()).state is FixTaskState.REVIEWING
    assert b"return 1" in content(stage)


@pytest.mark.parametrize(
    ("plays", "sessions", "state"),
    [
        pytest.param([NONSENSE, edits(), says(FIXED)], 3, FixTaskState.DECLINED, id="nonsense"),
        pytest.param(
            [NONSENSE, edits(), NONSENSE, edits("return 0", "return 1")],
            3,
            FixTaskState.FAILED,
            id="nonsense-twice",
        ),
        pytest.param(
            [edits(), NONSENSE, edits("return 0", "return 1")],
            3,
            FixTaskState.REVIEWING,
            id="nonsense-of-the-second",
        ),
    ],
)
async def test_a_turn_has_the_sessions_of_one_agent(
    make_stage: MakeStage, plays: list[Play], sessions: int, state: FixTaskState
) -> None:
    """Unreadable reports and the check that fails share one ration: the bound counts so many."""
    stage = await make_stage("verify_command: [grep, -q, 'return 1', app/a.py]\n")
    await handed_off(stage)
    stage.agent.plays[:] = plays
    await stage.run()
    assert (await stage.task()).state is state
    assert len(stage.agent.tasks) == (await stage.lineage()).sessions == sessions


async def test_the_cut_of_model_runs_ends_the_turns(make_stage: MakeStage) -> None:
    """The sessions of a lineage are counted against `limits.max_model_runs`: no turn begins once
    they are used, and a person is asked."""
    stage = await make_stage("limits: {max_model_runs: 1}\n")
    await handed_off(stage)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.turns) == (FixTaskState.REVIEWING, 1)
    await stage.reviewed(task.id, fixed=False)
    task = await stage.task()
    assert (task.state, task.state_reason, task.turns) == (FixTaskState.ESCALATED, "budget", 1)
    assert len(stage.agent.tasks) == 1


async def test_a_death_in_a_session_uses_it_up(stage: Stage) -> None:
    """Workers that die again and again while the agent works cost no more than one turn may."""
    await handed_off(stage)

    async def dies(tools: Mapping[str, HostTool]) -> str:
        raise Died

    stage.agent.plays[:] = [dies]
    for _ in range(SESSIONS_PER_AGENT):
        with pytest.raises(Died):
            await carry_out(stage, partial(run_fix_task, services=stage.fixing), stage.store)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "fixer_limit")
    assert len(stage.agent.tasks) == (await stage.lineage()).sessions == SESSIONS_PER_AGENT


async def test_what_the_check_leaves_behind_is_never_pushed(make_stage: MakeStage) -> None:
    """Build products and whatever else the check writes are not part of the fix."""
    script = "mkdir -p .github/workflows; echo x > .github/workflows/own.yml; echo y > app/b.py"
    stage = await make_stage(f"verify_command: ['sh', '-c', '{script}']\n")
    await handed_off(stage)
    await stage.run()
    changed = git("diff", "--name-only", "main", BRANCH, cwd=stage.git.path).decode().split()
    assert changed == [FILE]


@pytest.mark.parametrize(
    ("spent", "reason"),
    [
        pytest.param({"rounds_started": 5}, "cap", id="cap"),
        pytest.param({"turns": 5}, "cap", id="as many turns, by stops and resumes"),
        pytest.param({"input_tokens": 2_000_000}, "budget", id="budget"),
    ],
)
async def test_the_guards_refuse_a_turn_and_a_person_is_asked(
    stage: Stage, spent: dict[str, int], reason: str
) -> None:
    """No turn without a round to follow it: escalated once, with a comment and the label."""
    task = await handed_off(stage)
    lineage = await stage.lineage()
    row: type[FixTask] | type[Lineage] = Lineage if "input_tokens" in spent else FixTask
    await stage.change(row, task.id if row is FixTask else lineage.id, **spent)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.escalation_reason) == (FixTaskState.ESCALATED, reason)
    assert task.turns == spent.get("turns", 0)
    assert task.lease_ended_at is not None
    assert stage.agent.tasks == []
    assert "A human is needed" in stage.comments()[-1]
    assert NEEDS_HUMAN in stage.world.pull(stage.repo, 1).value.labels
    assert await stage.reasons("turn_start") == [reason]


async def test_a_stopped_lineage_keeps_its_task_in_place(stage: Stage) -> None:
    """A person's stop is no failure of the task: nothing is spent, nothing is said."""
    await handed_off(stage)
    lineage = await stage.lineage()
    await stage.change(Lineage, lineage.id, state="stopped")
    said = stage.comments()
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.QUEUED, "stopped")
    assert (stage.agent.tasks, stage.comments()) == ([], said)


async def test_shadow_pushes_nothing(stage: Stage) -> None:
    """A repository that went into shadow mode meanwhile gets no branch and no words."""
    await handed_off(stage)
    stage.base_files[".github/mergeward.yml"] = b"mode: shadow\n"
    stage.main = stage.git.commit(stage.base_files, parent=stage.main)
    said = stage.comments()
    await stage.run()
    assert (has_branch(stage), stage.comments(), stage.agent.tasks) == (False, said, [])


async def test_a_task_that_is_elsewhere_gets_no_turn(stage: Stage) -> None:
    """A job that comes late finds the task closed, merged, escalated…: it does nothing."""
    task = await handed_off(stage)
    for state in FixTaskState:
        if state in (FixTaskState.QUEUED, FixTaskState.FIXING):
            continue
        await stage.change(FixTask, task.id, state=state)
        await stage.queue(replace(turn_request(task, INSTALLATION), key=f"late:{state}"))
        await stage.run()
        assert (await stage.task()).state is state
    assert (stage.agent.tasks, stage.fix_pulls()) == ([], [])


async def test_a_lost_answer_opens_no_second_pull_request(stage: Stage) -> None:
    """The pull request was opened, the answer got lost: the repeat finds it by its marker."""
    await handed_off(stage)
    stage.fixer.fail_next("ensure_pull_request", ForgeUnavailable("no answer"), after=True)
    await stage.run()
    assert (await stage.task()).state is FixTaskState.FIXING
    await stage.later(minutes=1)
    task = await stage.task()
    assert (task.state, task.turns, len(stage.fix_pulls())) == (FixTaskState.REVIEWING, 1, 1)
    assert (stage.commits_on(BRANCH), len(stage.agent.tasks)) == (1, 1)


async def test_a_turn_that_fails_for_good_frees_its_files_and_says_so(stage: Stage) -> None:
    """A forge that refuses ends the task with a reason; nobody waits for ever."""
    await handed_off(stage)
    stage.fixer.fail_next("identity", ForgeForbidden("a permission is missing"))
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.FAILED, "turn_failed_forge")
    assert task.lease_ended_at is not None
    assert [job.state for job in await stage.jobs(TURN)] == [JobState.FAILED]
    assert "turn_failed_forge" in stage.comments()[-1]


async def test_a_closed_fix_stops_the_turn_at_work(stage: Stage) -> None:
    """The pull request was closed while the agent works: what it made is not pushed."""
    await handed_off(stage)
    await stage.run()
    task = await stage.task()

    async def play(tools: Mapping[str, HostTool]) -> str:
        stage.close(2)
        await stage.queue(stage.close_request(2))
        await stage.run(CLOSING)
        return await edits("return 0", "return 1")(tools)

    stage.agent.plays[:] = [play]
    await stage.reviewed(task.id, fixed=False)
    assert (await stage.task()).state is FixTaskState.CLOSED
    assert stage.commits_on(BRANCH) == 1


async def crash(stage: Stage, at: int, *, late: bool) -> int:
    """One turn whose worker dies at its `at`-th write; then workers that live. Writes it took."""
    story = partial(run_fix_task, services=stage.fixing)
    mortal = MortalStore(stage.store, at, late=late)
    try:
        await carry_out(stage, story, mortal)
    except Died:
        await stage.run()
    return mortal.writes


@pytest.mark.parametrize("late", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("at", range(1, WRITES + 1))
async def test_a_death_at_any_write_leaves_one_turn(stage: Stage, at: int, late: bool) -> None:
    """One commit, one pull request, one counted turn, wherever the worker dies."""
    await handed_off(stage)
    await crash(stage, at, late=late)
    task = await stage.task()
    assert (task.state, task.turns) == (FixTaskState.REVIEWING, 1)
    assert (stage.commits_on(BRANCH), len(stage.fix_pulls())) == (1, 1)
    assert set(await stage.reasons("turn_start")) == {"allowed"}
    assert len(await stage.findings(2)) == 1


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        pytest.param({"state": "stopped"}, FixTaskState.QUEUED, "stopped", id="stopped"),
        pytest.param({"input_tokens": 10**9}, FixTaskState.ESCALATED, "budget", id="spent"),
    ],
)
async def test_a_turn_that_died_is_asked_about_again(
    stage: Stage, change: dict[str, object], state: FixTaskState, reason: str
) -> None:
    """Its next session is a model run of its own: an answer from before the outage starts none."""
    await handed_off(stage)
    story = partial(run_fix_task, services=stage.fixing)
    with pytest.raises(Died):
        await carry_out(stage, story, MortalStore(stage.store, 1, late=True))
    assert (await stage.task()).state is FixTaskState.FIXING
    await stage.change(Lineage, (await stage.lineage()).id, **change)
    await stage.run()
    task = await stage.task()
    assert (task.state, task.state_reason, task.turns) == (state, reason, 1)
    assert await stage.reasons("turn_start") == ["allowed", reason]
    assert (stage.agent.tasks, has_branch(stage)) == ([], False)


async def test_a_turn_has_that_many_writes(stage: Stage) -> None:
    """The test above kills the worker at every one of them."""
    await handed_off(stage)
    assert await crash(stage, 99, late=False) == WRITES


@pytest.mark.parametrize("at", range(1, 7))
async def test_a_death_at_any_write_says_the_end_once(stage: Stage, at: int) -> None:
    """Declined: one comment on the page, after whichever write the worker dies."""
    await handed_off(stage)
    stage.agent.plays[:] = [DECLINES]
    before = len(stage.comments())
    await crash(stage, at, late=True)
    assert (await stage.task()).state is FixTaskState.DECLINED
    assert len(stage.comments()) == before + 1


async def test_a_late_try_of_an_old_turn_does_nothing(stage: Stage) -> None:
    """A try that comes after the next turn began neither pushes nor fails the task."""
    await handed_off(stage)
    stage.agent.plays[:] = [edits(), edits("return 0", "return 1")]
    stage.fixer.fail_next("ensure_pull_request", ForgeUnavailable("no answer"), after=True)
    await stage.run()
    # The webhook of the opened pull request is faster than the repeat of the job.
    task = await stage.task()
    await link(stage, task.id)
    await stage.reviewed(task.id, fixed=False)
    await stage.later(minutes=5)
    task = await stage.task()
    assert (task.state, task.turns) == (FixTaskState.REVIEWING, 2)
    assert stage.commits_on(BRANCH) == 2


async def test_a_round_that_is_faster_than_the_fixer_is_not_undone(stage: Stage) -> None:
    """The webhook of the opened pull request may be answered before its opener goes on."""

    class Quick(GitForge):
        async def ensure_pull_request(
            self, repo: RepoRef, wanted: OpenPullRequest, *, maybe_published: bool = True
        ) -> PullRequestReceipt:
            receipt = await super().ensure_pull_request(
                repo, wanted, maybe_published=maybe_published
            )
            await link(stage, task.id)
            await stage.change(FixTask, task.id, state=FixTaskState.APPROVED)
            return receipt

    task = await handed_off(stage)
    stage.fixer = Quick(stage.world, FIXER, stage.git)
    await stage.run()
    assert (await stage.task()).state is FixTaskState.APPROVED
    assert len(await stage.findings(2)) == 1


async def link(stage: Stage, task_id: int) -> None:
    """What the review of the opened fix pull request does first."""
    known = await stage.known(2)
    async with stage.store.write() as session:
        row = await session.get_one(PullRequestRow, known.id)
        task = await session.get_one(FixTask, task_id)
        await link_fix_pull_request(session, task, row, now=stage.clock.now())
