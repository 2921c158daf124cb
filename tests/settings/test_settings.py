"""Settings: what is wrong is named with its remedy, and no secret is ever shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.jobs import AppRole
from app.errors import ConfigurationError
from app.settings import Settings, load_settings, normalise_database_url

WEB = {"MERGEWARD_REVIEWER_WEBHOOK_SECRET": "hush-hush-hush"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see only the variables they set."""
    for name in os.environ:
        if name.startswith("MERGEWARD_") or name.removesuffix("_FILE").endswith("_API_KEY"):
            monkeypatch.delenv(name)


def load(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> Settings:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return load_settings()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("sqlite:///data/x.db", "sqlite+aiosqlite:///data/x.db"),
        ("sqlite:////var/x.db", "sqlite+aiosqlite:////var/x.db"),
        ("sqlite+aiosqlite:///x.db", "sqlite+aiosqlite:///x.db"),
        ("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        (
            "postgresql://u:p@h:5433/d?sslmode=require",
            "postgresql+psycopg://u:p@h:5433/d?sslmode=require",
        ),
        ("postgresql+psycopg://h/d", "postgresql+psycopg://h/d"),
        ("PostgreSQL://h/d", "postgresql+psycopg://h/d"),
    ],
)
def test_database_spellings(given: str, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an operator copies from somewhere, we use our drivers."""
    assert load(monkeypatch, {"MERGEWARD_DATABASE_URL": given}).async_database_url == used


def test_the_default_database_is_a_file_in_the_data_folder() -> None:
    """Nothing to install, nothing to set; the path does not depend on later changes of folder."""
    url = load_settings(data_dir=Path("somewhere")).async_database_url
    assert url == f"sqlite+aiosqlite:///{Path.cwd() / 'somewhere' / 'mergeward.db'}"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MERGEWARD_DATABASE_URL": "mysql://root:pw-hunter2@h/d"}, ("DATABASE_URL", "postgresql")),
        ({"MERGEWARD_DATABASE_URL": "pw-hunter2"}, ("DATABASE_URL", "sqlite:///")),
        ({"MERGEWARD_PORT": "99999"}, ("MERGEWARD_PORT",)),
        ({"MERGEWARD_PORT": "http"}, ("MERGEWARD_PORT",)),
        ({"MERGEWARD_WORKERS": "0"}, ("MERGEWARD_WORKERS",)),
        ({"MERGEWARD_PUBLIC_URL": "mergeward.example"}, ("MERGEWARD_PUBLIC_URL", "https://")),
        ({"MERGEWARD_GITHUB_API_URL": "ftp://x"}, ("MERGEWARD_GITHUB_API_URL", "https://")),
        ({"MERGEWARD_REVIEWER_APP_ID": "my-app"}, ("MERGEWARD_REVIEWER_APP_ID",)),
        ({"MERGEWARD_LOG_FORMAT": "xml"}, ("MERGEWARD_LOG_FORMAT",)),
        (
            {"MERGEWARD_PORT": "x", "MERGEWARD_WORKERS": "x"},
            ("MERGEWARD_PORT", "MERGEWARD_WORKERS"),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_values_are_named(
    environ: dict[str, str], words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line per wrong variable, with what it should be, and never with what it was."""
    with pytest.raises(ConfigurationError) as caught:
        load(monkeypatch, environ)
    for word in words:
        assert word in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_web_needs_a_webhook_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret, no start; an empty one (as Compose passes it) is none."""
    with pytest.raises(ConfigurationError, match="MERGEWARD_REVIEWER_WEBHOOK_SECRET"):
        load(monkeypatch, {"MERGEWARD_REVIEWER_WEBHOOK_SECRET": ""}).require_web()
    load(monkeypatch, WEB).require_web()


@pytest.mark.parametrize("role", list(AppRole))
def test_an_app_needs_id_and_key(role: AppRole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an App is no App, and the error says which variables to set."""
    prefix = f"MERGEWARD_{role.value.upper()}"
    settings = load(monkeypatch, {f"{prefix}_APP_ID": "7"})
    assert getattr(settings, role.value) is None
    with pytest.raises(ConfigurationError, match=f"{prefix}_PRIVATE_KEY_FILE"):
        getattr(settings, f"require_{role.value}")()
    settings = load(
        monkeypatch,
        {
            f"{prefix}_APP_ID": "7",
            f"{prefix}_SLUG": "review-app",
            f"{prefix}_PRIVATE_KEY": r"-----BEGIN KEY-----\nabc\n-----END KEY-----",
            f"{prefix}_WEBHOOK_SECRET": "new",
            f"{prefix}_WEBHOOK_SECRET_PREVIOUS": "old",
        },
    )
    app = getattr(settings, f"require_{role.value}")()
    assert (app.app_id, app.login, app.role) == (7, "review-app[bot]", role)
    assert app.private_key.get_secret_value() == "-----BEGIN KEY-----\nabc\n-----END KEY-----"
    assert [secret.get_secret_value() for secret in app.webhook_secrets] == ["new", "old"]


SECRETS = sorted(
    name for name, info in Settings.model_fields.items() if "SecretStr" in str(info.annotation)
)


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_may_come_from_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_FILE` works for all of them, without the line end that editors add."""
    content = "sqlite:///x.db" if name == "database_url" else "the secret"
    (tmp_path / "secret").write_text(content + "\r\n")
    settings = load(monkeypatch, {f"MERGEWARD_{name.upper()}_FILE": str(tmp_path / "secret")})
    secret: SecretStr = getattr(settings, name)
    assert secret.get_secret_value() == content.replace("sqlite:", "sqlite+aiosqlite:")


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"])
def test_providers_usual_variables_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names everybody has set already; ours wins."""
    field = name.lower()
    assert getattr(load_settings(), field) is None
    usual = getattr(load(monkeypatch, {name: "usual"}), field)
    ours = getattr(load(monkeypatch, {f"MERGEWARD_{name}": "ours"}), field)
    assert (usual.get_secret_value(), ours.get_secret_value()) == ("usual", "ours")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        pytest.param(None, "cannot read", id="missing"),
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"\n", "empty", id="blank"),
        pytest.param(b"x" * 70_000, "too large", id="too-large"),
        pytest.param(b"\xff\xfe", "cannot read", id="not-text"),
    ],
)
def test_unusable_secret_files_are_named(
    content: bytes | None, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable and the path, so that one look finds the mistake."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=word) as caught:
        load(monkeypatch, {"MERGEWARD_REVIEWER_WEBHOOK_SECRET_FILE": str(path)})
    assert "MERGEWARD_REVIEWER_WEBHOOK_SECRET_FILE" in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_secret_given_twice_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one would count nobody could tell."""
    (tmp_path / "secret").write_text("x")
    path = str(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match="Both"):
        load(monkeypatch, {**WEB, "MERGEWARD_REVIEWER_WEBHOOK_SECRET_FILE": path})


def test_no_env_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """We run inside repositories of strangers; their `.env` must not redirect our keys."""
    (tmp_path / ".env").write_text("MERGEWARD_MODEL_BASE_URL=https://evil.example\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings().model_base_url is None


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by printing the settings nor by dumping them."""
    settings = load(monkeypatch, {name_of(name): "sqlite:///hunter2.db" for name in SECRETS})
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert "hunter2" not in shown


def name_of(field: str) -> str:
    return f"MERGEWARD_{field.upper()}"


def test_addresses_lose_their_last_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that paths can be appended."""
    settings = load(monkeypatch, {"MERGEWARD_GITHUB_API_URL": "https://ghe.example/api/v3/"})
    assert settings.github_api_url == "https://ghe.example/api/v3"


def test_unknown_overrides_are_refused() -> None:
    """A misspelt override is a mistake of the caller, not a setting."""
    overrides: dict[str, Any] = {"debounce": 3}
    with pytest.raises(ConfigurationError, match="debounce"):
        load_settings(**overrides)


@pytest.mark.parametrize("url", ["", "://", "oracle://x", "sqlite", "postgresql+asyncpg://h/d"])
def test_other_databases_are_refused(url: str) -> None:
    """Only the drivers we ship and test."""
    with pytest.raises(ValueError, match="must be"):
        normalise_database_url(url)
