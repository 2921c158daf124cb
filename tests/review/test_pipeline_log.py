"""The log of a run, from the first plan to the end, and how it is read."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from app.agents.port import AgentTask, ToolCalled
from app.cli.runlog import show, told
from app.domain.runs import AgentName
from app.errors import UserError
from app.telemetry.runlog import read_log
from tests.review.story import BASE, BROKEN, PLANTED, SEARCH, Story, finding, findings

HEAD = {**BASE, SEARCH: PLANTED}


def log_of(story: Story, run: int = 1) -> list[dict[str, Any]]:
    return [dict(line) for line, _ in read_log(story.services.runs / str(run) / "run.jsonl")]


async def test_a_run_says_what_it_did(story: Story) -> None:
    """Plan, calls, each agent's part and use, what became of each finding, and the end."""
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    story.open_pull(HEAD)
    await story.review()
    log = log_of(story)
    kinds = [line["kind"] for line in log]
    assert kinds[0] == "planned"
    assert kinds[-1] == "ended"
    assert log[0]["reviewers"] == ["general"]
    assert log[0]["files"] == [SEARCH]
    (reviewer,) = [line for line in log if line["kind"] == "reviewer"]
    assert (reviewer["reviewer"], reviewer["findings"], reviewer["output_tokens"]) == (
        "general", 1, 10,
    )  # fmt: skip
    (coordinator,) = [line for line in log if line["kind"] == "coordinator"]
    assert coordinator["cost_usd"] == 0.01
    (kept,) = [line for line in log if line["kind"] == "kept"]
    assert (kept["path"], kept["line"], kept["title"]) == (SEARCH, 2, "Search term in the SQL text")


async def test_a_drop_and_its_reason_are_in_the_log(story: Story) -> None:
    """Nobody sees it on the page; here it can be asked for."""

    async def drops(task: AgentTask) -> str:
        await story.model.judge(task)
        out = '<item source="general-1" reason="nitpick">A matter of taste.</item>'
        return story.model.review(task, dropped=out)

    story.model.answers = {
        AgentName.GENERAL: [findings(finding(severity="suggestion"))],
        AgentName.COORDINATOR: [drops],
    }
    story.open_pull(HEAD)
    await story.review()
    (line,) = [line for line in log_of(story) if line["kind"] == "dropped"]
    assert (line["refs"], line["reason"], line["why"]) == (
        ["general-1"], "nitpick", "A matter of taste.",
    )  # fmt: skip


async def test_a_failed_run_ends_its_log_too(story: Story) -> None:
    """With the state and the reason."""
    story.model.answers = {AgentName.GENERAL: [BROKEN], AgentName.COORDINATOR: [BROKEN]}
    story.open_pull(HEAD)
    await story.review()
    last = log_of(story)[-1]
    assert (last["kind"], last["state"]) == ("ended", "failed")
    assert last["reason"]


async def test_every_event_of_a_session_is_in_it(story: Story) -> None:
    """What agents looked up, with their arguments, cleaned of credentials."""
    secret = "ghp_" + "b" * 36
    story.model.events = [ToolCalled("general", "grep", {"pattern": secret}, 9, failed=False)]
    story.open_pull(HEAD)
    await story.review()
    (line, *_) = [line for line in log_of(story) if line["kind"] == "tool"]
    assert (line["session"], line["tool"], line["characters"]) == ("general", "grep", 9)
    assert secret not in json.dumps(log_of(story))


async def test_it_is_shown_to_a_person(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each, time first; `--json` gives the lines as they are; without a log, the newest are
    named."""
    story.open_pull(HEAD)
    await story.review()
    monkeypatch.setenv("MERGEWARD_DATA_DIR", str(story.services.runs.parent))
    out, raw = io.StringIO(), io.StringIO()
    show("1", as_json=False, follow=True, out=out)
    show("1", as_json=True, follow=False, out=raw)
    assert out.getvalue().splitlines()[0][13:].startswith("planned")
    assert "ended" in out.getvalue().splitlines()[-1]
    assert json.loads(raw.getvalue().splitlines()[0])["kind"] == "planned"
    for wrong in ("99", "../1", "x"):
        with pytest.raises(UserError, match="The newest runs: 1"):
            show(wrong, as_json=False, follow=False, out=out)


def test_a_line_for_a_person_is_one_line() -> None:
    """Whatever a model wrote in it; long values are cut and say how long they are."""
    line = {"at": "2026-03-01T12:00:05.250000+00:00", "kind": "text", "session": "security"}
    shown = told({**line, "text": "a\nb" + "x" * 1000})
    assert shown.startswith("12:00:05.250 text             security text=a")
    assert "\n" not in shown
    assert "(1003 characters)" in shown
