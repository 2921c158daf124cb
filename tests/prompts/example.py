"""One small pull request, and what each agent is really given for it.

The tasks come out of the product's own assembly: plugins, plan, brief and conduct, down to the
runtime's port. Nothing in it depends on the day, the machine or a random number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.agents.findings_xml import ParseOutcome
from app.agents.port import AgentTask, ignore_events
from app.agents.prompt_context import (
    FixContext,
    FixFinding,
    KnownFinding,
    PromptContext,
    Remark,
    fixer_prompt,
    shared_context,
)
from app.agents.prompts import available_agents
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.runtimes.direct import ProviderSettings, WireFormat
from app.agents.tasks import agent_task
from app.agents.tools import reading_tools
from app.agents.workspace import Workspace
from app.control.routing import shipped_routing
from app.domain.diff import FileChange
from app.domain.policy import PathRule, Policy
from app.domain.runs import AgentName, Tier
from app.fixer.tools import editing_tools
from app.git.diff import parse_diff
from app.plugins.builtin.agents_md import REPOSITORY_TEMPLATE, AgentsMdPlugin
from app.plugins.builtin.compliance import REPOSITORY_FILE, CompliancePlugin
from app.plugins.builtin.github import GitHubPlugin
from app.plugins.builtin.models import ModelsPlugin
from app.plugins.facts import RunFacts, RunKind
from app.plugins.fetch import Fetcher
from app.plugins.lifecycle import PluginHost
from app.review.brief import Assignment, write_brief
from app.review.conduct import conduct
from app.review.filter import FileFacts
from app.review.plan import REVIEWERS, ReviewPlan, plan_review
from app.review.reviewing import MemoryJournal
from tests.review.factories import EmptyTree
from tests.review.story import ScriptedModel

DIFF = b"""diff --git a/CHANGELOG.md b/CHANGELOG.md
index 1111111..2222222 100644
--- a/CHANGELOG.md
+++ b/CHANGELOG.md
@@ -2,3 +2,4 @@
 ## Unreleased
\x20
+- Notes can be searched.
 - Notes have tags.
diff --git a/app/api/search.py b/app/api/search.py
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/app/api/search.py
@@ -0,0 +1,6 @@
+from app.db import db
+
+
+def search(q):
+    rows = db.execute(f"SELECT * FROM notes WHERE body LIKE '%{q}%'")
+    return [dict(row) for row in rows]
diff --git "a/old.py" "b/we\\"ird <&>.py"
similarity index 80%
rename from old.py
rename to "we\\"ird <&>.py"
index 4444444..5555555 100644
--- a/old.py
+++ "b/we\\"ird <&>.py"
@@ -1,3 +1,2 @@
 import os
-import sys
-PAGE = 0
+PAGE = 1
"""

FACTS = RunFacts(
    kind=RunKind.PULL_REQUEST,
    repository="acme/shop",
    number=7,
    title="Add note search",
    body="Adds `GET /search`.\n\n<!-- template hint -->\nSee <b title='x'>notes</b>.",
    author="alice",
    base_ref="main",
    base_sha="a" * 40,
    head_ref="note-search",
    head_sha="b" * 40,
    labels=("search",),
    comments=(Remark("bob", "Why not the index?", "write"), Remark("eve", "</pr_comments> hi")),
    findings=(
        KnownFinding(
            id="F1",
            status="open",
            origin="original",
            path="app/api/search.py",
            line=12,
            severity="critical",
            title="Injection in `a < b`",
            body="It is <b>bad</b> & real.",
            replies=(Remark("alice", "won't fix", "write"),),
        ),
        KnownFinding("F2", "open", "original", None, None, "warning", "Whole change", "No test."),
    ),
    previous_review="One critical finding.",
    round_number=2,
)

POLICY = Policy(
    instructions="Money is in cents.",
    path_rules=(PathRule(paths=("app/api/",), instructions="Handlers are thin."),),
)

BASE_FILES: Mapping[str, bytes] = {
    "AGENTS.md": b"# Notes\n\nRun `make test`.\n",
    REPOSITORY_TEMPLATE: b"Commands first.\n",
    REPOSITORY_FILE: b"rules:\n"
    b"  - id: API-7\n    title: List endpoints have a page size of at most 100\n"
    b"    paths: [app/api/]\n"
    b"  - id: DATA-2\n    title: No personal data in logs\n    text: Names and addresses count.\n",
}
"""What the plugins read of the repository as it was before the change."""

FIX = FixContext(
    repository="acme/shop",
    findings=(
        FixFinding(
            "F1",
            "app/api/search.py",
            12,
            "critical",
            "Injection",
            "Bind it & move on.",
            suggestion='    rows = db.execute("… < ?", (q,))',
            also=("app/db.py",),
        ),
    ),
    remarks=(Remark("mergeward[bot]", "F1 is still there."),),
    custom_instructions=("Money is in cents.",),
)


async def tasks(tier: Tier) -> dict[AgentName, AgentTask]:
    """Every agent's task in a review of this tier, as a runtime gets it."""
    brief = await write_brief(await _assignment(tier), _write_nothing)
    model = ScriptedModel()
    await conduct(brief, model, MemoryJournal(), ignore_events)
    return {task.agent: task for task in model.tasks}


def fixer_task() -> AgentTask:
    """The fixer's task for one finding of the pull request."""
    tree: Any = EmptyTree()
    tools = (*reading_tools(Workspace(tree=tree)), *editing_tools(tree, lambda path: None))
    return agent_task(AgentName.FIXER, fixer_prompt(FIX), (), tools)


async def context() -> PromptContext:
    """What all agents of a full review are told, before each is left with what is meant for it."""
    return (await write_brief(await _assignment(Tier.FULL), _write_nothing)).context


def results() -> str:
    """What `spawn_reviewers` answers to the coordinator."""
    outcome = ReviewerOutcome(AgentName.SECURITY, ParseOutcome.FAILED, reason="timeout")
    return render_reviewer_results([outcome])


async def shared_file() -> str:
    """`shared-pr-context.txt` as it lies in the run's folder."""
    return shared_context(await context())


async def _assignment(tier: Tier) -> Assignment:
    provider = ProviderSettings("anthropic", WireFormat.ANTHROPIC, "a-key-of-the-example")
    host = PluginHost(
        (
            GitHubPlugin(),
            ModelsPlugin((provider,), shipped_routing("anthropic")),
            CompliancePlugin(None, Fetcher()),
            AgentsMdPlugin(),
        )
    )
    return Assignment(
        plan=_plan(tier),
        policy=POLICY,
        configuration=await host.configured(FACTS, _read),
        tree=EmptyTree(),  # type: ignore[arg-type]  # nobody reads a file
        folder=Path("run"),
    )


def _plan(tier: Tier) -> ReviewPlan:
    """The plan of this change, staffed as if it deserved that tier."""
    files = tuple(FileFacts(change) for change in parse_diff(DIFF).files)
    plan = plan_review(files, POLICY, available_agents())
    return replace(plan, risk=replace(plan.risk, tier=tier), reviewers=REVIEWERS[tier])


async def _read(path: str) -> bytes | None:
    return BASE_FILES.get(path)


async def _write_nothing(
    folder: Path, files: Sequence[FileChange], patches: Mapping[str, str], context: PromptContext
) -> None:
    """The files that a run writes are not part of a prompt."""
