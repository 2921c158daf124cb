"""Puts the product together: settings in, stories out. The only place that knows all the layers.

Everything a test or the demo may want to replace is a field of `Parts`; nothing is patched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from app.agents.port import Runtime
from app.agents.redact import redact
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.control.routing import Routing, shipped_routing
from app.domain.jobs import AppRole, JobKind
from app.errors import ConfigurationError
from app.forges.github.app import GitHubApp
from app.forges.github.writes import GitHubForge
from app.forges.port import Forge
from app.git.mirror import Mirrors
from app.jobs.context import JobContext
from app.jobs.worker import AfterFailure, Story
from app.main import Services
from app.review.pipeline import report_failure, review_pull_request
from app.review.services import ReviewServices
from app.settings import Settings

OpenForge = Callable[[], AbstractAsyncContextManager[Forge]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the stories may be built from instead of what the settings say."""

    runtime: Runtime | None = None
    around_forge: Callable[[AppRole, Forge], Forge] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Job kind to story, and who is told when a job has failed for good."""

    stories: Mapping[JobKind, Story]
    after_failure: Mapping[JobKind, AfterFailure]


@asynccontextmanager
async def open_table(services: Services, parts: Parts | None = None) -> AsyncIterator[Table]:
    """All stories with what they need, closed at the end. Raises ConfigurationError."""
    chosen = parts or Parts()
    settings = services.settings
    async with AsyncExitStack() as stack:
        runtime = chosen.runtime
        if runtime is None:
            runtime = await stack.enter_async_context(runtime_of(settings))
        review = ReviewServices(
            open_forge=_opener(settings, AppRole.REVIEWER, chosen),
            mirrors=Mirrors(settings.data_dir / "mirrors"),
            runtime=runtime,
            routing=routing_of(settings),
            runs=settings.data_dir / "runs",
            our_logins=our_logins(settings),
        )
        yield _table(review)


def _table(review: ReviewServices) -> Table:
    async def tell_review(job: JobContext, error: BaseException) -> None:
        await report_failure(job, error, review)

    return Table(
        stories={
            JobKind.REVIEW_PULL_REQUEST: partial(review_pull_request, services=review),
        },
        after_failure={JobKind.REVIEW_PULL_REQUEST: tell_review},
    )


def _opener(settings: Settings, role: AppRole, parts: Parts) -> OpenForge:
    """Opens a forge as one of our Apps. Tokens are shared by all jobs of the process."""
    reviewer = role is AppRole.REVIEWER
    credentials = settings.require_reviewer() if reviewer else settings.require_fixer()
    app = GitHubApp.from_settings(settings, credentials)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Forge]:
        # A last look at everything that leaves: whatever was forgotten above, no secret goes out.
        async with GitHubForge(app, outgoing=redact) as forge:
            yield parts.around_forge(role, forge) if parts.around_forge else forge

    return opened


def our_logins(settings: Settings) -> frozenset[str]:
    """The bot logins of our Apps, as far as their slugs are configured."""
    slugs = (settings.reviewer_slug, settings.fixer_slug)
    return frozenset(f"{slug}[bot]" for slug in slugs if slug)


def routing_of(settings: Settings) -> Routing:
    """The configured provider with its shipped chains, or the operator's one model."""
    uses_openai = settings.anthropic_api_key is None and settings.model_base_url is None
    return shipped_routing("openai" if uses_openai else "anthropic", override=settings.model)


def runtime_of(settings: Settings) -> DirectRuntime:
    """The `direct` runtime with every provider that can be reached. Raises ConfigurationError."""
    providers = []
    key = settings.model_api_key if settings.model_base_url else settings.anthropic_api_key
    if key is not None or settings.model_base_url is not None:
        secret = key.get_secret_value() if key else "not-needed"
        providers.append(
            ProviderSettings("anthropic", WireFormat.ANTHROPIC, secret, settings.model_base_url)
        )
    if settings.openai_api_key is not None:
        secret = settings.openai_api_key.get_secret_value()
        providers.append(ProviderSettings("openai", WireFormat.OPENAI, secret))
    if not providers:
        raise ConfigurationError(
            "No model can be reached: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or "
            "MERGEWARD_MODEL_BASE_URL for a compatible server."
        )
    return DirectRuntime(providers)
