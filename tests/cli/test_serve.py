"""`mergeward serve` as a process: refuses, answers, and ends as it is told."""

from __future__ import annotations

import hashlib
import hmac
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from app.cli.serve import listen
from app.errors import ConfigurationError
from tests.cli.cli_stage import ROOT, command, environment, mergeward

SECRET = "a-webhook-secret"
BODY = b'{"zen": "Approachable is better than simple."}'


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private key of an App."""
    path = tmp_path_factory.mktemp("key") / "app.pem"
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(
        made.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    return path


def settings(folder: Path, **more: str) -> dict[str, str]:
    """What the web process needs."""
    return {
        "MERGEWARD_DATA_DIR": str(folder),
        "MERGEWARD_REVIEWER_WEBHOOK_SECRET": SECRET,
        **more,
    }


def app_settings(folder: Path, key: Path, **more: str) -> dict[str, str]:
    """What web and worker need."""
    return settings(
        folder,
        MERGEWARD_REVIEWER_APP_ID="1",
        MERGEWARD_REVIEWER_SLUG="mergeward",
        MERGEWARD_REVIEWER_PRIVATE_KEY_FILE=str(key),
        **more,
    )


@contextmanager
def serving(
    *options: str, variables: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process once it listens, and its address."""
    process = subprocess.Popen(
        command("serve", "--port", "0", *options),
        cwd=ROOT,
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        assert greeting.startswith("Mergeward listens on http://"), process.communicate()
        yield process, greeting.split()[3]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ping(address: str) -> httpx.Response:
    """A signed delivery."""
    signature = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
    return httpx.post(
        f"{address}/webhooks/github",
        content=BODY,
        headers={
            "content-type": "application/json",
            "x-github-event": "ping",
            "x-github-delivery": "0f1e2d3c-0000-0000-0000-000000000001",
            "x-hub-signature-256": f"sha256={signature}",
        },
    )


@pytest.mark.parametrize("options", [(), ("--web-only",)], ids=["embedded", "web only"])
def test_it_makes_its_tables_answers_and_ends_when_told(
    tmp_path: Path, key: Path, options: tuple[str, ...]
) -> None:
    """The first start needs nothing but settings; SIGTERM is an orderly end with code 0."""
    variables = app_settings(tmp_path / "data", key, MERGEWARD_MODEL_BASE_URL="http://127.0.0.1:9")
    with serving(*options, variables=variables) as (process, address):
        assert ping(address).status_code == 202
        assert httpx.get(f"{address}/readyz").json() == {"status": "ready"}
        assert "server" not in ping(address).headers
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_it_refuses_to_start_without_a_secret(tmp_path: Path) -> None:
    """Anybody could forge deliveries then; the sentence names the variable."""
    result = mergeward("serve", "--port", "0", variables={"MERGEWARD_DATA_DIR": str(tmp_path)})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("mergeward: MERGEWARD_REVIEWER_WEBHOOK_SECRET is not set")
    assert result.stderr.count("\n") == 1


def test_it_refuses_to_work_without_an_app(tmp_path: Path) -> None:
    """Deliveries would be stored and never worked on."""
    result = mergeward("serve", "--port", "0", variables=settings(tmp_path))
    assert result.returncode == 2
    assert "MERGEWARD_REVIEWER_APP_ID" in result.stderr


def test_a_worker_that_cannot_work_ends_the_process(tmp_path: Path, key: Path) -> None:
    """Without a model nothing could be reviewed: it is said, and not only after the first job."""
    result = mergeward("serve", "--port", "0", variables=app_settings(tmp_path, key))
    assert result.returncode == 2
    assert "No model can be reached: set ANTHROPIC_API_KEY" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """One sentence with the way out, before anything else is done."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = mergeward(
            "serve", "--web-only", "--port", port, variables=settings(tmp_path / "data")
        )
    assert (result.returncode, result.stdout) == (2, "")
    assert f"Port {port} on 127.0.0.1 is in use" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["203.0.113.1", "no.such.host.invalid", "127.0.0.1.9"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigurationError, match=f"MERGEWARD_HOST: {host}"):
        listen(host, 0)
