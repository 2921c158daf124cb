"""The `direct` runtime: sessions in this process, through pydantic-ai. Cheap to import."""

from app.agents.runtimes.direct.providers import (
    ProviderSettings,
    WireFormat,
)
from app.agents.runtimes.direct.runtime import DirectRuntime, warm
from app.agents.runtimes.direct.session import Surroundings

__all__ = ["DirectRuntime", "ProviderSettings", "Surroundings", "WireFormat", "warm"]
