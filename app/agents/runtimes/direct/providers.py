"""Model providers: what the operator sets, and the clients made from it.

One HTTP connection pool per runtime, shared by all its sessions. The SDKs' own retries are off:
`app.agents.failback` decides, so that every repeat is counted, shown and bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

from app.agents.port import ModelRef

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

CONNECT_TIMEOUT_S = 10.0
IDLE_CONNECTIONS = 100
"""Kept open for the next call, as the providers' own clients do."""

_DEFAULT_BASE_URL = MappingProxyType(
    {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
)


class WireFormat(StrEnum):
    """How a provider is spoken to."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One provider as the operator configured it.

    `name` is what `ModelRef.provider` says. `base_url` None means the vendor's own address.
    `headers` go with every request (gateways), those named in `without` with none, whoever would
    add them: a gateway that holds the keys is sent no other. The key appears in no repr.
    """

    name: str
    wire: WireFormat
    api_key: str = field(repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    without: frozenset[str] = frozenset()

    @property
    def sends_authorization(self) -> bool:
        """Whether there is a key, and it may go by that header."""
        return bool(self.api_key) and "authorization" not in map(str.lower, self.without)

    def sent(self, own: Mapping[str, Any], omit: object) -> dict[str, Any]:
        """The headers that an SDK is told to send: its `own`, then ours, then `omit` for those that
        must not go, in the spellings by which the SDKs know them."""
        banned = {name.lower() for name in self.without}
        kept = {
            name: value
            for name, value in {**own, **self.headers}.items()
            if name.lower() not in banned
        }
        spelled = (s for name in banned for s in (name, name.title()))
        return {**kept, **dict.fromkeys(spelled, omit)}


class Connections:
    """The models of the configured providers, made at first use and kept."""

    def __init__(
        self,
        providers: Iterable[ProviderSettings],
        *,
        http_client: Callable[[], httpx2.AsyncClient] | None = None,
    ) -> None:
        """`http_client` makes the client in place of the usual one (tests inject transports)."""
        self._providers = {provider.name: provider for provider in providers}
        self._make_client = http_client or _http_client
        self._client: httpx2.AsyncClient | None = None
        self._models: dict[ModelRef, Model] = {}

    def knows(self, ref: ModelRef) -> bool:
        """Whether the model's provider is configured."""
        return ref.provider in self._providers

    def wire(self, ref: ModelRef) -> WireFormat:
        return self._providers[ref.provider].wire

    def wires(self) -> frozenset[WireFormat]:
        """The wire formats of all configured providers."""
        return frozenset(provider.wire for provider in self._providers.values())

    def secrets(self) -> tuple[str, ...]:
        """The keys, for removing them from provider messages. Never for anything else."""
        return tuple(p.api_key for p in self._providers.values() if len(p.api_key) >= 8)

    def headers(self, ref: ModelRef, task: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """What goes with one request beside the client's own headers; `task` is by provider.

        OpenAI's SDK wants to be told with each request that no key is meant to go.
        """
        provider = self._providers[ref.provider]
        headers: dict[str, Any] = dict(task.get(ref.provider, {}))
        if provider.wire is WireFormat.OPENAI and not provider.sends_authorization:
            from openai import Omit

            headers["Authorization"] = Omit()
        return headers

    def model(self, ref: ModelRef) -> Model:
        """The client for one model. Raises KeyError for a provider that is not configured."""
        if ref not in self._models:
            self._models[ref] = self._build(ref)
        return self._models[ref]

    async def aclose(self) -> None:
        """Close the connection pool. The next use opens a new one."""
        client, self._client = self._client, None
        self._models.clear()
        if client is not None:
            await client.aclose()

    def _build(self, ref: ModelRef) -> Model:
        provider = self._providers[ref.provider]
        if self._client is None:
            self._client = self._make_client()
        match provider.wire:
            case WireFormat.ANTHROPIC:
                return _anthropic(ref.name, provider, self._client)
            case WireFormat.OPENAI:
                return _openai(ref.name, provider, self._client)
            case _:
                assert_never(provider.wire)


def _http_client() -> httpx2.AsyncClient:
    """Without a limit of its own: a session that waited for a connection would look like a silent
    model. How many there are at once is the worker's and the scheduler's decision."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS)
    return create_async_httpx2_client(limits=limits)


def _base_url(provider: ProviderSettings) -> str:
    """Always explicit, so that no variable of the environment can move a key elsewhere."""
    return provider.base_url or _DEFAULT_BASE_URL[provider.wire.value]


def _anthropic(name: str, provider: ProviderSettings, client: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic, Omit
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    # The wire format's own header. Newer SDKs send the key as a bearer token instead, which some
    # compatible servers and gateways do not read.
    key_header = {"X-Api-Key": provider.api_key or Omit(), "Authorization": Omit()}
    sdk = AsyncAnthropic(
        api_key=provider.api_key,
        base_url=_base_url(provider),
        default_headers=provider.sent(key_header, Omit()),
        max_retries=0,
        http_client=client,
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk))


def _openai(name: str, provider: ProviderSettings, client: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI, Omit
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    sdk = AsyncOpenAI(
        api_key=provider.api_key or "none",
        base_url=_base_url(provider),
        default_headers=provider.sent({}, Omit()),
        max_retries=0,
        http_client=client,
    )
    # An answer that ends without saying why was cut: it must never pass for a whole one.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=sdk), profile=profile)
