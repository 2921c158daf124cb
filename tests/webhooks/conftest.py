from __future__ import annotations

from tests.store.databases import database_url, postgres_schema, sqlite_template, store

__all__ = ["database_url", "postgres_schema", "sqlite_template", "store"]
