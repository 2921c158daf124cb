"""`reviewer-config`: which reviewer runs on which model, and which is off, from a remote document.

It is asked for at most every 30 seconds with a timeout of 2 s; while it cannot be fetched or read,
its last good version holds, and before there is one the operator's other settings do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from app.domain.policy import ModelName, OtherAgent
from app.domain.runs import AgentName
from app.plugins.context import BootstrapContext, ConfigureContext
from app.plugins.fetch import Fetcher
from app.plugins.port import ReviewPlugin
from app.plugins.remembered import Remembered

_ALWAYS_ON = (AgentName.COORDINATOR, AgentName.FIXER)


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Override(_Document):
    """What is said of one agent: its models, first choice first, and whether it takes part."""

    models: Annotated[list[ModelName], Field(max_length=10)] = []
    provider: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] | None = None
    enabled: bool = True


class Overrides(_Document):
    """The remote document: `{"reviewers": {"security": {"models": ["…"], "enabled": true}}}`."""

    reviewers: Annotated[dict[OtherAgent, Override], Field(max_length=100)] = {}

    @model_validator(mode="after")
    def _keep_the_needed(self) -> Overrides:
        for name in _ALWAYS_ON:
            if name in self.reviewers and not self.reviewers[name].enabled:
                msg = f"the {name} cannot be switched off"
                raise ValueError(msg)
        return self


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Where the document is. `token` is sent as a bearer token to that origin only."""

    url: str
    token: SecretStr | None = None


class ReviewerConfigPlugin(ReviewPlugin):
    """Pins agents to models and switches reviewers off, as the document says."""

    name = "reviewer-config"

    def __init__(self, options: RemoteOptions, fetcher: Fetcher) -> None:
        self._options = options
        self._fetcher = fetcher
        self._overrides = Remembered("the remote reviewer configuration", self._load)

    async def bootstrap(self, context: BootstrapContext) -> object:
        return await self._overrides.get()

    def configure(self, context: ConfigureContext) -> None:
        if not isinstance(context.prepared, Overrides):
            return
        for agent, said in context.prepared.reviewers.items():
            if said.models:
                context.pin(agent, said.models, said.provider, if_known=True)
            if not said.enabled:
                context.switch_off(agent, if_known=True)

    async def _load(self) -> Overrides:
        headers = {}
        if self._options.token is not None:
            headers["authorization"] = f"Bearer {self._options.token.get_secret_value()}"
        return parse_overrides(await self._fetcher.fetch(self._options.url, headers))


def parse_overrides(document: bytes) -> Overrides:
    """Raises ValueError for anything that is not such a document."""
    return Overrides.model_validate(json.loads(document))
