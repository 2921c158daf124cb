"""Installation tokens: narrow, minted once, dropped when dead."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import httpx
import pytest

from app.domain.jobs import AppRole
from app.errors import ConfigurationError, ForgeForbidden, ForgeNotFound, ForgeUnauthorized
from app.forges.github.tokens import Scope, at_most
from app.forges.github.writes import GitHubForge
from tests.forges.github.stub import PULL, REPO, TOKENS, Stub, no, ok

PULL_PATH = "/repos/acme/shop/pulls/1"
BAD = no(401, "Bad credentials")
MISSING = no(403, "Resource not accessible by integration")


async def test_minted_once(stub: Stub, key: str) -> None:
    """Twenty questions at once cause one token."""
    stub.on("GET", PULL_PATH, ok(PULL))
    async with stub.forge(key) as forge:
        await asyncio.gather(*(forge.pull_request(REPO, 1) for _ in range(20)))
    assert stub.minted == 1


async def test_shared_between_jobs(stub: Stub, key: str) -> None:
    """A second job of the same process uses the token of the first."""
    stub.on("GET", PULL_PATH, ok(PULL))
    app = stub.app(key)
    for _ in range(2):
        async with GitHubForge(app) as forge:
            await forge.pull_request(REPO, 1)
    assert stub.minted == 1


async def test_narrow(stub: Stub, key: str) -> None:
    """A review's token knows one repository and can't write its contents."""
    stub.on("GET", PULL_PATH, ok(PULL))
    async with stub.forge(key) as forge:
        await forge.pull_request(REPO, 1)
        await forge.clone_remote(REPO, write=False)
        await forge.clone_remote(REPO, write=True)
    bodies = [json.loads(r.content) for r in stub.requests if r.url.path == TOKENS]
    assert [body["repository_ids"] for body in bodies] == [[7], [7], [7]]
    assert [body["permissions"].get("contents") for body in bodies] == ["read", "read", "write"]
    assert [len(body["permissions"]) for body in bodies] == [4, 1, 1]


async def test_near_its_end(stub: Stub, key: str) -> None:
    """A token in its last minutes is not handed to a clone that may outlast it."""
    async with stub.forge(key) as forge:
        first = await forge.clone_remote(REPO, write=False)
        stub.clock.move_to(stub.clock.now() + timedelta(minutes=56))
        second = await forge.clone_remote(REPO, write=False)
    assert first.token != second.token


async def test_revoked(stub: Stub, key: str) -> None:
    """A token that died early is dropped once and the request repeated with a new one."""
    stub.on("GET", PULL_PATH, ok(PULL), BAD, ok(PULL))
    async with stub.forge(key) as forge:
        await forge.pull_request(REPO, 1)
        stub.clock.move_to(stub.clock.now() + timedelta(minutes=1))
        await forge.pull_request(REPO, 1)
    assert (stub.minted, stub.slept) == (2, [])


@pytest.mark.parametrize("refusal", [BAD, MISSING], ids=["401", "403"])
async def test_lag_after_minting(stub: Stub, key: str, refusal: httpx.Response) -> None:
    """GitHub's servers learn of a new token one by one: for five seconds a refusal is not final."""
    stub.on("GET", PULL_PATH, refusal, refusal, ok(PULL))
    async with stub.forge(key) as forge:
        await forge.pull_request(REPO, 1)
    assert (stub.minted, stub.slept) == (1, [0.5, 1.0])


async def test_refused_for_good(stub: Stub, key: str) -> None:
    """After five seconds and one new token it is final."""
    stub.on("GET", PULL_PATH, BAD)
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeUnauthorized):
            await forge.pull_request(REPO, 1)
    assert sum(stub.slept) <= 10
    assert stub.minted <= 2


async def test_known_lack_is_not_waited_for(stub: Stub, key: str) -> None:
    """Where GitHub says that the token can't do it, nothing is repeated."""
    lack = no(
        403, "Resource not accessible by integration", x_accepted_github_permissions="checks=write"
    )
    stub.on("GET", PULL_PATH, lack)
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeForbidden, match="checks: write"):
            await forge.pull_request(REPO, 1)
    assert stub.slept == []


async def test_less_was_granted(stub: Stub, key: str) -> None:
    """An owner who has not accepted a new permission keeps the rest of the product."""
    refusal = no(422, "The permissions requested are not granted to this installation.")
    granted = {"contents": "read", "pull_requests": "write"}
    stub.on("POST", TOKENS, refusal, lambda _: stub.mint(granted))
    stub.on("GET", "/app/installations/5", ok({"id": 5, "permissions": granted}))
    stub.on("GET", PULL_PATH, ok(PULL))
    async with stub.forge(key) as forge:
        await forge.pull_request(REPO, 1)
    asked = [json.loads(r.content) for r in stub.requests if r.url.path == TOKENS]
    assert asked[-1]["permissions"] == granted


async def test_suspended(stub: Stub, key: str) -> None:
    """A suspended installation says so, and works again as soon as it is unsuspended."""
    suspended = no(403, "This installation has been suspended")
    stub.on("POST", TOKENS, suspended, lambda _: stub.mint({}))
    stub.on("GET", PULL_PATH, ok(PULL))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeForbidden, match="suspended"):
            await forge.pull_request(REPO, 1)
        await forge.pull_request(REPO, 1)


async def test_second_app_finds_its_own_installation(stub: Stub, key: str) -> None:
    """A RepoRef names the reviewer's installation; the fixer asks once for its own."""
    stub.on("GET", "/repos/acme/shop/installation", ok({"id": 6}))
    stub.on("POST", "/app/installations/6/access_tokens", lambda _: stub.mint({}))
    stub.on("GET", PULL_PATH, ok(PULL))
    async with GitHubForge(stub.app(key, role=AppRole.FIXER)) as forge:
        for _ in range(2):
            await forge.pull_request(REPO, 1)
    assert stub.paths().count("GET /repos/acme/shop/installation") == 1


async def test_installed_anew(stub: Stub, key: str) -> None:
    """An App removed and installed again has another installation: it is found without restart."""
    stub.on("GET", "/repos/acme/shop/installation", ok({"id": 6}), ok({"id": 8}))
    stub.on("POST", "/app/installations/8/access_tokens", lambda _: stub.mint({}))
    stub.on("GET", PULL_PATH, ok(PULL))
    async with GitHubForge(stub.app(key, role=AppRole.FIXER)) as forge:
        with pytest.raises(ForgeNotFound, match="Installation 6 of the fixer App is gone"):
            await forge.pull_request(REPO, 1)
        assert (await forge.pull_request(REPO, 1)).number == 1


async def test_fixer_not_installed(stub: Stub, key: str) -> None:
    """The message names the App, the repository and the remedy."""
    async with GitHubForge(stub.app(key, role=AppRole.FIXER)) as forge:
        with pytest.raises(ForgeNotFound, match="fixer App is not installed on acme/shop: install"):
            await forge.pull_request(REPO, 1)


async def test_key_with_literal_newlines(stub: Stub, key: str) -> None:
    """An environment variable often holds the PEM on one line."""
    stub.on("GET", PULL_PATH, ok(PULL))
    async with stub.forge(key.replace("\n", "\\n")) as forge:
        assert (await forge.pull_request(REPO, 1)).number == 1


async def test_bad_key(stub: Stub) -> None:
    """A broken key is the operator's to mend: the message names the variable, never the key."""
    async with stub.forge("-----BEGIN RSA PRIVATE KEY-----\nbroken") as forge:
        with pytest.raises(ConfigurationError, match="MERGEWARD_REVIEWER_PRIVATE_KEY") as caught:
            await forge.pull_request(REPO, 1)
    assert "broken" not in str(caught.value)


async def test_token_never_shows(stub: Stub, key: str) -> None:
    """No error, repr or chained exception holds a token."""
    stub.on("GET", PULL_PATH, no(500))
    async with stub.forge(key) as forge:
        with pytest.raises(Exception, match="500") as caught:
            await forge.pull_request(REPO, 1)
        remote = await forge.clone_remote(REPO, write=False)
    assert caught.value.__cause__ is None
    shown = f"{caught.value!r}{remote!r}{forge.__dict__!r}"
    assert "ghs_" not in shown
    assert "PRIVATE KEY" not in shown


def test_lowering() -> None:
    """What is not granted is left out, what is granted lower is asked for lower."""
    wanted = Scope.JUDGE.permissions
    granted = {"contents": "write", "pull_requests": "read", "checks": "write"}
    lowered = {"contents": "read", "pull_requests": "read", "checks": "write"}
    assert at_most(wanted, granted) == lowered
