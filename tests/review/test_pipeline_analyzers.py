"""What analyzers say in a real review: heard by reviewers, and by nobody else."""

from __future__ import annotations

from dataclasses import replace

from app.control.routing import shipped_routing
from app.plugins.analyzers import AnalyzersPlugin
from app.plugins.analyzers.shipped import SHIPPED
from tests.review.story import BASE, SEARCH, Story, plugins

SHELL = b"import os\n\n\ndef search(q):\n    os.system(q)\n    return missing_name\n"


async def test_an_analyzer_alone_makes_no_finding(story: Story) -> None:
    """The reviewer is told and reports nothing: nothing is published, stored or blocking."""
    host = plugins(shipped_routing("anthropic"), AnalyzersPlugin(SHIPPED))
    story.services = replace(story.services, plugins=host)
    story.open_pull({**BASE, SEARCH: SHELL})
    await story.review()
    prompts = {task.agent.value: task.prompt for task in story.model.tasks}
    assert f"{SEARCH}:6: F821" in prompts["general"]
    assert f"{SEARCH}:5: B605" in prompts["general"]
    assert "F821" not in prompts["coordinator"]
    assert "B605" not in prompts["coordinator"]
    assert await story.findings() == []
    assert story.open_threads == []
    published = str(story.world)
    assert "F821" not in published
    assert "B605" not in published
