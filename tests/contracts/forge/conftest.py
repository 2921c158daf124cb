"""Each test of the contract runs on the forge in memory and on the GitHub client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.contracts.forge.stage import MemoryStage, Stage, double_stage


@pytest.fixture(scope="session")
def app_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, none).decode()


@pytest.fixture(params=["memory", "github"])
async def stage(request: pytest.FixtureRequest, app_key: str) -> AsyncIterator[Stage]:
    if request.param == "memory":
        yield MemoryStage()
        return
    async with double_stage(app_key) as found:
        yield found
