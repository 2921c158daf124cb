"""Models as the operator configured them: which providers can be reached, and who runs on what."""

from __future__ import annotations

from functools import partial

from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, Surroundings, WireFormat
from app.control.routing import Routing, shipped_routing
from app.settings import Settings


def routing_of(settings: Settings) -> Routing:
    """The configured provider with its shipped chains, or the operator's one model."""
    uses_openai = settings.anthropic_api_key is None and settings.model_base_url is None
    return shipped_routing("openai" if uses_openai else "anthropic", override=settings.model)


def providers_of(settings: Settings) -> tuple[ProviderSettings, ...]:
    """Every provider that the settings give a key or an address for; () for none."""
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
    return tuple(providers)


def direct_runtimes(around: Surroundings | None = None) -> partial[DirectRuntime]:
    """Makes `direct` runtimes that share their surroundings: breakers belong to models, whichever
    providers a runtime reaches beside them."""
    return partial(DirectRuntime, around=around or Surroundings())
