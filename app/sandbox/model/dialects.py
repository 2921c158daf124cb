"""The wire formats that the model server speaks, each as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request as HttpRequest

from app.sandbox.model import chat, sse
from app.sandbox.model.caching import Cached, PromptCache, Segment
from app.sandbox.model.chat_parse import parse_chat
from app.sandbox.model.errors import ErrorType, WireError, invalid
from app.sandbox.model.parse import parse_request
from app.sandbox.model.wire import Json, Reply, Request, Usage, error_body, message_body


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one provider is spoken to. `check` refuses headers that lack something, `is_finish` knows
    the events of a stream that say how it ended, `cached` accounts a prompt."""

    parse: Callable[..., Request]
    body: Callable[[Request, Reply, Usage], Json]
    events: Callable[[Request, Reply, Usage], Iterator[bytes]]
    is_finish: Callable[[bytes], bool]
    error: Callable[[WireError, str], Json]
    error_event: Callable[[WireError], bytes]
    key_sent: Callable[[HttpRequest], str | None]
    check: Callable[[HttpRequest], None]
    cached: Callable[[PromptCache, str, Sequence[Segment]], Cached]


def _bearer(http: HttpRequest) -> str | None:
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.casefold() == "bearer" else None


def _key_of_messages(http: HttpRequest) -> str | None:
    """The key, from the documented header or, as the provider's SDK 2 sends it, as a bearer."""
    return http.headers.get("x-api-key", _bearer(http))


def _check_version(http: HttpRequest) -> None:
    if "anthropic-version" not in http.headers:
        raise invalid("anthropic-version: header is required")


MESSAGES = Dialect(
    parse=parse_request,
    body=message_body,
    events=sse.events,
    is_finish=sse.is_finish,
    error=error_body,
    error_event=sse.error_event,
    key_sent=_key_of_messages,
    check=_check_version,
    cached=PromptCache.explicit,
)
"""Anthropic's Messages API."""

CHAT = Dialect(
    parse=parse_chat,
    body=chat.chat_body,
    events=chat.chat_events,
    is_finish=chat.is_finish,
    error=chat.chat_error,
    error_event=chat.chat_error_event,
    key_sent=_bearer,
    check=lambda _: None,
    cached=PromptCache.automatic,
)
"""OpenAI's chat completions."""

MISSING_KEY = {
    id(MESSAGES): "x-api-key header is required",
    id(CHAT): "You didn't provide an API key.",
}


def refused_key(dialect: Dialect, sent: str | None) -> WireError:
    """The 401 for no key, or for a wrong one."""
    wrong = "invalid x-api-key" if dialect is MESSAGES else "Incorrect API key provided."
    message = MISSING_KEY[id(dialect)] if sent is None else wrong
    return WireError(ErrorType.AUTHENTICATION, message)
