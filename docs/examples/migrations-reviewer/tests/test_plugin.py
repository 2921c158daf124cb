"""The plugin's steps, each on its own: no model, no network, no repository."""

from __future__ import annotations

from mergeward_migrations.plugin import HOUSE_RULES, REVIEWER, MigrationsPlugin

from app.domain.runs import AgentName, Tier
from app.git.diff import parse_diff
from app.plugins.context import BootstrapContext, ConfigureContext, RunContext
from app.plugins.contributions import Agent, PromptSection
from app.plugins.facts import RunFacts, RunKind, RunView, no_file

FACTS = RunFacts(RunKind.PULL_REQUEST, "acme/shop", number=7)
DIFF = parse_diff(
    b"diff --git a/migrations/7.sql b/migrations/7.sql\nindex 1..2 100644\n"
    b"--- a/migrations/7.sql\n+++ b/migrations/7.sql\n"
    b"@@ -1,2 +1,2 @@\n SELECT 1;\n-DROP TABLE old;\n+ALTER TABLE users DROP COLUMN email;\n"
)


def view(*reviewers: str) -> RunView:
    return RunView(FACTS, Tier.FULL, tuple(map(AgentName, reviewers)), DIFF.files, no_file)


async def test_house_rules_come_from_before_the_change() -> None:
    """They are a section for this reviewer alone; without a file there is none."""

    async def read(path: str) -> bytes | None:
        return b"Two steps for each column." if path == HOUSE_RULES else None

    plugin = MigrationsPlugin()
    for reader, sections in ((read, 1), (no_file, 0)):
        prepared = await plugin.bootstrap(BootstrapContext(plugin.name, FACTS, reader))
        context = ConfigureContext(plugin.name, FACTS, prepared)
        plugin.configure(context)
        given = context.close().items
        [agent] = [item for item in given if isinstance(item, Agent)]
        assert agent.name == REVIEWER
        assert agent.when.tiers == frozenset(Tier)
        found = [item.added for item in given if isinstance(item, PromptSection)]
        assert [added.agents for added in found] == [frozenset({REVIEWER})] * sections


async def test_added_lines_are_evidence_and_removed_ones_are_not() -> None:
    """With path and line, for the reviewer to check."""
    context = RunContext("migrations", view(REVIEWER))
    await MigrationsPlugin().post_configure(context)
    [evidence] = context.given()
    assert evidence.text == "migrations/7.sql:2: ALTER TABLE"
    assert evidence.agents == frozenset({REVIEWER})


async def test_nobody_reads_it_without_the_reviewer() -> None:
    """A review without a migration costs nothing."""
    context = RunContext("migrations", view("general"))
    await MigrationsPlugin().post_configure(context)
    assert context.given() == ()
