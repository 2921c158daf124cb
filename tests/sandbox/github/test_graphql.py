"""GraphQL: threads, resolving, and the errors GitHub gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.github.stage import REPO, SHARED, Stage

THREADS = """
query($first: Int = 50, $after: String) {
  repository(owner: "acme", name: "shop") { pullRequest(number: 1) {
    reviewThreads(first: $first, after: $after) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved isOutdated viewerCanResolve resolvedBy { login } path line
        comments(first: 10) { nodes { id databaseId body author { login __typename } } } }
    } } } }
"""
RESOLVE = (
    "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }"
)
UNRESOLVE = RESOLVE.replace("resolve", "unresolve", 1)


async def _ask(stage: Stage, query: str, who: str = "ward", **variables: Any) -> Any:
    body = {"query": query, "variables": variables}
    answer = await stage.call("POST", "/graphql", body, who=who)
    assert answer.status_code == 200
    return answer.json()


async def _threads(stage: Stage, who: str = "ward", **variables: Any) -> Any:
    answer = await _ask(stage, THREADS, who, **variables)
    return answer["data"]["repository"]["pullRequest"]["reviewThreads"]


async def _commented(stage: Stage) -> None:
    comments = [{"path": "a.py", "line": n, "body": f"c{n}"} for n in (2, 3, 4)]
    await stage.review(event="COMMENT", body="b", comments=comments)


async def test_threads(stage: Stage) -> None:
    """Threads map to REST comments by databaseId; bots lose their `[bot]` in GraphQL."""
    await _commented(stage)
    found = await _threads(stage)
    first = found["nodes"][0]
    assert (found["totalCount"], first["path"], first["line"]) == (3, "a.py", 2)
    assert (first["isResolved"], first["isOutdated"], first["resolvedBy"]) == (False, False, None)
    author = first["comments"]["nodes"][0]["author"]
    assert author == {"login": "ward", "__typename": "Bot"}
    rest = (await stage.call("GET", "/repos/acme/shop/pulls/1/comments")).json()
    ids = [thread["comments"]["nodes"][0]["databaseId"] for thread in found["nodes"]]
    assert ids == [comment["id"] for comment in rest]


async def test_threads_page(stage: Stage) -> None:
    """Cursors lead through all threads once."""
    await _commented(stage)
    seen, after = [], None
    while True:
        page = await _threads(stage, first=2, after=after)
        seen += [node["id"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == [node["id"] for node in (await _threads(stage))["nodes"]]
    assert len(seen) == 3


async def test_resolve(stage: Stage) -> None:
    """Resolving shows who did it; unresolving takes it back; both may be repeated."""
    await _commented(stage)
    thread = (await _threads(stage))["nodes"][0]["id"]
    for _ in range(2):
        answer = await _ask(stage, RESOLVE, id=thread)
        assert answer["data"]["resolveReviewThread"]["thread"] == {"isResolved": True}
    shown = (await _threads(stage))["nodes"][0]
    assert (shown["isResolved"], shown["resolvedBy"]) == (True, {"login": "ward"})
    assert stage.gh.pull(REPO, 1).threads[0].resolved_by == "ward[bot]"
    await _ask(stage, UNRESOLVE, "bob", id=thread)
    assert (await _threads(stage))["nodes"][0]["isResolved"] is False


async def test_resolving_needs_contents_write(stage: Stage) -> None:
    """`pull_requests: write` alone is refused, with GitHub's own body; others may not either."""
    await _commented(stage)
    thread = (await _threads(stage))["nodes"][0]["id"]
    token = stage.token("ward", {"pull_requests": "write"})
    answer = await stage.http.post(
        "/graphql",
        json={"query": RESOLVE, "variables": {"id": thread}},
        headers={"Authorization": f"Bearer {token}"},
    )
    body = answer.json()
    assert body["data"] == {"resolveReviewThread": None}
    assert [(e["type"], e["message"]) for e in body["errors"]] == [
        ("FORBIDDEN", "Resource not accessible by integration")
    ]
    seen = await stage.http.post(
        "/graphql", json={"query": THREADS}, headers={"Authorization": f"Bearer {token}"}
    )
    nodes = seen.json()["data"]["repository"]["pullRequest"]["reviewThreads"]["nodes"]
    assert nodes[0]["viewerCanResolve"] is False
    assert (await _ask(stage, RESOLVE, "eve", id=thread))["errors"][0]["type"] == "FORBIDDEN"
    assert stage.gh.pull(REPO, 1).threads[0].resolved_by is None


ERRORS: list[tuple[str, str, str, str]] = [
    (
        "repository",
        '{ repository(owner: "a", name: "b") { id } }',
        "NOT_FOUND",
        "Could not resolve to a Repository with the name 'a/b'.",
    ),
    (
        "pull request",
        '{ repository(owner: "acme", name: "shop") { pullRequest(number: 9) { id } } }',
        "NOT_FOUND",
        "Could not resolve to a PullRequest with the number of 9.",
    ),
    (
        "thread",
        RESOLVE.replace("($id: ID!)", "").replace("$id", '"PRRT_x"'),
        "NOT_FOUND",
        "Could not resolve to a node with the global id of 'PRRT_x'",
    ),
    (
        "page without size",
        (
            '{ repository(owner: "acme", name: "shop") { pullRequest(number: 1) '
            "{ reviewThreads { totalCount } } } }"
        ),
        "MISSING_PAGINATION_BOUNDARIES",
        (
            "You must provide a `first` or `last` value to properly paginate the `reviewThreads` "
            "connection."
        ),
    ),
    (
        "page of 101",
        (
            '{ repository(owner: "acme", name: "shop") { pullRequest(number: 1) '
            "{ reviewThreads(first: 101) { totalCount } } } }"
        ),
        "EXCESSIVE_PAGINATION",
        (
            "Requesting 101 records on the `reviewThreads` connection exceeds the `first` limit of "
            "100 records."
        ),
    ),
]


@SHARED
@pytest.mark.parametrize(
    ("query", "kind", "message"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS]
)
async def test_errors(shared: Stage, query: str, kind: str, message: str) -> None:
    """Errors come with status 200, GitHub's type and words."""
    error = (await _ask(shared, query))["errors"][0]
    assert (error["type"], error["message"]) == (kind, message)


async def test_unknown_field_is_named(stage: Stage) -> None:
    """A field that GitHub's schema subset lacks is a validation error, not null."""
    answer = await _ask(stage, '{ repository(owner: "acme", name: "shop") { nmae } }')
    assert "data" not in answer
    assert "nmae" in answer["errors"][0]["message"]


async def test_draft_mutations(stage: Stage) -> None:
    """Only GraphQL turns a pull request into a draft and back."""
    query = '{ repository(owner: "acme", name: "shop") { pullRequest(number: 1) { id isDraft } } }'
    pull = (await _ask(stage, query))["data"]["repository"]["pullRequest"]
    to_draft = (
        "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) "
        "{ pullRequest { isDraft } } }"
    )
    await _ask(stage, to_draft, id=pull["id"])
    assert stage.gh.pull(REPO, 1).draft is True
    ready = to_draft.replace("convertPullRequestToDraft", "markPullRequestReadyForReview")
    await _ask(stage, ready, id=pull["id"])
    assert stage.gh.pull(REPO, 1).draft is False


async def test_pending_threads_are_hidden(stage: Stage) -> None:
    """Comments of a pending review make no threads yet."""
    await stage.review(body="b", comments=[{"path": "a.py", "line": 3, "body": "x"}])
    assert (await _threads(stage))["totalCount"] == 0


async def test_anonymous(stage: Stage) -> None:
    """GraphQL wants authentication."""
    assert (await stage.call("POST", "/graphql", {"query": "{}"}, who=None)).status_code == 401


@SHARED
@pytest.mark.parametrize("body", [{}, {"query": 1}], ids=["none", "number"])
async def test_no_query(shared: Stage, body: dict[str, Any]) -> None:
    """A request without a query is refused before GraphQL."""
    assert (await shared.call("POST", "/graphql", body)).status_code in {400, 422}
