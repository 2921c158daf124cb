"""`api`: answers of the forge in order, played to a review of the whole pipeline."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from app.domain.runs import AgentName
from app.forges.recording.world import HiddenComment
from app.jobs.retry import Wait, after_failure
from app.store.migrate import upgrade
from app.store.session import open_store
from tests.adapters.api_refusals import Refusals, error_of
from tests.adapters.case import Case, only_knows
from tests.review.story import BASE, Story, finding, findings, open_story


async def check(case: Case, tmp_path: Path) -> None:
    if "answers" in case.input:
        seen = _waits(case.input["answers"], datetime.fromisoformat(case.input["now"]))
    else:
        upgrade(f"sqlite:///{tmp_path}/cases.db")
        store = open_store(f"sqlite+aiosqlite:///{tmp_path}/cases.db")
        try:
            seen = await _reviewed(await open_story(store, tmp_path), case.input["calls"])
        finally:
            await store.close()
    only_knows(case.expect, *seen)
    assert {name: seen[name] for name in case.expect} == case.expect


def _waits(answers: list[dict[str, Any]], now: datetime) -> dict[str, Any]:
    """What a job does whose first try ends with each of these answers."""
    then = [after_failure(error_of(answer, now), attempt=1) for answer in answers]
    waits = [round(step.seconds) if isinstance(step, Wait) else None for step in then]
    return {"wait_seconds_about": waits, "retried": [wait is not None for wait in waits]}


async def _reviewed(story: Story, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """A review with a finding for each call: what was refused, what stands where."""
    numbers = range(1, len(calls) + 1)
    threads = [call.get("response", {"thread": {"line": 1}})["thread"] for call in calls]
    story.world.hidden_comments = [
        HiddenComment("m.py", n, kept=thread is not None)
        for n, thread in zip(numbers, threads, strict=True)
        if thread is None or thread["line"] is None
    ]
    refusals = Refusals(story, [call for call in calls if "status" in call])
    story.open_pull({**BASE, "m.py": b"x = 1\n" * len(calls)})
    said = [finding(path="m.py", line=n, title=f"No. {n}", body=f"See {n}.") for n in numbers]
    story.model.answers = {AgentName.GENERAL: [findings(*said)]}
    await story.review()
    body = "".join(story.bodies)
    return {
        "placed": sum(line is not None for _, line in story.open_threads),
        "in_summary": sum(f"See {n}." in body for n in numbers),
        **await refusals.seen(),
    }
