"""What goes wrong in the model server: answers to a client, and scenarios that cannot be used."""

from __future__ import annotations

from enum import StrEnum


class ScenarioError(Exception):
    """A scenario cannot be used. The message names the file and the key, and what is wrong."""


class ErrorType(StrEnum):
    """The `error.type` of Anthropic's error bodies. Two are ours, since they share one there: a 503
    is an `api_error`, and a prompt that is too long an `invalid_request_error`."""

    INVALID_REQUEST = "invalid_request_error"
    AUTHENTICATION = "authentication_error"
    NOT_FOUND = "not_found_error"
    TOO_LARGE = "request_too_large"
    RATE_LIMIT = "rate_limit_error"
    API = "api_error"
    UNAVAILABLE = "unavailable_error"
    CONTEXT = "context_error"
    OVERLOADED = "overloaded_error"


STATUS: dict[ErrorType, int] = {
    ErrorType.INVALID_REQUEST: 400,
    ErrorType.AUTHENTICATION: 401,
    ErrorType.NOT_FOUND: 404,
    ErrorType.TOO_LARGE: 413,
    ErrorType.RATE_LIMIT: 429,
    ErrorType.API: 500,
    ErrorType.UNAVAILABLE: 503,
    ErrorType.CONTEXT: 400,
    ErrorType.OVERLOADED: 529,
}


class WireError(Exception):
    """An answer that is an error. `status` follows from `kind`; `retry_after` is in seconds."""

    def __init__(self, kind: ErrorType, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return STATUS[self.kind]

    @property
    def told(self) -> ErrorType:
        """The type as Anthropic spells it."""
        return _SHARED.get(self.kind, self.kind)


_SHARED = {
    ErrorType.UNAVAILABLE: ErrorType.API,
    ErrorType.CONTEXT: ErrorType.INVALID_REQUEST,
}


def invalid(message: str) -> WireError:
    """A 400: the request itself is wrong."""
    return WireError(ErrorType.INVALID_REQUEST, message)
