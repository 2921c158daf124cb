"""The `direct` runtime: sessions in this process, through pydantic-ai. Cheap to import."""

from app.agents.runtimes.direct.providers import (
    ProviderSettings,
    WireFormat,
)
from app.agents.runtimes.direct.runtime import DirectRuntime, warm

__all__ = ["DirectRuntime", "ProviderSettings", "WireFormat", "warm"]
