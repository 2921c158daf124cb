from __future__ import annotations

from tests.handoff.fixtures import make_stage, module_store, stage, stage_templates, store
from tests.store.databases import sqlite_template

__all__ = [
    "make_stage",
    "module_store",
    "sqlite_template",
    "stage",
    "stage_templates",
    "store",
]
