"""Puts the product together: settings in, stories out. The only place that knows all the layers.

Everything a test or the demo may want to replace is a field of `Parts`; nothing is patched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from app.agents.configured import direct_runtimes, open_breakers, price_of_settings, surroundings_of
from app.agents.port import Runtime
from app.commands.check_actions import handle_check_action
from app.commands.flow import handle_comment
from app.commands.flow import report_failure as report_comment
from app.commands.services import CommandServices
from app.control.routing import Routing
from app.domain.jobs import AppRole, JobKind
from app.domain.policy import SpendCaps
from app.errors import ConfigurationError
from app.fixer.flow import report_failure as report_turn
from app.fixer.flow import run_fix_task
from app.fixer.services import FixerServices
from app.forges.github.app import GitHubApp
from app.forges.github.writes import GitHubForge
from app.forges.port import Forge
from app.git.mirror import Mirrors
from app.git.worktrees import sweep_checkouts
from app.handoff.flow import close_pull_request
from app.handoff.services import HandoffServices, PlanMerged
from app.jobs.context import JobContext
from app.jobs.worker import AfterFailure, Story
from app.logs import keep_secrets_of, redact
from app.main import Services
from app.plugins.configured import plugins_of
from app.plugins.facts import RunFacts, RunKind, no_file
from app.plugins.lifecycle import PluginHost
from app.plugins.runtimes import MakeRuntime, Runtimes
from app.reconcile.installations import sync_installation
from app.reconcile.services import ReconcileServices
from app.review.context import write_run_files
from app.review.pipeline import report_failure as report_review
from app.review.pipeline import review_pull_request
from app.review.services import ReviewServices, WriteRunFiles
from app.settings import Settings
from loop_guards import plan_merged

OpenForge = Callable[[], AbstractAsyncContextManager[Forge]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the stories may be built from instead of what the settings say."""

    make_runtime: MakeRuntime | None = None
    around_forge: Callable[[AppRole, Forge], Forge] | None = None
    write_files: WriteRunFiles = write_run_files
    plan_merged: PlanMerged = plan_merged


@dataclass(frozen=True, slots=True)
class Table:
    """Job kind to story, and who is told when a job has failed for good."""

    stories: Mapping[JobKind, Story]
    after_failure: Mapping[JobKind, AfterFailure]


@dataclass(frozen=True, slots=True)
class Models:
    """Where a story's sessions run, and on which models."""

    runtime: Runtime
    routing: Routing


@dataclass(frozen=True, slots=True)
class Assembled:
    """What comes of the plugins: each review is configured anew, the fixer once at the start."""

    plugins: PluginHost
    runtimes: Runtimes
    fixer: Models


@asynccontextmanager
async def open_table(services: Services, parts: Parts | None = None) -> AsyncIterator[Table]:
    """All stories with what they need, closed at the end. Raises ConfigurationError."""
    chosen = parts or Parts()
    settings = services.settings
    keep_secrets_of(settings)
    async with AsyncExitStack() as stack:
        plugins = plugins_of(settings)
        stack.push_async_callback(plugins.aclose)
        breakers = await stack.enter_async_context(open_breakers(settings))
        around = surroundings_of(settings, breakers)
        runtimes = Runtimes(chosen.make_runtime or direct_runtimes(around))
        await stack.enter_async_context(runtimes)
        # What is wrong with a plugin, or missing in the settings, is said before any job begins.
        fixing = await plugins.configured(RunFacts(RunKind.FIX, repository=""), no_file)
        fixer = Models(await runtimes.for_run(fixing), fixing.routing)
        await sweep_checkouts(settings.data_dir / "work")
        yield _table(settings, chosen, Assembled(plugins, runtimes, fixer))


def _table(settings: Settings, parts: Parts, assembled: Assembled) -> Table:
    open_forge, open_at_once = _openers(settings, AppRole.REVIEWER, parts)
    mirrors = Mirrors(settings.data_dir / "mirrors", settings.mirror_quota_bytes)
    ours = our_logins(settings)
    review = ReviewServices(
        open_forge=open_forge,
        mirrors=mirrors,
        plugins=assembled.plugins,
        runtimes=assembled.runtimes,
        runs=settings.data_dir / "runs",
        our_logins=ours,
        write_files=parts.write_files,
        price=price_of_settings(settings),
        installation_caps=SpendCaps(
            day_usd=settings.spend_day_usd, month_usd=settings.spend_month_usd
        ),
    )

    async def tell_review(job: JobContext, error: BaseException) -> None:
        await report_review(job, error, review)

    handoff = HandoffServices(open_at_once, mirrors, ours, parts.plan_merged)
    commands = CommandServices(open_at_once, mirrors, ours)
    open_fixer = _openers(settings, AppRole.FIXER, parts)[0] if settings.fixer else None
    reconcile = ReconcileServices(open_forge, open_fixer)
    stories: dict[JobKind, Story] = {
        JobKind.REVIEW_PULL_REQUEST: partial(review_pull_request, services=review),
        JobKind.CLOSE_PULL_REQUEST: partial(close_pull_request, services=handoff),
        JobKind.HANDLE_COMMENT: partial(handle_comment, services=commands),
        JobKind.HANDLE_CHECK_ACTION: partial(handle_check_action, services=commands),
        JobKind.SYNC_INSTALLATION: partial(sync_installation, services=reconcile),
    }
    fixer = FixerServices(
        open_forge=open_fixer or open_forge,
        open_reviewer=open_forge,
        mirrors=mirrors,
        runtime=assembled.fixer.runtime,
        routing=assembled.fixer.routing,
        work=settings.data_dir / "work",
    )
    stories[JobKind.RUN_FIX_TASK] = (
        partial(run_fix_task, services=fixer) if open_fixer is not None else _nobody_fixes
    )
    after_failure: dict[JobKind, AfterFailure] = {
        JobKind.REVIEW_PULL_REQUEST: tell_review,
        JobKind.HANDLE_COMMENT: partial(report_comment, services=commands),
        JobKind.RUN_FIX_TASK: partial(report_turn, services=fixer),
    }
    return Table(stories, after_failure)


async def _nobody_fixes(job: JobContext) -> None:
    """Without a fixer App a task fails at once and says so, instead of waiting for ever."""
    raise ConfigurationError(
        "No fixer App is configured: set MERGEWARD_FIXER_APP_ID, its slug and its private key."
    )


def _openers(settings: Settings, role: AppRole, parts: Parts) -> tuple[OpenForge, OpenForge]:
    """Two ways to open a forge as one of our Apps: for what can wait, and for what a person waits
    for. Tokens and the pace of writing are shared by all jobs of the process."""
    reviewer = role is AppRole.REVIEWER
    credentials = settings.require_reviewer() if reviewer else settings.require_fixer()
    app = GitHubApp.from_settings(settings, credentials)

    @asynccontextmanager
    async def opened(*, urgent: bool) -> AsyncIterator[Forge]:
        # A last look at everything that leaves: whatever was forgotten above, no secret goes out.
        async with GitHubForge(app, outgoing=redact, urgent=urgent) as forge:
            yield parts.around_forge(role, forge) if parts.around_forge else forge

    return partial(opened, urgent=False), partial(opened, urgent=True)


def our_logins(settings: Settings) -> frozenset[str]:
    """The bot logins of our Apps, as far as their slugs are configured."""
    slugs = (settings.reviewer_slug, settings.fixer_slug)
    return frozenset(f"{slug}[bot]" for slug in slugs if slug)
