"""Nothing secret leaves the process in a log line."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.agents.sanitise import outgoing
from app.domain.redaction import MASK
from app.domain.redaction import redact as by_form
from app.logs import (
    configure_logging,
    get_logger,
    keep_secret,
    keep_secrets_of,
    redact,
    redact_event,
)
from app.settings import LogFormat, Settings

TOKEN = "ghs_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE0001"
LONG_TOKEN = "ghs_12345_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NSJ9.abc-DEF_123"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """The root logger's handlers and level are put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(
    ("text", "secret", "kept"),
    [
        pytest.param(f"token {TOKEN} refused", TOKEN, "refused", id="installation-token"),
        pytest.param(f"token {LONG_TOKEN}, refused", "eyJpc3", "refused", id="long-token"),
        pytest.param("github_pat_11AAA_bbb said", "11AAA", "said", id="personal-token"),
        pytest.param("key=sk-FAKE-0001 bad", "FAKE-0001", "bad", id="short-model-key"),
        pytest.param("sk-ant-api03-abc_DEF-123: 401", "abc_DEF", "401", id="model-key"),
        pytest.param(
            f"fatal: unable to access 'https://x-access-token:{TOKEN}@git.example/acme/shop.git/'",
            TOKEN,
            "git.example/acme/shop",
            id="clone-address",
        ),
        pytest.param(
            f"remote: https://{TOKEN}@git.example/acme/shop",
            TOKEN,
            "git.example/acme/shop",
            id="token-as-user",
        ),
        pytest.param(
            "postgresql+psycopg://app:hunter2@db:5432/x", "hunter2", "db:5432/x", id="database"
        ),
        pytest.param("redis://:hunter2@cache/0", "hunter2", "cache/0", id="broker"),
        pytest.param("Authorization: Bearer abc.def-ghi", "abc.def", "Authorization", id="bearer"),
        pytest.param("{'authorization': 'token abcdef'}", "abcdef", "authorization", id="repr"),
        pytest.param('{"x-api-key": "hunter2"}', "hunter2", "x-api-key", id="json-header"),
        pytest.param("basic eC1hY2Nlc3MtdG9rZW46YWJj", "eC1hY2", "basic", id="basic"),
        pytest.param(f"key: {PEM} end", "MIIEow", "end", id="private-key"),
        pytest.param(PEM[:40], "MIIE", "", id="cut-private-key"),
        pytest.param(f"{PEM[:31]} begins a key", "BEGIN", "begins a key", id="header-of-a-key"),
        pytest.param("jwt eyJhbGciOiJI.eyJpc3MiOiIx.c2ln", "eyJpc3", "jwt", id="jwt"),
        pytest.param("AKIAIOSFODNN7EXAMPLE in search.py", "IOSFODNN", "search.py", id="aws"),
        pytest.param(f"{PEM.replace(chr(10), chr(92) + 'n')} end", "MIIEow", "end", id="json-key"),
        pytest.param('Authorization: Digest a="b", c="dead"', "dead", "Authorization", id="digest"),
        pytest.param("https://h/x?access_token=abcd1234efgh&a=b", "abcd1234", "a=b", id="query"),
        pytest.param("xoxb-1234567890-abc", "1234567890", "", id="chat"),
    ],
)
def test_secrets_by_their_form(text: str, secret: str, kept: str) -> None:
    """The secret goes, the words around it stay readable; on a page as in a log."""
    for cleaned in (redact(text), outgoing(text), by_form(text)):
        assert secret not in cleaned
        assert kept in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/acme/shop/pull/7#discussion_r1",
        "user@example.com wrote",
        "git@github.com:acme/shop.git",
        "task-3 of risk-free desk-work",
        "input_tokens=3 basic idea of the bearer of news",
        "/home/user@host/file",
        "Basic authentication and bearer tokens are words",
        "the sk-circle-bounce class of a style sheet",
        'headers = {"Authorization": f"Bearer {token}"}',
        'f"postgres://{user}:{password}@{host}/x"',
    ],
)
def test_harmless_text_stays(text: str) -> None:
    """A log that hides everything helps nobody."""
    assert redact(text) == text


@given(before=st.text(max_size=30), after=st.text(max_size=30))
def test_a_token_is_found_anywhere(before: str, after: str) -> None:
    """Whatever stands around it, except that a letter before it makes it another word."""
    assert TOKEN not in redact(f"{before} {TOKEN}{after}")


@given(text=st.text(max_size=300))
def test_masking_is_stable(text: str) -> None:
    """Masking masked text changes nothing more, and no text breaks it."""
    assert redact(redact(text)) == redact(text)


def test_masking_is_linear() -> None:
    """A log line cannot be made to take seconds."""
    parts = ("ghs_", "://", "a://", "eyJ.", "eyJ-", "-----BEGIN PRIVATE KEY-----", "bearer ", "sk-")
    for part in (*parts, "authorization: ", "?key=", "SG.aaaaaaaaaaaaaaaaaaaa", "10.", "a-"):
        started = time.process_time()
        redact(part * (200_000 // len(part)))
        assert time.process_time() - started < 2, part


def test_a_known_secret_is_masked_whatever_it_looks_like() -> None:
    """A webhook secret has no form; it is told by name once."""
    keep_secret("correct horse battery", "short")
    assert "horse" not in redact("it was correct horse battery!")
    assert redact("a short word") == "a short word"


def test_a_secret_inside_another_leaves_nothing_of_it() -> None:
    """The longer one goes first, whichever was told first."""
    keep_secret("inner-secret", "outer-inner-secret-tail")
    assert redact("x outer-inner-secret-tail y") == f"x {MASK} y"


def test_every_secret_of_the_settings_is_known() -> None:
    """The process masks what it was started with, by its very value."""
    keep_secrets_of(Settings(reviewer_webhook_secret=SecretStr("no form at all")))
    assert redact("signed with no form at all") == f"signed with {MASK}"


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "authorization",
        "webhook_secret",
        "api_key",
        "private_key",
        "password",
        "Set-Cookie",
    ],
)
def test_secrets_by_their_name(name: str) -> None:
    """Under such a name nothing is shown, at any depth."""
    event = redact_event(None, "info", {name: "x1", "deep": [{name: "x2"}], "n": 1})
    assert event == {name: MASK, "deep": [{name: MASK}], "n": 1}


def lines(log_format: LogFormat, act: Any, level: str = "info") -> list[str]:
    stream = io.StringIO()
    configure_logging(log_format=log_format, level=level, stream=stream)
    act()
    return stream.getvalue().splitlines()


def test_json_lines_hold_the_context() -> None:
    """One JSON object a line with level, time, logger, and the job it is about."""

    def act() -> None:
        with structlog.contextvars.bound_contextvars(job_id=7):
            get_logger("app.x").info("review\nstarted", usage={"input_tokens": 3})
        get_logger("app.x").debug("not shown")

    [line] = lines(LogFormat.JSON, act)
    event = json.loads(line)
    assert (event["event"], event["job_id"], event["level"]) == ("review\nstarted", 7, "info")
    assert event["usage"] == {"input_tokens": 3}
    assert event["timestamp"].endswith("Z")


@pytest.mark.parametrize("log_format", [LogFormat.JSON, LogFormat.CONSOLE])
def test_tracebacks_are_masked_and_show_no_variables(log_format: LogFormat) -> None:
    """An exception's text and chain are cleaned like any other."""

    def clone() -> None:
        raise ValueError(f"clone of https://u:{TOKEN}@host/x failed")

    def work(hidden: str) -> None:
        try:
            clone()
        except ValueError as error:
            raise RuntimeError(f"{len(hidden)} {LONG_TOKEN}") from error

    def act() -> None:
        try:
            work("/".join(("a value", "nobody may see")))
        except RuntimeError:
            get_logger("app.x").exception("boom")

    text = "\n".join(lines(log_format, act))
    assert "RuntimeError" in text
    assert "ValueError" in text
    assert TOKEN not in text
    assert "eyJpc3" not in text
    assert "a value/nobody may see" not in text


def test_other_libraries_logs_are_masked_too() -> None:
    """Uvicorn, SQLAlchemy and the rest go through the same formatter."""

    def act() -> None:
        logging.getLogger("uvicorn.error").warning("header %s", f"Bearer {TOKEN}")
        logging.getLogger("httpx").info("GET https://x/?a=b")

    [line] = lines(LogFormat.JSON, act)
    assert TOKEN not in line
    assert json.loads(line)["logger"] == "uvicorn.error"


def test_hostile_text_cannot_move_the_cursor_or_break_the_log() -> None:
    """Escape sequences and half characters are replaced."""

    def act() -> None:
        get_logger("app.x").info("title", text="\x1b[2J\x9b31m \ud83d")

    for log_format in (LogFormat.JSON, LogFormat.CONSOLE):
        text = "\n".join(lines(log_format, act))
        assert "\x1b[2J" not in text
        text.encode()


def test_before_configuration_secrets_are_masked_already(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever forgets to configure logging shows no secret either."""
    get_logger("app.x").warning("early", detail=f"x {TOKEN}")
    assert "early" in caplog.text
    assert TOKEN not in caplog.text
