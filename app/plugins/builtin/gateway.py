"""`gateway`: every model through one gateway, which holds the providers' keys.

The gateway gets a token of its own and, with each request, an id for the user whose change is
reviewed: a keyed hash, so that costs can be told apart and nobody can be told by it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from app.agents.runtimes.direct.providers import WireFormat
from app.control.routing import Routing
from app.domain.policy import ModelName
from app.errors import ConfigurationError
from app.plugins.context import ConfigureContext
from app.plugins.port import ReviewPlugin

STRIPPED = ("authorization", "cf-access-token", "host")
"""Headers that never reach the gateway unless the operator says otherwise."""

PATHS: Mapping[str, tuple[str, WireFormat]] = {
    "anthropic": ("/anthropic", WireFormat.ANTHROPIC),
    "openai": ("/openai", WireFormat.OPENAI),
}
"""Where below its address a gateway offers which provider, as Cloudflare's AI Gateway does."""

_ID_CHARS = 32
_MOST_BYTES = 64 * 1024


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class GatewayTier(_Table):
    """One failback chain."""

    provider: Literal["anthropic", "openai"]
    models: Annotated[list[ModelName], Field(min_length=1, max_length=10)]


class GatewayModels(_Table):
    """What the file of MERGEWARD_GATEWAY_MODELS may say: tiers, agents on tiers, windows."""

    tiers: dict[str, GatewayTier] = {}
    agents: dict[str, str] = {}
    windows: dict[ModelName, Annotated[int, Field(ge=8_000)]] = {}


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """What the operator decided. `id_key` makes the users' ids."""

    url: str
    id_key: SecretStr
    token: SecretStr | None = None
    strip: tuple[str, ...] = STRIPPED
    models: GatewayModels = field(default_factory=GatewayModels)


class GatewayPlugin(ReviewPlugin):
    """Registers the gateway's providers, its tiers, and the headers of each run."""

    name = "gateway"

    def __init__(self, options: GatewayOptions, routing: Routing) -> None:
        self._options = options
        self._routing = routing

    def configure(self, context: ConfigureContext) -> None:
        options = self._options
        for provider, (path, wire) in PATHS.items():
            context.provider(
                provider,
                wire,
                base_url=options.url.rstrip("/") + path,
                headers=_authorisation(options.token),
                without=options.strip,
            )
            metadata = json.dumps(self._metadata(context), separators=(",", ":"))
            context.request_header(provider, "cf-aig-metadata", metadata)
        context.shipped_routing(self._routing)
        for name, tier in options.models.tiers.items():
            context.model_tier(name, tier.provider, tier.models)
        for agent, tier_name in options.models.agents.items():
            context.route(agent, tier_name)
        for model, tokens in options.models.windows.items():
            context.context_window(model, tokens)

    def _metadata(self, context: ConfigureContext) -> dict[str, str]:
        said = {"app": "mergeward", "kind": context.facts.kind.value}
        if context.facts.author:
            said["user"] = anonymous_id(self._options.id_key, context.facts.author)
        return said


def anonymous_id(key: SecretStr, login: str) -> str:
    """32 hex digits that are the same for the same login in any case of letters, and tell nothing
    about it to anybody without the key."""
    message = b"mergeward user\0" + login.casefold().encode("utf-8", "surrogatepass")
    digest = hmac.new(key.get_secret_value().encode(), message, hashlib.sha256)
    return digest.hexdigest()[:_ID_CHARS]


def _authorisation(token: SecretStr | None) -> dict[str, str | SecretStr]:
    if token is None:
        return {}
    return {"cf-aig-authorization": SecretStr(f"Bearer {token.get_secret_value()}")}


def read_models(file: Path) -> GatewayModels:
    """The gateway's table of models. Raises ConfigurationError naming the file and the key."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigurationError(f"MERGEWARD_GATEWAY_MODELS: {file} is too large.")
        return GatewayModels.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"MERGEWARD_GATEWAY_MODELS: {file}, {key}: {first['msg']}."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"MERGEWARD_GATEWAY_MODELS: {file}: {error}.") from None
