"""Settings: everything an operator decides, read from `MERGEWARD_*` environment variables.

Every secret may also come from a file named by the same variable with `_FILE` appended
(`MERGEWARD_REVIEWER_WEBHOOK_SECRET_FILE=/run/secrets/webhook`). No `.env` file is read: the
process may run inside a repository that somebody else wrote.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import InitSettingsSource

from app.domain.jobs import AppRole
from app.errors import ConfigurationError

PREFIX = "MERGEWARD_"
_FILE_SUFFIX = "_FILE"
_MAX_SECRET_BYTES = 64 * 1024
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


class LogFormat(StrEnum):
    """`auto` is `console` on a terminal and `json` elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class AppCredentials:
    """What is needed to act as one GitHub App. `private_key` is PEM text.

    `webhook_secrets` are the secrets valid now (one, or two during a rotation).
    """

    role: AppRole
    app_id: int
    private_key: SecretStr
    slug: str | None = None
    webhook_secrets: tuple[SecretStr, ...] = field(default=())

    @property
    def login(self) -> str | None:
        """The login the App acts under (`slug[bot]`), None while the slug is not configured."""
        return f"{self.slug}[bot]" if self.slug else None


class Settings(BaseSettings):
    """All settings. Construct it through `load_settings`, which explains what is wrong."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Path("data")
    mirror_quota_gb: float = Field(default=20.0, gt=0)
    """Gigabytes of disk for local copies of repositories; an ordinary one takes 10 to 100 MB."""
    database_url: SecretStr | None = None
    redis_url: SecretStr | None = None

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    public_url: str | None = None
    workers: int = Field(default=4, ge=1, le=256)
    """Jobs that one process runs side by side."""
    review_debounce_seconds: float = Field(default=3.0, ge=0, le=600)
    """How long a push waits for the next one before its review may start."""
    log_format: LogFormat = LogFormat.AUTO
    log_level: str = "info"

    github_api_url: str = "https://api.github.com"
    github_web_url: str = "https://github.com"
    github_api_version: str = "2026-03-10"
    github_pacing: bool = True

    reviewer_app_id: int | None = None
    reviewer_slug: str | None = None
    reviewer_private_key: SecretStr | None = None
    reviewer_webhook_secret: SecretStr | None = None
    reviewer_webhook_secret_previous: SecretStr | None = None

    fixer_app_id: int | None = None
    fixer_slug: str | None = None
    fixer_private_key: SecretStr | None = None
    fixer_webhook_secret: SecretStr | None = None
    fixer_webhook_secret_previous: SecretStr | None = None

    anthropic_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "MERGEWARD_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "anthropic_api_key"
        ),
    )
    openai_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "MERGEWARD_OPENAI_API_KEY", "OPENAI_API_KEY", "openai_api_key"
        ),
    )
    model_base_url: str | None = None
    """Base URL of a compatible server to use instead of the provider's own."""
    model_wire: Literal["anthropic", "openai"] = "anthropic"
    """What `model_base_url` speaks: Anthropic's Messages API, or OpenAI's chat completions (Ollama,
    vLLM and most gateways; the URL then ends in `/v1`)."""
    model_api_key: SecretStr | None = None
    """The key sent to `model_base_url`, when it needs one."""
    model: str | None = None
    """One model for every agent, instead of the shipped defaults."""

    spend_day_usd: float | None = Field(default=None, ge=0)
    """What models may cost each installation in a day of UTC, in US dollars."""
    spend_month_usd: float | None = Field(default=None, ge=0)
    """The same for a month."""
    prices_file: Path | None = None
    """The operator's own prices of models, TOML; the published ones for all others."""
    breaker_failures: int = Field(default=5, ge=1, le=100)
    """Failures of a model in a row after which it is not asked for a while."""
    breaker_seconds: float = Field(default=120.0, gt=0, le=3600)
    """How long a model that failed is left alone before one call may try it again."""

    gateway_url: str | None = None
    """Address of a gateway that every model is reached through, by `/anthropic` and `/openai`."""
    gateway_token: SecretStr | None = None
    """Sent to the gateway as `cf-aig-authorization`."""
    gateway_id_key: SecretStr | None = None
    """Makes the anonymous ids of users that the gateway gets."""
    gateway_strip: str = "authorization,cf-access-token,host"
    """Headers that never reach the gateway, separated by commas."""
    gateway_models: Path | None = None
    """A TOML file with the gateway's own tiers of models."""
    reviewer_config_url: str | None = None
    """Where remote overrides of reviewers are fetched from."""
    reviewer_config_token: SecretStr | None = None
    codex: str | None = None
    """The organisation's rules: a YAML file, or its https:// address."""
    agents_md_template: Path | None = None
    """A file that shows how an AGENTS.md of this organisation should look."""
    telemetry_url: str | None = None
    """A collector of the operator's that gets events as JSON Lines; none: nothing is sent."""
    telemetry_token: SecretStr | None = None
    tracing: bool = False
    """Whether sessions of agents are traced through OpenTelemetry."""
    internal_hosts: str = ""
    """Hosts inside the operator's network that documents may be fetched from."""
    plugins_off: str = ""
    """Names of plugins, separated by commas, that are left out."""

    @field_validator(
        "github_api_url",
        "github_web_url",
        "public_url",
        "model_base_url",
        "gateway_url",
        "telemetry_url",
    )
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            msg = "must start with https:// (or http:// for a server on this machine)"
            raise ValueError(msg)
        return value.rstrip("/") if value else value

    @field_validator("database_url")
    @classmethod
    def _known_driver(cls, value: SecretStr | None) -> SecretStr | None:
        return (
            None if value is None else SecretStr(normalise_database_url(value.get_secret_value()))
        )

    @field_validator("reviewer_private_key", "fixer_private_key")
    @classmethod
    def _unescape_key(cls, value: SecretStr | None) -> SecretStr | None:
        # An environment variable often holds the PEM with literal "\n" instead of line ends.
        return None if value is None else SecretStr(value.get_secret_value().replace("\\n", "\n"))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _SecretFiles(settings_cls)

    @property
    def async_database_url(self) -> str:
        """The SQLAlchemy URL, with an async driver. Holds the password: never log it."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite+aiosqlite:///{(self.data_dir / 'mergeward.db').resolve()}"

    @property
    def mirror_quota_bytes(self) -> int:
        """What all mirrors of this machine together may take on disk."""
        return int(self.mirror_quota_gb * 1e9)

    @property
    def reviewer(self) -> AppCredentials | None:
        """The reviewer App, or None while its id or its key is not set."""
        return self._app(AppRole.REVIEWER)

    @property
    def fixer(self) -> AppCredentials | None:
        """The fixer App, or None: then fix pull requests are judged by the check run alone."""
        return self._app(AppRole.FIXER)

    def webhook_secrets(self, role: AppRole) -> tuple[SecretStr, ...]:
        """The webhook secrets of one App that are valid now; empty: its deliveries are refused."""
        names = ("webhook_secret", "webhook_secret_previous")
        found = (getattr(self, f"{role.value}_{name}") for name in names)
        return tuple(secret for secret in found if secret is not None)

    def require_web(self) -> None:
        """Refuse to serve webhooks that anybody could forge. Raises ConfigurationError."""
        if not self.webhook_secrets(AppRole.REVIEWER):
            raise ConfigurationError(
                "MERGEWARD_REVIEWER_WEBHOOK_SECRET is not set, so webhooks could be forged. "
                "Set it (or MERGEWARD_REVIEWER_WEBHOOK_SECRET_FILE) to the webhook secret of "
                "the reviewer App."
            )

    def require_reviewer(self) -> AppCredentials:
        """The reviewer App's credentials. Raises ConfigurationError naming what is missing."""
        return self._require_app(AppRole.REVIEWER)

    def require_fixer(self) -> AppCredentials:
        """The fixer App's credentials. Raises ConfigurationError naming what is missing."""
        return self._require_app(AppRole.FIXER)

    def _app(self, role: AppRole) -> AppCredentials | None:
        app_id: int | None = getattr(self, f"{role.value}_app_id")
        private_key: SecretStr | None = getattr(self, f"{role.value}_private_key")
        if app_id is None or private_key is None:
            return None
        return AppCredentials(
            role=role,
            app_id=app_id,
            private_key=private_key,
            slug=getattr(self, f"{role.value}_slug"),
            webhook_secrets=self.webhook_secrets(role),
        )

    def _require_app(self, role: AppRole) -> AppCredentials:
        app = self._app(role)
        if app is None:
            prefix = f"{PREFIX}{role.value.upper()}"
            raise ConfigurationError(
                f"The {role.value} App is not configured: set {prefix}_APP_ID to its numeric id "
                f"and {prefix}_PRIVATE_KEY_FILE to the path of its private key (a .pem file)."
            )
        if app.slug is None:
            raise ConfigurationError(
                f"{PREFIX}{role.value.upper()}_SLUG is not set, so Mergeward could not tell its "
                "own acts from other bots'. Set it to the last part of the address of the App's "
                "page, github.com/apps/SLUG."
            )
        return app


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment; `overrides` (field names) win over it.

    Raises ConfigurationError with one line per wrong variable. Values are never quoted.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationError(_explain(error)) from None


def normalise_database_url(url: str) -> str:
    """The same database by the async driver we ship. Raises ValueError for other databases."""
    scheme, separator, rest = url.partition("://")
    driver = _DRIVERS.get(scheme.lower())
    if not separator or driver is None:
        msg = "must be sqlite:///path or postgresql://user@host/database"
        raise ValueError(msg)
    return f"{driver}://{rest}"


class _SecretFiles(InitSettingsSource):
    """Reads `<VARIABLE>_FILE` for every secret setting; surrounding line ends are dropped."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        found: dict[str, Any] = {}
        for name, info in settings_cls.model_fields.items():
            if "SecretStr" in str(info.annotation):
                secret = _read_secret_file(name, info, os.environ)
                if secret is not None:
                    found[name] = secret
        super().__init__(settings_cls, found)


def _variables(name: str, info: FieldInfo) -> tuple[str, ...]:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices if str(choice).isupper())
    return (f"{PREFIX}{name.upper()}",)


def _read_secret_file(name: str, info: FieldInfo, environ: Mapping[str, str]) -> str | None:
    for variable in _variables(name, info):
        path = environ.get(variable + _FILE_SUFFIX)
        if not path:
            continue
        if environ.get(variable):
            raise ConfigurationError(
                f"Both {variable} and {variable}{_FILE_SUFFIX} are set. Keep one of them."
            )
        return _read_small_file(variable + _FILE_SUFFIX, Path(path))
    return None


def _read_small_file(variable: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SECRET_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{variable}: cannot read {path}: {error}.") from None
    if len(content) > _MAX_SECRET_BYTES or not text.strip():
        raise ConfigurationError(f"{variable}: {path} is empty or too large to be a secret.")
    return text.strip("\r\n")


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_input=False, include_url=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        info = Settings.model_fields.get(name)
        variable = _variables(name, info)[0] if info else name
        lines.append(f"{variable}: {problem['msg'].removeprefix('Value error, ')}.")
    return "\n".join(lines)
