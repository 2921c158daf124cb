"""The parts of a running double, as its request handlers see them."""

from __future__ import annotations

from dataclasses import dataclass

from app.sandbox.github.events import Events
from app.sandbox.github.gitstore import GitStore
from app.sandbox.github.hooks import Hooks
from app.sandbox.github.identity import Identity
from app.sandbox.github.limits import Faults, Limits
from app.sandbox.github.render import Renderer
from app.sandbox.github.world import World


@dataclass
class Hub:
    """Everything that one double owns; `url` has no slash at its end."""

    url: str
    world: World
    git: GitStore
    identity: Identity
    hooks: Hooks
    events: Events
    render: Renderer
    limits: Limits
    faults: Faults
    control_token: str
