"""Requests: what is repeated, what is not, and where they go."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from app.domain.effects import CheckStatus, SetCheckRun
from app.domain.markers import Marker, MarkerKind, with_marker
from app.errors import ForgeError, ForgePaced, ForgeRateLimited, ForgeRejected, ForgeUnavailable
from app.forges.github.app import Host
from app.forges.github.client import path
from app.forges.github.writes import GitHubForge
from tests.forges.github.stub import BOT, PULL, REPO, Stub, no, ok

PULL_PATH = "/repos/acme/shop/pulls/1"
COMMENTS = "/repos/acme/shop/issues/1/comments"
STATUS = Marker(MarkerKind.STATUS, "pr-1")
SAID = {"id": 77, "user": BOT, "body": with_marker("Reviewing.", STATUS)}


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(no(502), id="502"),
        pytest.param(httpx.ConnectError("refused"), id="connection"),
        pytest.param(httpx.ReadTimeout("slow"), id="timeout"),
    ],
)
async def test_reads_are_repeated(
    stub: Stub, key: str, failure: httpx.Response | Exception
) -> None:
    """A question may be asked again after an outage."""
    stub.on("GET", PULL_PATH, failure, failure, ok(PULL))
    async with stub.forge(key) as forge:
        assert (await forge.pull_request(REPO, 1)).number == 1


async def test_reads_give_up(stub: Stub, key: str) -> None:
    """Twice is enough: the job is rescheduled."""
    stub.on("GET", PULL_PATH, no(503))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeUnavailable):
            await forge.pull_request(REPO, 1)
    assert len(stub.paths()) == 3


@pytest.mark.parametrize("failure", [no(502), httpx.ReadTimeout("slow")], ids=["502", "timeout"])
async def test_writes_are_not_repeated(
    stub: Stub, key: str, failure: httpx.Response | Exception
) -> None:
    """A failed POST is sent once; we look whether it took effect, and leave the rest to the job."""
    stub.on("POST", COMMENTS, failure).on("GET", COMMENTS, ok([]))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeUnavailable):
            await forge.ensure_comment(REPO, 1, STATUS, "Reviewing.", maybe_published=False)
    assert stub.paths() == [f"POST {COMMENTS}", f"GET {COMMENTS}"]


async def test_effect_of_a_failed_write_is_found(stub: Stub, key: str) -> None:
    """The answer was lost, the comment was not."""
    stub.on("POST", COMMENTS, no(502)).on("GET", COMMENTS, ok([SAID]))
    async with stub.forge(key) as forge:
        receipt = await forge.ensure_comment(REPO, 1, STATUS, "Reviewing.", maybe_published=False)
    assert (receipt.comment_id, receipt.created) == (77, False)


async def test_first_attempt_costs_one_request(stub: Stub, key: str) -> None:
    """What was never tried needs no search."""
    stub.on("POST", COMMENTS, ok(SAID, 201))
    async with stub.forge(key) as forge:
        await forge.ensure_comment(REPO, 1, STATUS, "Reviewing.", maybe_published=False)
    assert stub.paths() == [f"POST {COMMENTS}"]


async def test_a_limit_is_respected_by_all(stub: Stub, key: str) -> None:
    """Once GitHub said to wait, no other job of the installation asks it anything until then."""
    stub.on("GET", PULL_PATH, no(403, "API rate limit exceeded", retry_after="3000"), ok(PULL))
    app = stub.app(key)
    async with GitHubForge(app) as first, GitHubForge(app, urgent=True) as second:
        with pytest.raises(ForgeRateLimited):
            await first.pull_request(REPO, 1)
        with pytest.raises(ForgePaced, match="waits 3000 s"):
            await second.pull_request(REPO, 1)
        with pytest.raises(ForgePaced):
            await second.ensure_label(REPO, 1, "a")
        assert len(stub.paths()) == 1
        stub.clock.move_to(stub.clock.now() + timedelta(seconds=3001))
        assert (await second.pull_request(REPO, 1)).number == 1


async def test_writes_keep_a_pace(stub: Stub, key: str) -> None:
    """A burst, then GitHub is asked nothing until the next may go; for whom a person waits, some
    are kept; reads are not held up."""
    stub.on("POST", COMMENTS, ok(SAID, 201)).on("GET", PULL_PATH, ok(PULL))

    async def write(forge: GitHubForge) -> None:
        await forge.ensure_comment(REPO, 1, STATUS, "Reviewing.", maybe_published=False)

    app = stub.app(key)
    async with GitHubForge(app) as ordinary, GitHubForge(app, urgent=True) as urgent:
        for _ in range(6):
            await write(ordinary)
        with pytest.raises(ForgePaced) as paced:
            await write(ordinary)
        assert paced.value.retry_after == pytest.approx(1.0)
        await write(urgent)
        await ordinary.pull_request(REPO, 1)
        assert len(stub.paths("POST")) == 7


async def test_nobody_sleeps_on_a_limit(stub: Stub, key: str) -> None:
    """The wait travels with the error; the worker is free at once."""
    stub.on("GET", PULL_PATH, no(403, "API rate limit exceeded", retry_after="3000"))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeRateLimited) as caught:
            await forge.pull_request(REPO, 1)
    assert caught.value.retry_after == 3000
    assert (len(stub.paths()), stub.slept) == (1, [])


async def test_limit_until_a_date(stub: Stub, key: str) -> None:
    """A date in `Retry-After` is understood on its whole way."""
    stub.on("GET", PULL_PATH, no(429, retry_after="Fri, 01 May 2026 10:01:30 GMT"))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeRateLimited) as caught:
            await forge.pull_request(REPO, 1)
    assert caught.value.retry_after == 90


async def test_renamed_repository(stub: Stub, key: str) -> None:
    """A redirected POST stays a POST with its body; httpx alone would make it a GET."""
    moved = httpx.Response(301, headers={"location": "https://api.test/repositories/7/comments"})
    stub.on("POST", COMMENTS, moved).on("POST", "/repositories/7/comments", ok(SAID, 201))
    async with stub.forge(key) as forge:
        await forge.ensure_comment(REPO, 1, STATUS, "Reviewing.", maybe_published=False)
    assert b"Reviewing." in stub.requests[-1].content


@pytest.mark.parametrize("where", ["https://evil.test/x", "http://api.test/x", "//evil.test/x"])
async def test_token_stays_on_its_host(stub: Stub, key: str, where: str) -> None:
    """Neither a redirect nor a link to a next page may carry the token elsewhere."""
    stub.on("GET", PULL_PATH, httpx.Response(302, headers={"location": where}))
    stub.on("GET", COMMENTS, ok([], link=f'<{where}>; rel="next"'))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeError):
            await forge.pull_request(REPO, 1)
        with pytest.raises(ForgeError):
            await forge.issue_comments(REPO, 1)
    assert {request.url.host for request in stub.requests} == {"api.test"}
    assert {request.url.scheme for request in stub.requests} == {"https"}


async def test_every_page(stub: Stub, key: str) -> None:
    """A list is read to its end, and every page in the same version of the API."""
    after = '<https://api.test/page2?page=2>; rel="next"'
    stub.on("GET", COMMENTS, ok([SAID], link=after)).on("GET", "/page2", ok([SAID]))
    async with stub.forge(key) as forge:
        assert len(await forge.issue_comments(REPO, 1)) == 2
    versions = {request.headers.get("x-github-api-version") for request in stub.requests}
    assert versions == {"2026-03-10"}


async def test_proxy_page_with_status_200(stub: Stub, key: str) -> None:
    """An answer that is no JSON is an outage, not a crash."""
    stub.on("GET", PULL_PATH, httpx.Response(200, text="<html>sign in</html>"))
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeUnavailable):
            await forge.pull_request(REPO, 1)


async def test_too_long_is_not_sent_again(stub: Stub, key: str) -> None:
    """A refusal of the content is final."""
    stub.on("POST", "/repos/acme/shop/check-runs", no(422, "Only 65535 characters are allowed"))
    check = SetCheckRun("a" * 40, "run-1", CheckStatus.IN_PROGRESS, "t", "s")
    async with stub.forge(key) as forge:
        with pytest.raises(ForgeRejected):
            await forge.ensure_check_run(REPO, check, maybe_published=False)
    assert len(stub.paths()) == 1


@pytest.mark.parametrize(
    ("values", "made"),
    [
        pytest.param(("a b",), "/x/a%20b", id="space"),
        pytest.param(("feature/#1?%",), "/x/feature%2F%231%3F%25", id="ref"),
        pytest.param(("docs/installation",), "/x/docs%2Finstallation", id="githubkit's pattern"),
        pytest.param((7,), "/x/7", id="number"),
    ],
)
def test_paths_are_quoted(values: tuple[str | int, ...], made: str) -> None:
    """Text of users stays one segment of the path."""
    assert path("/x/{}", *values) == made


@pytest.mark.parametrize("value", [".", ".."])
def test_dots_name_nothing(value: str) -> None:
    """A label called `..` must not delete all labels."""
    with pytest.raises(ForgeRejected):
        path("/repos/o/r/issues/1/labels/{}", value)


@pytest.mark.parametrize(
    ("api", "graphql"),
    [
        pytest.param("https://api.github.com", "https://api.github.com/graphql", id="github.com"),
        pytest.param("https://ghe.test/api/v3", "https://ghe.test/api/graphql", id="enterprise"),
        pytest.param("http://127.0.0.1:80/", "http://127.0.0.1:80/graphql", id="double"),
    ],
)
def test_graphql_address(api: str, graphql: str) -> None:
    """GraphQL lives beside REST on an Enterprise Server, not beneath it."""
    assert Host(api_url=api).graphql_url == graphql
