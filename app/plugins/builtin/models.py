"""`models`: the providers that the settings name, with the shipped table of models."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import SecretStr

from app.agents.runtimes.direct.providers import ProviderSettings
from app.control.routing import Routing
from app.plugins.context import ConfigureContext
from app.plugins.port import ReviewPlugin


class ModelsPlugin(ReviewPlugin):
    """Gives every run the providers whose keys or address the operator set."""

    name = "models"

    def __init__(self, providers: Sequence[ProviderSettings], routing: Routing) -> None:
        self._providers = tuple(providers)
        self._routing = routing

    def configure(self, context: ConfigureContext) -> None:
        for provider in self._providers:
            context.provider(
                provider.name,
                provider.wire,
                key=SecretStr(provider.api_key) if provider.api_key else None,
                base_url=provider.base_url,
                headers=provider.headers,
                without=provider.without,
            )
        context.shipped_routing(self._routing)
