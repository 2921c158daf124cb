"""The port for plugins: derive from `ReviewPlugin`, override what you need.

One object serves all runs of a process, many of them at once: what belongs to a run is in the
contexts and must not be kept on the plugin. A plugin is the operator's code and runs in our
process; the contexts give it what is its own, and no way to what others gave.
"""

from __future__ import annotations

from typing import ClassVar

from app.plugins.context import BootstrapContext, ConfigureContext, RunContext


class ReviewPlugin:
    """`name` is up to 40 lower-case letters, digits and hyphens, unique in a process.

    For each run the three steps are called in this order.
    """

    name: ClassVar[str]

    async def bootstrap(self, context: BootstrapContext) -> object:
        """Fetch or read what `configure` will need; what is returned is its `context.prepared`.

        All plugins' at once, 5 seconds for each. A failure is logged, and `prepared` is None.
        """
        return None

    def configure(self, context: ConfigureContext) -> None:
        """Give what is to be given, through the context. One plugin after the other, in order.

        A failure ends the run with an error that names the plugin.
        """

    async def post_configure(self, context: RunContext) -> None:
        """Look at what is going to be reviewed, and add evidence for the reviewers.

        After assembly and planning, all plugins' at once, 2 minutes for each. A failure is logged;
        evidence that was added before it stays.
        """

    async def close(self) -> None:
        """End what this plugin began, at the end of the process. At most 3 seconds; a failure is
        logged."""
