"""`mergeward demo`: four stories told end to end, on this machine, with a scripted model."""

from __future__ import annotations

import asyncio

from app.cli.demo.report import Narrator, StoryReport
from app.cli.demo.stage import Props, Stage
from app.cli.demo.stories import STORIES
from app.logs import configure_logging


def run(*, keep: bool = False, stories: tuple[int, ...] = (1, 2, 3, 4)) -> int:
    """Tell the stories; the exit code is 0 only if every one ended as it is told."""
    # The stories provoke refusals on purpose; only what nobody foresaw belongs on the terminal.
    configure_logging(level="error")
    return asyncio.run(tell(keep=keep, stories=stories))


async def tell(
    *,
    keep: bool = False,
    stories: tuple[int, ...] = (1, 2, 3, 4),
    props: Props | None = None,
    narrator: Narrator | None = None,
) -> int:
    """The demo inside a running event loop. `props` replace parts of the product (tests)."""
    voice = narrator or Narrator()
    voice.opening()
    async with Stage(props or Props(), voice) as stage:
        reports: list[StoryReport] = []
        for number in stories:
            reports.append(await STORIES[number](stage))  # noqa: PERF401 - one after the other
        voice.table(reports)
        ended_well = all(report.ended_as_told for report in reports)
        voice.ending(ended_well)
        if keep:
            await stage.keep_running()
    return 0 if ended_well else 1
