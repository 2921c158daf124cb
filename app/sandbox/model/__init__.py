"""A model provider that needs no model: the Anthropic Messages API, scripted by a scenario.

It knows nothing but the request at hand. A finding is made if and only if the planted line was in
a tool result of that conversation; a fix if and only if the task named the finding and the file
was read.
"""

from __future__ import annotations

from app.sandbox.model.demo import STORIES, load_demo_repository, load_story_files
from app.sandbox.model.errors import ScenarioError
from app.sandbox.model.scenario import (
    FaultKind,
    Scenario,
    load_scenario,
    parse_scenario,
    shipped_scenarios,
)
from app.sandbox.model.server import ModelServer
from app.sandbox.model.service import RecordedCall

__all__ = [
    "STORIES",
    "FaultKind",
    "ModelServer",
    "RecordedCall",
    "Scenario",
    "ScenarioError",
    "load_demo_repository",
    "load_scenario",
    "load_story_files",
    "parse_scenario",
    "shipped_scenarios",
]
