"""Only who knows the secret can speak to us."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.jobs import AppRole
from app.webhooks.signature import Keyring, is_signed, sign, signing_app

SECRETS = st.binary(min_size=1, max_size=80)
BODY = b'{"action":"opened"}'
KEYRING: Keyring = {AppRole.REVIEWER: (b"now", b"before"), AppRole.FIXER: (b"other",)}


@given(body=st.binary(max_size=2000), secret=SECRETS, other=SECRETS)
def test_only_the_secret_signs(body: bytes, secret: bytes, other: bytes) -> None:
    """A signature holds for its own bytes and its own secret, either of two, and nothing else."""
    header = sign(secret, body)
    assert is_signed(header, body, [secret])
    assert is_signed(header, body, [other, secret])
    # HMAC pads short keys with NUL, so keys that differ only in that are one key.
    assert is_signed(header, body, [other]) == (other.rstrip(b"\x00") == secret.rstrip(b"\x00"))
    assert not is_signed(header, body + b" ", [secret])


@given(header=st.none() | st.text(max_size=100), secret=SECRETS)
def test_any_other_header_is_refused(header: str | None, secret: bytes) -> None:
    """Whatever the header holds, the answer is no, and never an exception."""
    assert not is_signed(header, BODY, [secret])


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="empty"),
        pytest.param("sha1=" + hmac.new(b"now", BODY, hashlib.sha1).hexdigest(), id="sha1"),
        pytest.param(sign(b"now", BODY).removeprefix("sha256="), id="no-prefix"),
        pytest.param(sign(b"now", BODY).upper(), id="upper-case"),
        pytest.param(sign(b"now", BODY) + "\n", id="trailing-newline"),
        pytest.param(sign(b"now", BODY)[:-1], id="cut"),
        pytest.param("sha256=" + "é" * 64, id="not-ascii"),
    ],
)
def test_forms_that_are_refused(header: str) -> None:
    """SHA-256 in lower-case hexadecimal is the only form GitHub sends."""
    assert not is_signed(header, BODY, [b"now"])


def test_without_secrets_nothing_is_signed() -> None:
    """No secret is not an empty secret."""
    assert not is_signed(sign(b"", BODY), BODY, [])


@pytest.mark.parametrize(
    ("secret", "hint", "app"),
    [
        pytest.param(b"now", None, AppRole.REVIEWER, id="present-secret"),
        pytest.param(b"before", None, AppRole.REVIEWER, id="previous-secret"),
        pytest.param(b"other", None, AppRole.FIXER, id="other-app"),
        pytest.param(b"now", AppRole.FIXER, AppRole.REVIEWER, id="hint-does-not-overrule"),
        pytest.param(b"guess", AppRole.FIXER, None, id="hint-does-not-admit"),
    ],
)
def test_the_signature_tells_the_app(
    secret: bytes, hint: AppRole | None, app: AppRole | None
) -> None:
    """Each App has its own secrets; the unsigned header only decides between equals."""
    assert signing_app(sign(secret, BODY), BODY, KEYRING, hint=hint) is app


@pytest.mark.parametrize(
    ("hint", "app"), [(None, AppRole.REVIEWER), (AppRole.FIXER, AppRole.FIXER)]
)
def test_a_shared_secret_leaves_it_to_the_hint(hint: AppRole | None, app: AppRole) -> None:
    """With one secret for both Apps the header is all there is."""
    keyring: Keyring = {AppRole.REVIEWER: (b"same",), AppRole.FIXER: (b"same",)}
    assert signing_app(sign(b"same", BODY), BODY, keyring, hint=hint) is app
