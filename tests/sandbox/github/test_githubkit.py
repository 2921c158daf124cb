"""A client that others wrote works against the double: githubkit, models included."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from githubkit import AppAuthStrategy, GitHub
from githubkit.auth import AppInstallationAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.exception import GraphQLFailed, RequestFailed

from tests.sandbox.github.stage import REPO, Stage

Installed = GitHub[AppInstallationAuthStrategy]


async def _installed(stage: Stage, slug: str) -> Installed:
    app = stage.gh.app(slug)
    client = GitHub(
        AppAuthStrategy(app.id, app.private_key),
        base_url=stage.gh.url,
        cache_strategy=MemCacheStrategy(),
        http_cache=False,
        auto_retry=False,
        timeout=10,
    )
    found = await client.rest.apps.async_get_repo_installation("acme", "shop")
    return client.with_auth(client.auth.as_installation(found.parsed_data.id))


@pytest.fixture
async def ward(stage: Stage) -> AsyncIterator[Installed]:
    """App `ward` through githubkit."""
    async with await _installed(stage, "ward") as client:
        yield client


async def test_a_review_and_a_check(stage: Stage, ward: Installed) -> None:
    """Tokens, typed models, pagination and writes of a real client all work."""
    pull = (await ward.rest.pulls.async_get("acme", "shop", 1)).parsed_data
    assert (pull.head.sha, pull.user.login, pull.mergeable) == (stage.head, "alice", True)
    pages: Any = ward.rest.paginate(
        ward.rest.pulls.async_list_files, owner="acme", repo="shop", pull_number=1, per_page=1
    )
    assert [file.filename async for file in pages] == ["a.py", "b.py"]
    review = await ward.rest.pulls.async_create_review(
        "acme",
        "shop",
        1,
        event="REQUEST_CHANGES",
        body="no",
        comments=[{"path": "a.py", "line": 3, "side": "RIGHT", "body": "here"}],
    )
    assert review.parsed_data.state == "CHANGES_REQUESTED"
    check = await ward.rest.checks.async_create(
        "acme", "shop", name="ward", head_sha=pull.head.sha, status="in_progress"
    )
    done = await ward.rest.checks.async_update(
        "acme",
        "shop",
        check.parsed_data.id,
        conclusion="failure",
        output={"title": "t", "summary": "s"},
    )
    assert (done.parsed_data.status, done.parsed_data.conclusion) == ("completed", "failure")
    comments: Any = (
        await ward.rest.pulls.async_list_review_comments("acme", "shop", 1)
    ).parsed_data
    assert [(c.path, c.line, c.user.login) for c in comments if c.user] == [
        ("a.py", 3, "ward[bot]")
    ]
    diff = await ward.rest.pulls.async_get(
        "acme", "shop", 1, headers={"Accept": "application/vnd.github.diff"}
    )
    assert diff.text.startswith("diff --git a/a.py b/a.py")
    await stage.gh.label(REPO, 1, "bug", actor="alice")
    listed: Any = (await ward.rest.pulls.async_list("acme", "shop")).parsed_data
    assert [label.name for label in listed[0].labels] == ["bug"]


async def test_refusals_reach_the_client(stage: Stage) -> None:
    """An anchor outside the diff fails as RequestFailed, a missing right as GraphQLFailed."""
    async with await _installed(stage, "fix") as fix:
        with pytest.raises(RequestFailed) as refused:
            await fix.rest.pulls.async_create_review(
                "acme",
                "shop",
                1,
                event="COMMENT",
                body="b",
                comments=[{"path": "a.py", "line": 10, "body": "x"}],
            )
        assert refused.value.response.status_code == 422
        with pytest.raises(GraphQLFailed) as failed:
            await fix.async_graphql('{ repository(owner: "acme", name: "gone") { id } }')
        assert failed.value.response.errors
        assert failed.value.response.errors[0].type == "NOT_FOUND"


async def test_base_url_of_an_enterprise_server(stage: Stage) -> None:
    """The same API is served under `/api/v3` and `/api/graphql`, the form of GHES."""
    client = GitHub(
        stage.token("ward"), base_url=f"{stage.gh.url}/api/v3", http_cache=False, timeout=10
    )
    assert (await client.rest.pulls.async_get("acme", "shop", 1)).parsed_data.number == 1
    answer = await client.async_graphql("{ rateLimit { limit } }")
    assert answer == {"rateLimit": {"limit": 5000}}
