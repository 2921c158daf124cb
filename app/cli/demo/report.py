"""What the demo prints: the stories as they happen, checks, and the table at the end."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the story promises, and whether it held."""

    promise: str
    held: bool
    seen: str = ""


@dataclass(slots=True)
class StoryReport:
    """How a story went. `stopped_by` says why its lineage stopped, in the product's own words."""

    number: int
    title: str
    checks: list[Check] = field(default_factory=list)
    rounds: int = 0
    tasks: int = 0
    model_calls: int = 0
    cost_usd: Decimal | None = Decimal(0)
    stopped_by: str = ""

    @property
    def ended_as_told(self) -> bool:
        return bool(self.checks) and all(check.held for check in self.checks)


class Narrator:
    """Speaks on the terminal. Everything that came from a repository is escaped."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)

    def opening(self) -> None:
        self.console.rule("Mergeward demo")
        self.console.print(
            "Everything runs on this machine: a GitHub double, a model server and Mergeward.\n"
            "[bold]The model is scripted.[/bold] It speaks a real provider's wire format and "
            "answers only from\nwhat it was shown, but it is no judge of your code. Costs are what "
            "the named models would cost.\n"
        )

    def story(self, number: int, title: str) -> None:
        self.console.print()
        self.console.print(f"[bold cyan]Story {number}[/bold cyan]  {escape(title)}")

    def say(self, text: str, link: str | None = None) -> None:
        line = f"  {escape(text)}"
        if link is not None:
            line += f"  [link={link}][dim]{escape(link)}[/dim][/link]"
        self.console.print(line, soft_wrap=True)

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """A spinner on a terminal, nothing elsewhere."""
        return self.console.status(f"  {escape(what)}")

    def check(self, check: Check) -> None:
        mark = "[green]✓[/green]" if check.held else "[bold red]✗[/bold red]"
        seen = "" if check.held or not check.seen else f"  [red](seen: {escape(check.seen)})[/red]"
        self.console.print(f"  {mark} {escape(check.promise)}{seen}", soft_wrap=True)

    def table(self, reports: list[StoryReport]) -> None:
        table = Table(title="What it came to", title_justify="left", box=SIMPLE_HEAD)
        for name in (
            "Story",
            "Rounds",
            "Tasks",
            "Model calls",
            "Cost",
            "Why it stopped",
            "As told",
        ):
            table.add_column(name, justify="left" if name in _WORDS else "right")
        for report in reports:
            cost = "unknown" if report.cost_usd is None else f"${report.cost_usd:.4f}"
            table.add_row(
                f"{report.number} {report.title}",
                str(report.rounds),
                str(report.tasks),
                str(report.model_calls),
                cost,
                report.stopped_by,
                "[green]yes[/green]" if report.ended_as_told else "[bold red]no[/bold red]",
            )
        self.console.print()
        self.console.print(table)

    def ending(self, ended_well: bool) -> None:
        if ended_well:
            self.console.print("Every story ended as told.")
        else:
            self.console.print(
                "[bold red]Not every story ended as told; see the ✗ above.[/bold red]"
            )


_WORDS = ("Story", "Why it stopped", "As told")
