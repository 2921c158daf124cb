"""The plugin: each of its steps does one thing, and keeps nothing from one run to another."""

from __future__ import annotations

import re
from importlib.resources import files

from app.domain.diff import LineKind
from app.domain.runs import Tier
from app.plugins.context import BootstrapContext, ConfigureContext, RunContext
from app.plugins.contributions import RunWhen
from app.plugins.port import ReviewPlugin

REVIEWER = "acme_migrations"
HOUSE_RULES = ".github/migrations.md"
MIGRATIONS = ("migrations/**", "db/migrate/**", "*.sql")

_RISKY = re.compile(
    r"\b(DROP\s+(?:TABLE|COLUMN)|TRUNCATE|ALTER\s+TABLE|LOCK\s+TABLE|drop_(?:table|column))\b",
    re.IGNORECASE,
)
_MOST_LINES = 100


class MigrationsPlugin(ReviewPlugin):
    """Adds the reviewer, its house rules, and the lines that it should look at first."""

    name = "migrations"

    async def bootstrap(self, context: BootstrapContext) -> object:
        """The house rules as they were before the change, so that no change softens its own."""
        rules = await context.read(HOUSE_RULES)
        return None if rules is None else rules.decode("utf-8", "replace")

    def configure(self, context: ConfigureContext) -> None:
        prompt = files("mergeward_migrations").joinpath("reviewer.md")
        when = RunWhen(tiers=frozenset(Tier), paths=MIGRATIONS)
        context.agent(REVIEWER, prompt, when=when)
        if isinstance(context.prepared, str):
            context.prompt_section("House rules", context.prepared, agents=[REVIEWER])

    async def post_configure(self, context: RunContext) -> None:
        if REVIEWER not in context.reviewers:
            return
        found = [
            f"{change.path}:{line.new}: {match.group(0)}"
            for change in context.changes
            for hunk in change.hunks
            for line in hunk.lines
            if line.kind is LineKind.ADDED and (match := _RISKY.search(line.text))
        ]
        context.evidence("Statements", "\n".join(found[:_MOST_LINES]), agents=[REVIEWER])
