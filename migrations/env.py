"""Alembic's entry point. It is handed an open connection; `app.store.migrate` says which."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from app.store import types
from app.store.tables import METADATA

_FROZEN = {
    types.SafeText: "sa.Text()",
    types.UtcDateTime: "sa.DateTime(timezone=True)",
    types.EnumText: "sa.String(length=40)",
    types.MicroDollars: "sa.BigInteger()",
    types.SafeJson: "sa.JSON().with_variant(JSONB(), 'postgresql')",
}


def render_frozen(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:
    """Write our column types as plain ones: a migration must not change when `app` does."""
    if kind != "type" or type(item) not in _FROZEN:
        return False
    if isinstance(item, types.SafeJson):
        autogen_context.imports.add("from sqlalchemy.dialects.postgresql import JSONB")
    return _FROZEN[type(item)]


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    render_item=render_frozen,
    render_as_batch=True,  # SQLite can add columns and tables, and must copy for all else
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
