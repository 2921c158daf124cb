"""The connection to GitHub that githubkit keeps: our timeouts, our trust, and what it repeats."""

from __future__ import annotations

import ssl
from datetime import timedelta
from functools import cache
from typing import Any

import httpx
from githubkit import GitHub
from githubkit.auth import BaseAuthStrategy
from githubkit.exception import GitHubException, RequestError, RequestFailed
from githubkit.retry import RetryDecisionFunc, RetryOption

from app.forges.github.app import GitHubApp, Host
from app.forges.github.errors import seconds_until_retry

_USER_AGENT = "mergeward"


@cache
def _certificates() -> ssl.SSLContext:
    """The machine's trusted authorities (`SSL_CERT_FILE` heeded), read once: it takes 20 ms."""
    return httpx.create_ssl_context()


def connection(app: GitHubApp, auth: BaseAuthStrategy) -> GitHub[Any]:
    """A connection that authenticates by `auth`. It follows no redirect and repeats only reads."""
    host = app.host

    async def plain_seconds(response: httpx.Response) -> None:
        # githubkit reads these two as numbers and stumbles over the date that HTTP allows.
        if "retry-after" in response.headers:
            pause = seconds_until_retry(response.headers, app.clock.now())
            response.headers["retry-after"] = str(round(pause or 0))

    return GitHub(
        auth,
        base_url=host.api_url,
        user_agent=_USER_AGENT,
        timeout=host.timeout,
        follow_redirects=False,
        ssl_verify=_certificates(),
        http_cache=False,
        cache_strategy=app.jwt_cache,
        auto_retry=_retry_reads(host),
        async_transport=host.transport,
        async_event_hooks={"response": [plain_seconds]},
    )


def _retry_reads(host: Host) -> RetryDecisionFunc:
    """Failed reads are sent again after short pauses; limits and writes never are."""

    def decide(error: GitHubException, count: int) -> RetryOption:
        if count >= len(host.read_retries) or not _is_read(error):
            return RetryOption(do_retry=False)
        if isinstance(error, RequestFailed):
            again = error.response.status_code >= 500
        else:
            again = isinstance(getattr(error, "exc", None), httpx.TransportError)
        # githubkit takes a pause of zero for "not told" and sleeps a minute.
        pause = max(host.read_retries[count], 0.001)
        return RetryOption(again, timedelta(seconds=pause))

    return decide


def _is_read(error: GitHubException) -> bool:
    if isinstance(error, RequestFailed):
        return error.request.method in ("GET", "HEAD")
    if isinstance(error, RequestError) and isinstance(error.exc, httpx.RequestError):
        return error.exc.request.method in ("GET", "HEAD")
    return False
