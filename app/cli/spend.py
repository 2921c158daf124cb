"""`mergeward spend`: what models cost, repository by repository."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, TextIO

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from app.cli.output import one_line
from app.clock import SystemClock
from app.errors import UserError
from app.settings import Settings, load_settings
from app.store.migrate import HEAD, behind, current_revision
from app.store.session import open_store
from app.store.spend import Spent, spent_by_repository


def show(repository: str | None, *, as_json: bool, out: TextIO = sys.stdout) -> None:
    """Print today's and this month's spend. Raises UserError for a repository without any, and
    for a database that does not answer or has other tables."""
    found = asyncio.run(_spent(load_settings()))
    if repository is not None:
        found = tuple(one for one in found if one.repository.lower() == repository.lower())
        if not found:
            raise UserError(f"{repository} has used nothing this month, or is not installed here.")
    if as_json:
        out.write(json.dumps([_json(one) for one in found]) + "\n")
        return
    out.write(f"{'repository':40}{'today':>12}{'this month':>14}  (UTC)\n")
    for one in found:
        out.write(f"{one_line(one.repository):40}{_usd(one.day):>12}{_usd(one.month):>14}\n")
        if one.unpriced_tokens:
            out.write(f"  and {one.unpriced_tokens:,} tokens whose price is unknown\n")
    if not found:
        out.write("Nothing was used this month.\n")


async def _spent(settings: Settings) -> tuple[Spent, ...]:
    store = open_store(settings.async_database_url)
    try:
        if (revision := await current_revision(store)) != HEAD:
            raise UserError(behind(revision))
        async with store.read() as session:
            return await spent_by_repository(session, SystemClock().now())
    except (SQLAlchemyError, OSError) as error:
        place = make_url(settings.async_database_url).render_as_string(hide_password=True)
        raise UserError(f"The database {place} does not answer ({type(error).__name__}).") from None
    finally:
        await store.close()


def _usd(amount: Any) -> str:
    return f"${amount:,.2f}"


def _json(one: Spent) -> dict[str, Any]:
    return {
        "repository": one.repository,
        "day_usd": str(one.day),
        "month_usd": str(one.month),
        "unpriced_tokens": one.unpriced_tokens,
    }
