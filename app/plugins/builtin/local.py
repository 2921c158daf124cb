"""`local`: a change in a person's own repository, reviewed from the command line."""

from __future__ import annotations

from app.plugins.builtin.describing import described
from app.plugins.context import ConfigureContext
from app.plugins.facts import RunKind
from app.plugins.port import ReviewPlugin


class LocalPlugin(ReviewPlugin):
    """Describes a change that no forge knows: its words are those of its commits."""

    name = "local"

    def configure(self, context: ConfigureContext) -> None:
        if context.facts.kind is RunKind.LOCAL:
            context.describe_change(described(context.facts))
