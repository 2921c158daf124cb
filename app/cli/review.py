"""`mergeward review`: what is asked for, and what is printed about it.

The review itself is in `review_flow`, which takes a second to load: what is missing or wrong in
the settings is said before that.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from app.agents.configured import direct_runtimes, open_breakers, surroundings_of
from app.cli.loading import loading
from app.cli.output import results_only_on_stdout, tolerate
from app.errors import MergewardError
from app.logs import configure_logging
from app.plugins.configured import plugins_of
from app.plugins.runtimes import Runtimes
from app.settings import LogFormat, Settings, load_settings

if TYPE_CHECKING:
    from app.cli.review_report import Report


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What the person asked for. `fail_on` is a severity or `never`; `output` `text` or `json`."""

    path: Path
    base: str | None
    head: str
    output: str
    fail_on: str


def run(request: ReviewRequest) -> int:
    """Review and print. Returns the exit code; raises MergewardError when nothing was reviewed."""
    configure_logging(log_format=LogFormat.CONSOLE, level="error")
    tolerate(sys.stdout, sys.stderr)
    with results_only_on_stdout() as out:
        try:
            report = asyncio.run(_review(request, load_settings()))
        except MergewardError as error:
            _tell_failure(request, error, out)
            raise
        _tell(request, report, out)
    return report.exit_code


async def _review(request: ReviewRequest, settings: Settings) -> Report:
    plugins = plugins_of(settings)
    async with (
        open_breakers(settings) as breakers,
        Runtimes(direct_runtimes(surroundings_of(settings, breakers))) as runtimes,
        aclosing(plugins),
    ):
        with loading():
            from app.cli.review_flow import review

        return await review(request, plugins, runtimes)


def _tell(request: ReviewRequest, report: Report, out: TextIO) -> None:
    from rich.console import Console

    from app.cli.review_report import print_json, print_text

    if request.output == "json":
        print_json(report.to_json(), out)
    else:
        print_text(report, Console(file=out, highlight=False))


def _tell_failure(request: ReviewRequest, error: MergewardError, out: TextIO) -> None:
    """Machines get a document in any case; the sentence for people is printed by the caller."""
    from app.cli.review_report import print_json, unable

    if request.output == "json":
        print_json(unable(str(error), request.fail_on), out)
