"""What reconciling needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from app.forges.port import Forge

OpenForge = Callable[[], AbstractAsyncContextManager[Forge]]


@dataclass(frozen=True, slots=True)
class ReconcileServices:
    """`open_fixer` is None where only the reviewer App is set up."""

    open_reviewer: OpenForge
    open_fixer: OpenForge | None = None
