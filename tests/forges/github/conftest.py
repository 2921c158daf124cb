"""One private key for all tests: making one takes longer than a test."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.forges.github.stub import Stub


@pytest.fixture(scope="session")
def key() -> str:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return made.private_bytes(serialization.Encoding.PEM, form, none).decode()


@pytest.fixture
def stub() -> Stub:
    return Stub()
