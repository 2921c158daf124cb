"""`mergeward db`: the tables, moved to a revision, and where they are then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sqlalchemy import make_url

from app.errors import UserError
from app.settings import load_settings
from app.store.migrate import HEAD, current_revision, downgrade, upgrade
from app.store.session import open_store


def go_up(revision: str) -> None:
    """Bring the tables to `revision` (`head`: the newest) and say where they are."""
    _move(upgrade, revision)


def go_down(revision: str) -> None:
    """Take the tables back to `revision` (`base`: none) and say where they are."""
    _move(downgrade, revision)


def _move(action: Callable[[str, str], None], revision: str) -> None:
    from alembic.util.exc import CommandError

    url = load_settings().async_database_url
    try:
        action(url, revision)
    except CommandError as error:
        raise UserError(
            f"The revision {revision!r} can't be reached: {error}. The newest is {HEAD}; 'head' "
            "means that one, 'base' means no tables at all."
        ) from None
    place = make_url(url).render_as_string(hide_password=True)
    print(f"{place} is at revision {asyncio.run(_where(url)) or 'none'}; the newest is {HEAD}.")


async def _where(url: str) -> str | None:
    store = open_store(url)
    try:
        return await current_revision(store)
    finally:
        await store.close()
