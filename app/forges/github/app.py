"""One GitHub App on one host, for the life of a process: credentials, tokens, who it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from githubkit.cache import MemCacheStrategy

from app.clock import Clock, SystemClock
from app.domain.forge import AppIdentity
from app.domain.jobs import AppRole
from app.forges.github.tokens import Scope, TokenVault
from app.forges.pace import DEFAULT_PACE, UNPACED, Pace, PaceLimits
from app.settings import AppCredentials, Settings

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Host:
    """A GitHub: github.com, an Enterprise Server (`api_url` ends in `/api/v3`) or a double.

    `timeout` is in seconds per request. `read_retries` are the pauses before a failed GET is sent
    again; everything else is sent once. `transport` replaces the network (tests).
    """

    api_url: str = "https://api.github.com"
    web_url: str = "https://github.com"
    api_version: str = "2026-03-10"
    timeout: float = 20.0
    read_retries: tuple[float, ...] = (0.5, 2.0)
    transport: httpx.AsyncBaseTransport | None = None

    @property
    def graphql_url(self) -> str:
        """`…/graphql`, or `…/api/graphql` on an Enterprise Server."""
        base = self.api_url.rstrip("/")
        return base.removesuffix("/v3") + "/graphql"

    @property
    def origin(self) -> tuple[str, str]:
        """Scheme and authority: tokens are sent nowhere else."""
        parts = urlsplit(self.api_url)
        return parts.scheme, parts.netloc

    def clone_url(self, full_name: str) -> str:
        return f"{self.web_url.rstrip('/')}/{full_name}.git"


@dataclass(slots=True)
class GitHubApp:
    """State that the jobs of a process share. Make one per App; it opens no connection itself.

    Each has its own cache of tokens: githubkit's global one knows neither host nor test.
    """

    credentials: AppCredentials
    host: Host
    clock: Clock = field(default_factory=SystemClock)
    sleep: Sleep = asyncio.sleep
    pace_limits: PaceLimits = DEFAULT_PACE
    tokens: TokenVault = field(init=False, repr=False)
    jwt_cache: MemCacheStrategy = field(init=False, repr=False, default_factory=MemCacheStrategy)
    identity: AppIdentity | None = field(init=False, default=None)
    installations: dict[int, int] = field(init=False, default_factory=dict)
    """Repository id to this App's own installation id, as far as asked."""
    awake: int | None = field(init=False, default=None)
    """An installation whose token worked: the last one."""
    paces: dict[int, Pace] = field(init=False, default_factory=dict)
    """By installation id."""

    def __post_init__(self) -> None:
        self.tokens = TokenVault(self.clock)

    @classmethod
    def from_settings(cls, settings: Settings, credentials: AppCredentials) -> GitHubApp:
        """The App with these credentials on the host that the settings name."""
        host = Host(
            api_url=settings.github_api_url,
            web_url=settings.github_web_url,
            api_version=settings.github_api_version,
        )
        pace = DEFAULT_PACE if settings.github_pacing else UNPACED
        return cls(credentials, host, pace_limits=pace)

    def pace(self, installation_id: int) -> Pace:
        """How fast this installation may be written to."""
        return self.paces.setdefault(installation_id, Pace(self.pace_limits))

    def forget_installation(self, installation_id: int) -> None:
        """It is gone; the next question looks for a new one."""
        if self.awake == installation_id:
            self.awake = None
        known = self.installations.items()
        self.installations = {repo: number for repo, number in known if number != installation_id}

    @property
    def is_reviewer(self) -> bool:
        """A `RepoRef` names the reviewer's installation; any other App has to ask for its own."""
        return self.credentials.role is AppRole.REVIEWER

    @property
    def scope(self) -> Scope:
        """What this App's ordinary token may do."""
        return Scope.JUDGE if self.is_reviewer else Scope.WORK

    @property
    def private_key(self) -> str:
        # An environment variable often holds the PEM with literal "\n" instead of line ends.
        return self.credentials.private_key.get_secret_value().replace("\\n", "\n")
