"""Who is calling: App JWTs, installation tokens and people's tokens."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from app.sandbox.github.config import AppConfig
from app.sandbox.github.errors import ApiError, bad_credentials
from app.sandbox.github.state import Account, App, Installation, Kind
from app.sandbox.github.world import World

MAX_JWT_SECONDS = 600
# GitHub forgives a clock that is a little ahead.
CLOCK_SKEW_SECONDS = 60
_BAD_EXPIRY = (
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at "
    "which the assertion expires"
)
_FAR_EXPIRY = "'Expiration time' claim ('exp') is too far in the future"
_BAD_ISSUED = (
    "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was "
    "issued"
)
_NO_JWT = "A JSON web token could not be decoded"


@dataclass(frozen=True)
class Token:
    """An installation token, narrowed at minting; `repositories` None means all covered."""

    value: str
    installation: Installation
    permissions: Mapping[str, str]
    repositories: frozenset[int] | None
    expires_at: datetime


@dataclass(frozen=True)
class Actor:
    """The caller of one request. `account` is None for anonymous callers.

    `app` is set for JWTs and installation tokens, `token` for the latter only.
    """

    account: Account | None
    app: App | None = None
    token: Token | None = None

    @property
    def name(self) -> str:
        if self.app is not None and self.token is None:
            return f"{self.app.slug} (jwt)"
        return self.account.login if self.account else "anonymous"


ANONYMOUS = Actor(None)


def register_app(world: World, config: AppConfig) -> App:
    """Create an App with its bot account; keys are generated when the configuration has none."""
    pem = config.private_key or _new_key(config.id)
    bot = world.ensure_account(f"{config.slug}[bot]", Kind.BOT)
    bot.app_id, bot.token = config.id, ""
    app = App(
        id=config.id,
        slug=config.slug,
        name=config.name or config.slug,
        client_id=config.client_id or f"Iv23li{config.id:014d}",
        private_key=pem,
        public_key=loaded_key(pem).public_key(),
        permissions=dict(config.permissions),
        events=config.events,
        owner=world.ensure_account(config.owner, Kind.ORGANIZATION),
        bot=bot,
        hook_id=world.next_id(),
        webhook_url=config.webhook_url,
        webhook_secret=config.webhook_secret,
        created_at=world.now(),
    )
    world.apps[app.id] = app
    return app


@cache
def loaded_key(pem: str) -> rsa.RSAPrivateKey:
    """The key of a PEM, kept: loading checks the primes, which takes 50 ms."""
    private = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(private, rsa.RSAPrivateKey):
        raise TypeError("the private key of a GitHub App must be an RSA key")
    return private


@cache
def _new_key(app_id: int) -> str:
    """A key generated at first use; once per process and App, since it takes 0.1 s or more."""
    del app_id
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return pem.decode()


@dataclass
class Identity:
    """Checks credentials and mints installation tokens."""

    world: World
    lifetime_seconds: int
    tokens: dict[str, Token] = field(default_factory=dict)

    def mint(
        self,
        installation: Installation,
        permissions: Mapping[str, str],
        repositories: frozenset[int] | None,
    ) -> Token:
        """A new `ghs_…` token; long, as GitHub's have been since 2026."""
        value = f"ghs_{installation.app.id}_{secrets.token_urlsafe(120)}"
        expires = self.world.now() + timedelta(seconds=self.lifetime_seconds)
        token = Token(value, installation, dict(permissions), repositories, expires)
        self.tokens[value] = token
        return token

    def revoke(self, installation: Installation | None = None) -> None:
        """Forget the tokens of one installation, or all: they answer 401 from now on."""
        kept = {
            value: token
            for value, token in self.tokens.items()
            if installation is not None and token.installation is not installation
        }
        self.tokens = kept

    def actor(self, authorization: str | None) -> Actor:
        """The caller named by an Authorization header; 401 when it names nobody."""
        if not authorization:
            return ANONYMOUS
        scheme, _, value = authorization.partition(" ")
        value = value.strip()
        match scheme.lower():
            case "basic":
                return self.by_token(_basic_password(value))
            case "bearer" | "token" if value.count(".") == 2 and not value.startswith("gh"):
                app = self.app_of_jwt(value)
                return Actor(app.bot, app)
            case "bearer" | "token":
                return self.by_token(value)
            case _:
                raise bad_credentials()

    def by_token(self, value: str) -> Actor:
        """The owner of an installation or personal token."""
        token = self.tokens.get(value)
        if token is None:
            account = self.world.account_of_token(value)
            if account is None:
                raise bad_credentials()
            return Actor(account)
        installation = token.installation
        if token.expires_at <= self.world.now():
            raise bad_credentials()
        if installation.id not in self.world.installations:
            raise bad_credentials()
        if installation.suspended_at is not None:
            raise suspended()
        return Actor(installation.app.bot, installation.app, token)

    def app_of_jwt(self, value: str) -> App:
        """The App that signed a JWT, with GitHub's rules on `iss`, `iat` and `exp`."""
        try:
            issuer = jwt.decode(value, options={"verify_signature": False}).get("iss")
        except jwt.PyJWTError:
            raise ApiError(401, _NO_JWT) from None
        app = self.world.app_of_issuer(str(issuer))
        if app is None:
            raise ApiError(404, "Integration not found")
        options = {"verify_exp": False, "verify_iat": False, "verify_sub": False}
        try:
            claims = jwt.decode(value, app.public_key, algorithms=["RS256"], options=options)  # type: ignore[arg-type]  # PyJWT's TypedDict is not exported in a stable place
        except jwt.PyJWTError:
            raise ApiError(401, _NO_JWT) from None
        self._check_times(claims)
        return app

    def _check_times(self, claims: Mapping[str, object]) -> None:
        now = self.world.clock().timestamp()
        issued, expires = claims.get("iat"), claims.get("exp")
        if not isinstance(expires, int) or expires <= now:
            raise ApiError(401, _BAD_EXPIRY)
        if not isinstance(issued, int) or issued > now + CLOCK_SKEW_SECONDS:
            raise ApiError(401, _BAD_ISSUED)
        if expires > now + MAX_JWT_SECONDS + CLOCK_SKEW_SECONDS:
            raise ApiError(401, _FAR_EXPIRY)


def suspended() -> ApiError:
    return ApiError(403, "This installation has been suspended")


def _basic_password(value: str) -> str:
    try:
        _, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise bad_credentials() from None
    return password
