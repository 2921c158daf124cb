"""Who signed these bytes? GitHub signs the raw body with the secret of one App's webhook."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence

from app.domain.jobs import AppRole

_HEADER = re.compile(r"sha256=([0-9a-f]{64})\Z")

Keyring = Mapping[AppRole, Sequence[bytes]]
"""The secrets of each App that are valid now; two while one is being replaced."""


def sign(secret: bytes, body: bytes) -> str:
    """The value GitHub sends in `X-Hub-Signature-256` for this body."""
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def is_signed(header: str | None, body: bytes, secrets: Iterable[bytes]) -> bool:
    """Whether one of the secrets signed the body.

    SHA-256 only; the older SHA-1 form is refused. The comparison takes the same time wherever the
    first wrong character is. Never raises, whatever the header holds.
    """
    match = _HEADER.match(header or "")
    if match is None:
        return False
    given = match.group(1).encode()
    found = False
    for secret in secrets:
        expected = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
        found |= hmac.compare_digest(expected, given)
    return found


def signing_app(
    header: str | None, body: bytes, keyring: Keyring, *, hint: AppRole | None = None
) -> AppRole | None:
    """Which App's webhook the body comes from; None: nobody we know signed it.

    `hint` is only used if both Apps share a secret: it is not signed.
    """
    signers = [role for role, secrets in keyring.items() if is_signed(header, body, secrets)]
    if hint in signers:
        return hint
    return signers[0] if signers else None
