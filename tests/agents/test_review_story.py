"""A whole round over real HTTP and real git objects: coordinator, reviewers, tools, judgement."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.agents.asking import Answer, ask
from app.agents.findings_xml import ParsedReview, ParseOutcome, parse_review
from app.agents.port import AgentErrorKind, AgentEvent, FinishReason, ModelRef, Runtime, ToolCalled
from app.agents.prompt_context import (
    ChangedFile,
    KnownFinding,
    PromptContext,
    coordinator_prompt,
    reviewer_prompt,
    shared_context,
)
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.agents.scheduler import run_reviewers
from app.agents.tasks import agent_task
from app.agents.tools import coordinator_tools, reviewer_tools
from app.agents.workspace import SHARED_CONTEXT, Workspace
from app.domain.findings import CarriedState
from app.domain.runs import AgentName
from app.git.objects import tree_of
from app.sandbox.model import ModelServer
from app.sandbox.model.scenario import Fault, Scenario, parse_scenario
from loop_guards import Severity

KEY = "local-test-key-01"
MODEL = ModelRef("anthropic", "claude-opus-4-6")
REVIEWERS = (AgentName.SECURITY, AgentName.GENERAL)
SEARCH = "def search(q):\n    return db.execute(f\"SELECT * FROM notes WHERE body LIKE '{q}'\")\n"
SCENARIO: Scenario = parse_scenario(
    {
        "planted": [
            {
                "id": "sql",
                "path": "app/*.py",
                "needle": "LIKE '{q}'",
                "agents": ["security", "general"],
                "severity": "critical",
                "category": "injection",
                "title": "Search term in the SQL text",
                "body": "`q` & co. reach the statement; a < b is <b>not</b> safe.",
                "suggestion": '    return db.execute("… LIKE ?", (q,))',
            },
            {
                "id": "old",
                "path": "app/*.py",
                "needle": "never there",
                "agents": ["security"],
                "severity": "warning",
                "category": "x",
                "title": "Old trouble",
                "body": "It was there.",
            },
        ]
    }
)


@dataclass(frozen=True)
class Stage:
    """A repository with one change, and the run's directory."""

    context: PromptContext
    workspace: Workspace


def git(where: Path, *arguments: str) -> str:
    setting = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(
        ["git", *setting, *arguments], cwd=where, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    repository, run = tmp_path / "repository", tmp_path / "run"
    (repository / "app").mkdir(parents=True)
    (run / "diff").mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    (repository / "app/db.py").write_text("x = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "base")
    (repository / "app/search.py").write_text(SEARCH)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "search")
    patch = git(repository, "diff", "HEAD~1", "HEAD")
    (run / "diff/app__search.py.patch").write_text(patch + "\n")
    context = PromptContext(
        repository="acme/shop",
        number=1,
        title="Search",
        body="Adds search.",
        author="alice",
        base_ref="main",
        base_sha="a" * 40,
        head_ref="search",
        head_sha="b" * 40,
        changed_files=(ChangedFile("app/search.py", "added", 2, 0, "diff/app__search.py.patch"),),
        findings=(
            KnownFinding(
                "F1", "open", "original", "app/search.py", 2, "warning", "Old trouble", "It was."
            ),
        ),
    )
    (run / SHARED_CONTEXT).write_text(shared_context(context))
    tree = tree_of(repository / ".git", git(repository, "rev-parse", "HEAD"))
    return Stage(context, Workspace(tree, run, {"app/search.py": "diff/app__search.py.patch"}))


def runtime_for(server: ModelServer) -> DirectRuntime:
    return DirectRuntime([ProviderSettings("anthropic", WireFormat.ANTHROPIC, KEY, server.url)])


async def review(
    stage: Stage, runtime: Runtime, events: list[AgentEvent]
) -> tuple[Answer[ParsedReview], list[ReviewerOutcome]]:
    """A round as the review story runs it."""
    outcomes: list[ReviewerOutcome] = []

    async def sink(event: AgentEvent) -> None:
        events.append(event)

    async def spawn(_: tuple[AgentName, ...]) -> str:
        if not outcomes:
            tools = reviewer_tools(stage.workspace)
            prompt = reviewer_prompt(stage.context)
            tasks = [agent_task(agent, prompt, (MODEL,), tools) for agent in REVIEWERS]
            outcomes.extend(await run_reviewers(tasks, runtime, ("app/search.py",), on_event=sink))
        return render_reviewer_results(outcomes)

    def parse(text: str, finish: FinishReason) -> ParsedReview:
        return parse_review(text, ("app/search.py",), finish)

    task = agent_task(
        AgentName.COORDINATOR,
        coordinator_prompt(stage.context),
        (MODEL,),
        coordinator_tools(stage.workspace, spawn),
    )
    return await ask(task, runtime, parse, on_event=sink), outcomes


async def test_a_round(stage: Stage) -> None:
    """Found only because it was read; merged into one; the earlier one accounted for; paid for."""
    events: list[AgentEvent] = []
    async with ModelServer(SCENARIO, api_key=KEY) as server, runtime_for(server) as runtime:
        answer, outcomes = await review(stage, runtime, events)
    assert [outcome.status for outcome in outcomes] == [ParseOutcome.OK, ParseOutcome.OK]
    assert answer.parsed.outcome is ParseOutcome.OK, answer.parsed.problems
    (judged,) = answer.parsed.judged
    assert judged.refs == ("security-1", "general-1")
    found = judged.finding
    assert (found.location.path, found.location.start_line) == ("app/search.py", 2)
    assert found.severity is Severity.CRITICAL
    assert found.body == "`q` & co. reach the statement; a < b is <b>not</b> safe."
    assert found.suggestion == '    return db.execute("… LIKE ?", (q,))'
    assert [(claim.short_id, claim.state) for claim in answer.parsed.carried] == [
        ("F1", CarriedState.FIXED)
    ]
    assert {event.name for event in events if isinstance(event, ToolCalled)} == {
        "spawn_reviewers",
        "read_patch",
        "read_file",
    }
    assert not any(event.failed for event in events if isinstance(event, ToolCalled))
    assert answer.usage.cost_usd
    assert outcomes[0].usage.model_calls >= 2


@pytest.mark.parametrize(
    ("fault", "sessions"),
    [
        pytest.param({"kind": "rate_limit", "retry_after": 0}, 1, id="429"),
        pytest.param({"kind": "overloaded"}, 1, id="529"),
        pytest.param({"kind": "server_error"}, 1, id="500"),
        pytest.param({"kind": "nonsense", "call": 2}, 2, id="nonsense"),
        pytest.param({"kind": "length", "call": 2}, 2, id="length"),
    ],
)
async def test_a_round_survives_a_fault(
    stage: Stage, fault: dict[str, object], sessions: int
) -> None:
    """One failure of the provider costs a repeat, and the finding is still found."""
    broken = Fault.model_validate({"agent": "security", **fault})
    scenario = SCENARIO.model_copy(update={"faults": (broken,)})
    async with ModelServer(scenario, api_key=KEY) as server, runtime_for(server) as runtime:
        answer, outcomes = await review(stage, runtime, [])
    assert answer.parsed.outcome is ParseOutcome.OK
    assert outcomes[0].status is ParseOutcome.OK
    assert outcomes[0].sessions == sessions
    assert len(answer.parsed.judged) == 1


async def test_a_wrong_key_is_said(stage: Stage) -> None:
    """Authentication is final, at once, and the result says what it is."""
    async with ModelServer(SCENARIO, api_key="another-key-000") as server:
        async with runtime_for(server) as runtime:
            answer, _ = await review(stage, runtime, [])
        calls = server.calls
    assert answer.failure is not None
    assert answer.failure.kind is AgentErrorKind.AUTH
    assert answer.parsed.outcome is ParseOutcome.FAILED
    assert KEY not in answer.failure.message
    assert len(calls) <= 1


async def test_what_is_not_read_is_not_found(stage: Stage) -> None:
    """With an empty patch and an empty tree the scripted model sees nothing: tools are real."""
    empty = replace(stage.workspace, patches={})
    async with ModelServer(SCENARIO, api_key=KEY) as server, runtime_for(server) as runtime:
        answer, _ = await review(Stage(stage.context, empty), runtime, [])
    assert answer.parsed.outcome is ParseOutcome.OK
    assert not answer.parsed.judged
