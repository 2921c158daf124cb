"""Exceptions of pydantic-ai, the SDKs and the network, as classified failures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from app.agents.port import AgentErrorKind, AgentFailure
from app.domain.redaction import redact

_MESSAGE_CHARS = 500
_NO_FINISH = "ended without a `finish_reason`"
"""How pydantic-ai words a stream that broke off; it has no class of its own."""


def classify(error: Exception, *, started: bool, secrets: Iterable[str] = ()) -> AgentFailure:
    """The failure that `error` stands for. `started` says whether the response had begun.

    What no rule knows is MALFORMED: a provider that makes our libraries stumble is not asked again.
    """
    message = f"{type(error).__name__}: {error}"
    for secret in secrets:
        message = message.replace(secret, "[redacted]")
    wait = getattr(error, "retry_after", None)
    return AgentFailure(
        _kind(error, started=started),
        redact(message)[:_MESSAGE_CHARS],
        float(wait) if isinstance(wait, int | float) else None,
    )


def _kind(error: Exception, *, started: bool) -> AgentErrorKind:
    from pydantic_ai import exceptions as known

    if isinstance(error, known.ModelConnectionError):
        return _connection_kind(error, started=started)
    if started and _NO_FINISH in str(error):
        return AgentErrorKind.CUT_STREAM
    for types, kind in _table():
        if isinstance(error, types):
            return kind
    return AgentErrorKind.MALFORMED


def _connection_kind(error: Exception, *, started: bool) -> AgentErrorKind:
    from pydantic_ai import exceptions as known

    if isinstance(error, known.ModelTimeoutError):
        return AgentErrorKind.STALLED
    return AgentErrorKind.CUT_STREAM if started else AgentErrorKind.CONNECTION


@cache
def _table() -> tuple[tuple[type[Exception], AgentErrorKind], ...]:
    """First match wins, so the narrower class stands before the wider one."""
    from pydantic_ai import exceptions as known

    return (
        (known.ModelRequestTimeout, AgentErrorKind.TIMEOUT),
        (known.ModelRateLimitError, AgentErrorKind.RATE_LIMITED),
        (known.ModelQuotaExceededError, AgentErrorKind.QUOTA),
        (known.ModelUnavailableError, AgentErrorKind.OVERLOADED),
        (known.ModelServerError, AgentErrorKind.SERVER),
        (known.ModelContextWindowExceededError, AgentErrorKind.CONTEXT_OVERFLOW),
        (known.ModelAuthenticationError, AgentErrorKind.AUTH),
        (known.ModelNotFoundError, AgentErrorKind.UNKNOWN_MODEL),
        (known.ModelRequestRejectedError, AgentErrorKind.REJECTED),
        (known.ContentFilterError, AgentErrorKind.REFUSED),
        # A 200 whose body or stream is not what the wire format says: gateways do this when their
        # upstream fails, so it is the server's trouble, not the model's answer.
        (known.ModelAPIError, AgentErrorKind.SERVER),
        (known.UserError, AgentErrorKind.NO_MODEL),
    )
