"""Models as the operator configured them: which providers can be reached, and who runs on what."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from app.agents.breaker import Breakers, BreakerSettings, LocalBreakers
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, Surroundings, WireFormat
from app.agents.shared_breakers import SharedBreakers
from app.control.routing import Routing, shipped_routing
from app.settings import Settings
from app.telemetry.cost import Price, price_of, read_prices


def routing_of(settings: Settings) -> Routing:
    """The configured provider with its shipped chains, or the operator's one model."""
    if settings.model_base_url is not None:
        return shipped_routing(settings.model_wire, override=settings.model)
    uses_openai = settings.anthropic_api_key is None
    return shipped_routing("openai" if uses_openai else "anthropic", override=settings.model)


def providers_of(settings: Settings) -> tuple[ProviderSettings, ...]:
    """Every provider that the settings give a key or an address for; () for none."""
    keys = {
        WireFormat.ANTHROPIC: settings.anthropic_api_key,
        WireFormat.OPENAI: settings.openai_api_key,
    }
    at_base = WireFormat(settings.model_wire) if settings.model_base_url else None
    providers = []
    for wire, key in keys.items():
        url = settings.model_base_url if wire is at_base else None
        own = settings.model_api_key if url else key
        if own is not None or url is not None:
            secret = own.get_secret_value() if own else "not-needed"
            providers.append(ProviderSettings(wire.value, wire, secret, url))
    return tuple(providers)


def direct_runtimes(around: Surroundings | None = None) -> partial[DirectRuntime]:
    """Makes `direct` runtimes that share their surroundings: breakers belong to models, whichever
    providers a runtime reaches beside them."""
    return partial(DirectRuntime, around=around or Surroundings())


def surroundings_of(settings: Settings, breakers: Breakers) -> Surroundings:
    """What all sessions of a process share. Raises ConfigurationError for a bad table of prices."""
    return Surroundings(breakers=breakers, price=price_of_settings(settings))


def price_of_settings(settings: Settings) -> Price:
    """The operator's prices, or the published ones. Raises ConfigurationError for a bad table."""
    return price_of if settings.prices_file is None else read_prices(settings.prices_file)


@asynccontextmanager
async def open_breakers(
    settings: Settings,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    shared_clock: Callable[[], float] | None = None,
) -> AsyncIterator[Breakers]:
    """The breakers of all models: shared by all processes where Redis is configured, else of this
    process alone. `shared_clock` replaces that of the Redis server."""
    limits = BreakerSettings(
        failures_to_open=settings.breaker_failures,
        open_s=settings.breaker_seconds,
    )
    if settings.redis_url is None:
        yield LocalBreakers(monotonic, limits)
        return
    # Most installations have no Redis: its client is loaded where there is one.
    from app.state.redis import open_cells

    address = settings.redis_url.get_secret_value()
    async with open_cells(address, clock=shared_clock) as cells:
        yield SharedBreakers(cells, monotonic, limits)
