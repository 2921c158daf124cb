"""From GitHub's answers to our error tree. Pure, except that it reads an exception."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from githubkit.exception import GitHubException, RequestError, RequestFailed

from app.errors import (
    ForgeError,
    ForgeForbidden,
    ForgeNotFound,
    ForgeRateLimited,
    ForgeRejected,
    ForgeUnauthorized,
    ForgeUnavailable,
)

_SECONDARY_WAIT = 60.0
"""GitHub's advice where a limit is spent and no header says for how long."""
_MAX_WORDS = 1000
_NOT_ACCESSIBLE = "resource not accessible by integration"


class PermissionMissing(ForgeForbidden):
    """The token lacks a permission, or GitHub's servers have not all learned of it yet.

    `accepted` holds the alternatives that GitHub would accept, empty when it does not say.
    """

    def __init__(self, message: str, accepted: tuple[dict[str, str], ...] = ()) -> None:
        super().__init__(message, status=403)
        self.accepted = accepted


def seconds_until_retry(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the headers ask to wait: seconds, an HTTP date or a reset time; None if neither."""
    asked = headers.get("retry-after", "").strip()
    if asked.isdigit():
        return float(asked)
    if asked:
        try:
            moment = parsedate_to_datetime(asked)
        except ValueError:
            return _SECONDARY_WAIT
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (aware - now).total_seconds())
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(0.0, float(reset) - now.timestamp())
    return None


def words_of(body: bytes) -> str:
    """GitHub's own words in an error body, with every detail, as one line."""
    try:
        told = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(told, dict):
        return ""
    parts = [str(told.get("message") or "")]
    errors = told.get("errors")
    parts += [_detail(error) for error in errors] if isinstance(errors, list) else []
    return " ".join(": ".join(part for part in parts if part).split())[:_MAX_WORDS]


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    if error.get("message"):
        return str(error["message"])
    return " ".join(str(error[key]) for key in ("resource", "field", "code") if error.get(key))


def permissions_accepted(headers: Mapping[str, str]) -> tuple[dict[str, str], ...]:
    """The alternatives of `X-Accepted-GitHub-Permissions`; empty when GitHub does not say."""
    alternatives = []
    for part in headers.get("x-accepted-github-permissions", "").split(";"):
        pairs = (pair.strip().partition("=") for pair in part.split(",") if "=" in pair)
        wanted = {name: level for name, _, level in pairs}
        if wanted:
            alternatives.append(wanted)
    return tuple(alternatives)


def error_of_response(response: httpx.Response, what: str, now: datetime) -> ForgeError:
    """The error for an answer of status 400 or more; `what` names the request in the message."""
    status, words = response.status_code, words_of(response.content)
    said = f"GitHub answered {status} to {what}" + (f": {words}" if words else "")
    if status in (403, 429):
        return _refusal(response, said, words, now)
    if status >= 500:
        return ForgeUnavailable(f"{said}. It may have happened all the same.", status=status)
    kinds: dict[int, type[ForgeError]] = {
        401: ForgeUnauthorized,
        404: ForgeNotFound,
        410: ForgeNotFound,
    }
    return kinds.get(status, ForgeRejected)(said, status=status)


def _refusal(response: httpx.Response, said: str, words: str, now: datetime) -> ForgeError:
    """403 and 429 mean four things: two limits, a missing permission, or a plain no."""
    status = response.status_code
    wait = seconds_until_retry(response.headers, now)
    limited = "rate limit" in words.lower() or "abuse detection" in words.lower()
    if wait is not None or limited or status == 429:
        pause = _SECONDARY_WAIT if wait is None else wait
        return ForgeRateLimited(
            f"{said}. Next try in {pause:.0f} s.", retry_after=pause, status=status
        )
    if _NOT_ACCESSIBLE not in words.lower():
        return ForgeForbidden(said, status=status)
    return _permission_missing(said, permissions_accepted(response.headers))


def _permission_missing(said: str, accepted: tuple[dict[str, str], ...]) -> PermissionMissing:
    if not accepted:
        return PermissionMissing(said)
    wanted = " or ".join(
        ", ".join(f"{name}: {level}" for name, level in option.items()) for option in accepted
    )
    remedy = f"Grant the App the permission {wanted} and accept it for this installation."
    return PermissionMissing(f"{said}. {remedy}", accepted)


def error_of(exception: GitHubException, what: str, now: datetime) -> ForgeError:
    """The error for anything githubkit raises. Never holds headers, so never a token."""
    if isinstance(exception, RequestFailed):
        return error_of_response(exception.response.raw_response, what, now)
    cause = exception.exc if isinstance(exception, RequestError) else exception
    kind = type(cause).__name__
    if isinstance(cause, httpx.TimeoutException):
        return ForgeUnavailable(f"GitHub did not answer {what} in time ({kind}).")
    return ForgeUnavailable(f"GitHub could not be reached for {what} ({kind}).")


def error_of_graphql(errors: list[object], what: str) -> ForgeError:
    """The error for the first entry of a GraphQL answer's `errors`."""
    first = errors[0] if errors and isinstance(errors[0], dict) else {}
    kind, words = str(first.get("type") or ""), str(first.get("message") or "")[:_MAX_WORDS]
    said = f"GitHub answered {what} with {kind or 'an error'}: {words}"
    if kind in ("RATE_LIMIT", "RATE_LIMITED"):
        return ForgeRateLimited(said, retry_after=_SECONDARY_WAIT)
    if kind == "NOT_FOUND":
        return ForgeNotFound(said)
    if kind in ("FORBIDDEN", "INSUFFICIENT_SCOPES"):
        return PermissionMissing(said)
    if kind == "" and "something went wrong" in words.lower():
        return ForgeUnavailable(said)
    return ForgeRejected(said)


def refused_parts(errors: object, what: str) -> dict[str, ForgeError]:
    """The parts of a query that were forbidden or not found, by name; raises any other error."""
    refused: dict[str, ForgeError] = {}
    for entry in errors if isinstance(errors, list) else ():
        error = error_of_graphql([entry], what)
        match entry:
            case {"path": [str(part), *_]} if isinstance(error, (ForgeForbidden, ForgeNotFound)):
                refused[part] = error
            case _:
                raise error
    return refused
