"""The commands, their options and their help. What they do is in the module each one imports."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

cli = typer.Typer(
    name="mergeward",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="AI reviewers for pull requests, and bots that fix what was found without ever looping.",
    epilog="Settings are environment variables that start with MERGEWARD_; see the README. "
    "Exit code 0: done; 1: findings, or a story of the demo that did not end as told; "
    "2: it could not be carried out, and the last line says why.",
)
database = typer.Typer(no_args_is_help=True, help="The database's tables.")
policy = typer.Typer(no_args_is_help=True, help="The repository's policy file.")
cli.add_typer(database, name="db")
cli.add_typer(policy, name="policy")


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class Provider(StrEnum):
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


class FailOn(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    SUGGESTION = "suggestion"
    NEVER = "never"


@cli.command()
def demo(
    keep: Annotated[bool, typer.Option(help="Leave everything running until Ctrl-C.")] = False,
    story: Annotated[
        list[int] | None, typer.Option(min=1, max=4, help="Tell only this story (repeatable).")
    ] = None,
) -> None:
    """Tell four stories end to end on this machine: no key, no network, a scripted model.

    Starts a GitHub double, a model server and Mergeward on free loopback ports. The exit code is 0
    only if every story ended as it is told.
    """
    from app.cli.demo import run

    raise typer.Exit(run(keep=keep, stories=tuple(story or (1, 2, 3, 4))))


@cli.command()
def review(
    path: Annotated[Path, typer.Argument(help="A git repository.")] = Path(),
    base: Annotated[
        str | None,
        typer.Option(help="Compare with this commit or branch. Default: the default branch."),
    ] = None,
    head: Annotated[str, typer.Option(help="The commit or branch to review.")] = "HEAD",
    output: Annotated[OutputFormat, typer.Option("--format", help="How to print.")] = (
        OutputFormat.TEXT
    ),
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 for findings at or above this severity.")
    ] = FailOn.CRITICAL,
) -> None:
    """Review committed changes of a local repository in the terminal.

    Needs ANTHROPIC_API_KEY or OPENAI_API_KEY, or MERGEWARD_MODEL_BASE_URL (and, if it wants one,
    MERGEWARD_MODEL_API_KEY) for a server that speaks Anthropic's Messages API. The changed files
    and what reviewers look up are sent there.

    Findings go to stdout, progress to stderr. Exit code 0: everything was read and nothing is at
    or above --fail-on; 1: something is; 2: the change could not be reviewed, or not completely.
    """
    from app.cli.review import ReviewRequest, run

    request = ReviewRequest(path, base, head, output.value, fail_on.value)
    raise typer.Exit(run(request))


@cli.command("spend")
def show_spend(
    repository: Annotated[
        str | None, typer.Option(help="Only this repository, as owner/name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what models cost today and this month (UTC), repository by repository.

    Exit code 0: shown; 2: the database can't be read, or the repository has used nothing.
    """
    from app.cli.spend import show

    show(repository, as_json=as_json)


@cli.command("log")
def show_log(
    run: Annotated[str, typer.Argument(help="Number of the run, as its check and review name it.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until the run has ended.")
    ] = False,
) -> None:
    """Show what a run of this machine did: sessions, calls, tools, silences, and every judgement.

    Exit code 0: shown; 2: there is no log of that run here.
    """
    from app.cli.runlog import show

    show(run, as_json=as_json, follow=follow)


@cli.command()
def agents(
    policy_file: Annotated[
        Path | None, typer.Option("--policy", help="Show them under this policy file.")
    ] = None,
    provider: Annotated[
        Provider | None,
        typer.Option(help="Show the shipped models of this one, whatever is configured."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show who reviews which tier, on which models (failback after `>`), with which prompt.

    As a review with the settings of now would be put together, plugins included. Without a key or
    an address of models the shipped ones are shown. Exit code 0: shown; 2: the policy file, a
    setting or a plugin can't be used.
    """
    from app.cli.agents import show

    show(policy_file, provider.value if provider else None, as_json=as_json)


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = None,
    web_only: Annotated[
        bool, typer.Option("--web-only", help="Receive webhooks, run no jobs.")
    ] = False,
) -> None:
    """Receive webhooks and work on them, in one process.

    Prints the address it listens on; SIGTERM or Ctrl-C ends it once what it works on is safe.
    Exit code 0: it was asked to end; 2: a setting is missing or wrong, or the port is taken.
    """
    from app.cli.loading import loading

    with loading():
        from app.cli.serve import run

    overrides = {"host": host, "port": port}
    run({name: value for name, value in overrides.items() if value is not None}, web_only=web_only)


@database.command("upgrade")
def database_upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head",
) -> None:
    """Bring the tables to a revision (the newest by default) and say where they are.

    Exit code 0: they are there; 2: the database could not be reached or changed.
    """
    from app.cli.database import go_up

    go_up(revision)


@database.command("downgrade")
def database_downgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go back to; 'base' drops all.")],
) -> None:
    """Take the tables back to an older revision. Data of the tables that go is lost.

    Exit code 0: they are there; 2: the database could not be reached or changed.
    """
    from app.cli.database import go_down

    go_down(revision)


@policy.command("check")
def policy_check(
    file: Annotated[Path, typer.Argument(help="The policy file.")] = Path(".github/mergeward.yml"),
) -> None:
    """Say whether a policy file is valid, and the gist of it.

    Exit code 0: valid; 2: not, and each wrong line and key is named.
    """
    from app.cli.policy import check

    check(file)


@policy.command("explain")
def policy_explain(
    file: Annotated[Path, typer.Argument(help="The policy file.")] = Path(".github/mergeward.yml"),
) -> None:
    """Say in plain sentences what a policy file does.

    Exit code 0: said; 2: the file is not valid, and each wrong line and key is named.
    """
    from app.cli.policy import explain

    explain(file)


@cli.command()
def version() -> None:
    """Print the version. Exit code 0."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        typer.echo(installed("mergeward"))
    except PackageNotFoundError:
        typer.echo("not installed, run from its source")
