"""`api`: answers of the forge in order, played to a review of the whole pipeline."""

from __future__ import annotations

from pathlib import Path

from app.domain.runs import AgentName
from app.forges.recording.world import HiddenComment
from app.store.migrate import upgrade
from app.store.session import open_store
from tests.adapters.case import Case, only_knows
from tests.review.story import BASE, finding, findings, open_story


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "placed", "in_summary")
    upgrade(f"sqlite:///{tmp_path}/cases.db")
    store = open_store(f"sqlite+aiosqlite:///{tmp_path}/cases.db")
    try:
        story = await open_story(store, tmp_path)
        threads = [call["response"]["thread"] for call in case.input["calls"]]
        story.world.hidden_comments = [
            HiddenComment("m.py", n, kept=thread is not None)
            for n, thread in enumerate(threads, start=1)
            if thread is None or thread["line"] is None
        ]
        story.open_pull({**BASE, "m.py": b"x = 1\n" * len(threads)})
        said = [
            finding(path="m.py", line=n, title=f"Finding {n}", body=f"What happens at {n}.")
            for n in range(1, len(threads) + 1)
        ]
        story.model.answers = {AgentName.GENERAL: [findings(*said)]}
        await story.review()
        placed = sum(line is not None for _, line in story.open_threads)
        in_summary = sum(
            f"What happens at {n}." in story.bodies[-1] for n in range(1, len(threads) + 1)
        )
    finally:
        await store.close()
    assert placed == case.expect.get("placed", placed)
    assert in_summary == case.expect.get("in_summary", in_summary)
