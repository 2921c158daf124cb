"""Requests to GitHub: who asks, with which token, what is repeated and what is not.

githubkit supplies the App's JWT, the connection and its exceptions. Tokens are chosen here, per
request: its own choice goes by regular expressions over the path, which user data can fool, and
its token cache knows no locks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import httpx
from githubkit import AppAuthStrategy, GitHub, UnauthAuthStrategy
from githubkit.exception import GitHubException

from app.domain.pull_request import RepoRef
from app.errors import (
    ConfigurationError,
    ForgeError,
    ForgeForbidden,
    ForgeNotFound,
    ForgePaced,
    ForgeRateLimited,
    ForgeRejected,
    ForgeUnauthorized,
    ForgeUnavailable,
)
from app.forges.github.app import GitHubApp
from app.forges.github.connection import connection
from app.forges.github.errors import (
    PermissionMissing,
    error_of,
    error_of_graphql,
    refused_parts,
)
from app.forges.github.tokens import Scope, Token, TokenKey, at_most

Json = dict[str, Any]
_T = TypeVar("_T")
_FRESH_WAITS = (0.5, 1.0, 1.5, 2.0)
"""Pauses, 5 s in all, while a token just minted is refused."""
_MAX_PAGES = 200
_REDIRECTS = frozenset({301, 302, 307, 308})
_MAX_REDIRECTS = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One REST request. `path` comes from `path()` or from GitHub itself."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | int] | None = None

    @property
    def what(self) -> str:
        """The request in messages: no query, which may hold text of users."""
        return f"{self.method} {urlsplit(self.path).path}"


def path(template: str, *values: str | int) -> str:
    """`template` with each `{}` filled by a value, every special character quoted.

    ForgeRejected for `.` and `..`, which would name another resource.
    """
    for value in values:
        if value in (".", ".."):
            raise ForgeRejected(f"{value!r} can't be part of a request to GitHub")
    return template.format(*(quote(str(value), safe="") for value in values))


def of_repo(repo: RepoRef, template: str, *values: str | int) -> str:
    """The path of something in a repository."""
    return path("/repos/{}/{}" + template, repo.owner, repo.name, *values)


class GitHubSession:
    """Requests of one job as one App. Enter it once; un-entered it works, but slower.

    Nothing here sleeps on a limit: ForgeRateLimited says how long, and the job is done again then.
    `urgent`: somebody waits for what it writes.
    """

    def __init__(self, app: GitHubApp, *, urgent: bool = False) -> None:
        self._app = app
        self._urgent = urgent
        credentials = app.credentials
        self._jwt = connection(app, AppAuthStrategy(credentials.app_id, app.private_key))
        self._api = connection(app, UnauthAuthStrategy())

    async def __aenter__(self) -> Self:
        await self._jwt.__aenter__()  # type: ignore[no-untyped-call]  # githubkit leaves it bare
        await self._api.__aenter__()  # type: ignore[no-untyped-call]  # githubkit leaves it bare
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._api.__aexit__(kind, error, traceback)
        finally:
            await self._jwt.__aexit__(kind, error, traceback)

    async def as_app(self, request: Request) -> httpx.Response:
        """Ask as the App itself (JWT). ConfigurationError when its key can't be used."""
        return await self._send(self._jwt, request, None)

    async def call(
        self, repo: RepoRef, request: Request, scope: Scope | None = None
    ) -> httpx.Response:
        """Ask with a token for `repo`; the App's ordinary scope unless told otherwise."""
        key = await self._key(repo, scope or self._app.scope)
        return await self.call_with(key, request)

    async def call_with(self, key: TokenKey, request: Request) -> httpx.Response:
        """Ask with the token that `key` names. ForgeRateLimited when the installation has to wait,
        by our own pace or by GitHub's word."""
        writes = request.method not in ("GET", "HEAD")
        with self._paced(key.installation_id, request.what, writes=writes):
            answer = await self._with_token(
                key, lambda token: self._send(self._api, request, token)
            )
        self._app.awake = key.installation_id
        return answer

    @contextmanager
    def _paced(self, installation_id: int, what: str, *, writes: bool) -> Iterator[None]:
        pace, now = self._app.pace(installation_id), self._app.clock.now()
        wait = pace.take(now, urgent=self._urgent) if writes else pace.wait_to_read(now)
        if wait > 0:
            raise ForgePaced(
                f"{what} waits {wait:.0f} s: this installation is close to GitHub's limits.",
                retry_after=wait,
            )
        try:
            yield
        except ForgeRateLimited as limited:
            pause = timedelta(seconds=limited.retry_after or 0.0)
            pace.hold(self._app.clock.now() + pause)
            raise

    async def pages(self, repo: RepoRef, request: Request, wrap: str | None = None) -> list[Json]:
        """All rows of a list, whatever its length; `wrap` names the list inside an object."""
        key = await self._key(repo, self._app.scope)
        return await self.all_pages(lambda page: self.call_with(key, page), request, wrap)

    async def all_pages(
        self,
        ask: Callable[[Request], Awaitable[httpx.Response]],
        request: Request,
        wrap: str | None = None,
    ) -> list[Json]:
        """All rows that `ask` gets for `request` and the pages GitHub links to from it."""
        rows: list[Json] = []
        page = Request(
            request.method, request.path, None, {"per_page": 100, **(request.query or {})}
        )
        for _ in range(_MAX_PAGES):
            response = await ask(page)
            rows += _rows(response, wrap)
            following = response.links.get("next", {}).get("url")
            if not following:
                return rows
            page = Request("GET", self._own(following))
        raise ForgeError(f"{request.what} has over {_MAX_PAGES} pages; GitHub's answer is unusable")

    async def graphql(
        self, key: TokenKey, query: str, variables: Mapping[str, Any], what: str
    ) -> Json:
        """`data` of a GraphQL answer; the first of its `errors` raised as ours."""

        def read(answer: Json) -> Json:
            errors = answer.get("errors")
            if isinstance(errors, list) and errors:
                raise error_of_graphql(errors, what)
            data = answer.get("data")
            return data if isinstance(data, dict) else {}

        return await self._graphql(key, query, variables, what, read)

    async def graphql_parts(
        self, key: TokenKey, query: str, variables: Mapping[str, Any], what: str
    ) -> Mapping[str, ForgeError]:
        """What of a query was forbidden or not found, by the name of the part: the others have
        happened. Raised when nothing of `variables`' parts has, and for any other error."""

        def read(answer: Json) -> Mapping[str, ForgeError]:
            refused = refused_parts(answer.get("errors"), what)
            if len(refused) == len(variables):
                raise next(iter(refused.values()))
            return refused

        return await self._graphql(key, query, variables, what, read)

    async def _graphql(
        self,
        key: TokenKey,
        query: str,
        variables: Mapping[str, Any],
        what: str,
        read: Callable[[Json], _T],
    ) -> _T:
        """Sent once: repeating a mutation is for the caller to decide."""
        body = {"query": query, "variables": dict(variables)}
        request = Request("POST", self._app.host.graphql_url, body)

        async def attempt(token: Token) -> _T:
            return read(object_of(await self._send(self._api, request, token)))

        writes = query.lstrip().startswith("mutation")
        with self._paced(key.installation_id, what, writes=writes):
            return await self._with_token(key, attempt)

    async def _key(self, repo: RepoRef, scope: Scope) -> TokenKey:
        installation = await self.installation_id(repo)
        return TokenKey(installation, repo.repository_id if scope.one_repository else None, scope)

    async def installation_id(self, repo: RepoRef) -> int:
        """This App's installation on `repo`; ForgeNotFound with the remedy when there is none."""
        if self._app.is_reviewer:
            return repo.installation_id
        known = self._app.installations.get(repo.repository_id)
        if known is None:
            known = await self.find_installation(repo.owner, repo.name)
            self._app.installations[repo.repository_id] = known
        return known

    async def find_installation(self, owner: str, name: str) -> int:
        """Ask GitHub for this App's installation on a repository."""
        role = self._app.credentials.role
        try:
            answer = await self.as_app(
                Request("GET", path("/repos/{}/{}/installation", owner, name))
            )
        except ForgeNotFound as error:
            raise ForgeNotFound(
                f"The {role} App is not installed on {owner}/{name}: install it there.", status=404
            ) from error
        return int(object_of(answer).get("id") or 0)

    async def token(self, key: TokenKey) -> Token:
        """The token that `key` names. PermissionMissing when the installation does not grant it."""
        return await self._app.tokens.token(key, self._mint)

    async def _mint(self, key: TokenKey) -> Token:
        wanted = key.scope.permissions
        try:
            return await self._mint_with(key, wanted)
        except ForgeRejected as error:
            if error.status != 422:
                raise
            lowered = wanted
            if key.scope.may_shrink:
                lowered = at_most(wanted, await self._granted(key.installation_id))
            if not lowered or lowered == wanted:
                names = ", ".join(f"{name}: {level}" for name, level in wanted.items())
                raise PermissionMissing(
                    f"This installation does not grant {names}: accept the App's permissions in "
                    "its settings on GitHub."
                ) from error
        return await self._mint_with(key, lowered)

    async def _mint_with(self, key: TokenKey, permissions: Mapping[str, str]) -> Token:
        body: Json = {"permissions": dict(permissions)}
        if key.repository_id is not None:
            body["repository_ids"] = [key.repository_id]
        target = path("/app/installations/{}/access_tokens", key.installation_id)
        try:
            answer = object_of(await self.as_app(Request("POST", target, body)))
        except ForgeNotFound as error:
            self._app.forget_installation(key.installation_id)
            raise ForgeNotFound(
                f"Installation {key.installation_id} of the {self._app.credentials.role} App is "
                "gone: it was removed, or it is another App's.",
                status=404,
            ) from error
        expires = datetime.fromisoformat(str(answer.get("expires_at")))
        granted = answer.get("permissions")
        return Token(
            value=str(answer["token"]),
            permissions=granted if isinstance(granted, dict) else dict(permissions),
            minted_at=self._app.clock.now(),
            expires_at=expires,
        )

    async def _granted(self, installation_id: int) -> Mapping[str, str]:
        answer = await self.as_app(Request("GET", path("/app/installations/{}", installation_id)))
        permissions = object_of(answer).get("permissions")
        return permissions if isinstance(permissions, dict) else {}

    async def _with_token(self, key: TokenKey, attempt: Callable[[Token], Awaitable[_T]]) -> _T:
        """`attempt` with a token, again where only the token was at fault.

        A refused request had no effect, so writes may be repeated here too.
        """
        token, waits, renewed = await self.token(key), iter(_FRESH_WAITS), False
        while True:
            try:
                return await attempt(token)
            except (ForgeUnauthorized, PermissionMissing) as error:
                if self._may_be_lag(error, token):
                    pause = next(waits, None)
                    if pause is None:
                        raise
                    await self._app.sleep(pause)
                elif isinstance(error, ForgeForbidden) or renewed:
                    raise
                else:
                    self._app.tokens.drop(key, token)
                    token, renewed = await self.token(key), True

    def _may_be_lag(self, error: ForgeError, token: Token) -> bool:
        """Whether GitHub's servers may not all know the token yet (seen as 401 and as 403)."""
        if not token.is_fresh(self._app.clock.now()):
            return False
        return not isinstance(error, PermissionMissing) or token.covers(error.accepted)

    async def _send(
        self, client: GitHub[Any], request: Request, token: Token | None
    ) -> httpx.Response:
        headers = {"X-GitHub-Api-Version": self._app.host.api_version}
        if token is not None:
            headers["Authorization"] = f"Bearer {token.value}"
        url = request.path
        for _ in range(_MAX_REDIRECTS):
            response = await self._send_once(client, request, url, headers)
            if response.status_code not in _REDIRECTS:
                return response
            # httpx would turn a redirected POST (a renamed repository) into a GET.
            url = self._own(urljoin(str(response.url), response.headers.get("location", "")))
        raise ForgeError(f"GitHub redirects {request.what} in circles")

    async def _send_once(
        self, client: GitHub[Any], request: Request, url: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        try:
            answer = await client.arequest(
                request.method,
                url,
                params=dict(request.query) if request.query else None,
                json=request.body,
                headers=dict(headers),
            )
        except GitHubException as error:
            if client is self._jwt:
                self._check_key(error)
            # No chain: the exception holds the request, and that the token.
            raise error_of(error, request.what, self._app.clock.now()) from None
        return answer.raw_response

    def _check_key(self, error: GitHubException) -> None:
        cause = getattr(error, "exc", None)
        if isinstance(cause, ValueError | TypeError) or type(cause).__module__.startswith("jwt"):
            role = self._app.credentials.role
            raise ConfigurationError(
                f"The private key of the {role} App can't be used: MERGEWARD_{role.upper()}"
                "_PRIVATE_KEY has to hold the whole .pem file that GitHub gave out."
            ) from None

    def _own(self, url: str) -> str:
        """`url`, when it is of this host. A token must never follow a link to another."""
        parts = urlsplit(url)
        if (parts.scheme, parts.netloc) != self._app.host.origin:
            raise ForgeError(f"GitHub points to another host ({parts.netloc}); not followed")
        return url


def object_of(response: httpx.Response) -> Json:
    """The JSON object of an answer; ForgeUnavailable when it is none (a proxy's page)."""
    answer = _json(response)
    if not isinstance(answer, dict):
        raise ForgeUnavailable("GitHub's answer is not the JSON object it should be")
    return answer


def _rows(response: httpx.Response, wrap: str | None) -> list[Json]:
    answer = _json(response)
    rows = answer.get(wrap) if wrap and isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise ForgeUnavailable("GitHub's answer is not the JSON list it should be")
    return [row for row in rows if isinstance(row, dict)]


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except ValueError:
        raise ForgeUnavailable("GitHub's answer is not JSON") from None
