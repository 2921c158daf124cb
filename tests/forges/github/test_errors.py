"""From GitHub's refusals to our errors."""

from __future__ import annotations

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.errors import (
    ForgeError,
    ForgeForbidden,
    ForgeNotFound,
    ForgeRateLimited,
    ForgeRejected,
    ForgeUnauthorized,
    ForgeUnavailable,
)
from app.forges.github.errors import (
    PermissionMissing,
    error_of_graphql,
    error_of_response,
    permissions_accepted,
    words_of,
)
from tests.forges.github.stub import NOW, no

MISSING = "Resource not accessible by integration"
SECONDARY = "You have exceeded a secondary rate limit. Please wait."


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(no(401, "Bad credentials"), ForgeUnauthorized, id="401"),
        pytest.param(no(403, MISSING), PermissionMissing, id="permission"),
        pytest.param(no(403, "Repository was archived"), ForgeForbidden, id="archived"),
        pytest.param(no(404, "Not Found"), ForgeNotFound, id="404"),
        pytest.param(no(410, "Gone"), ForgeNotFound, id="410"),
        pytest.param(no(409, "stale sha"), ForgeRejected, id="409"),
        pytest.param(no(422, "Validation Failed"), ForgeRejected, id="422"),
        pytest.param(no(429, ""), ForgeRateLimited, id="429"),
        pytest.param(no(403, SECONDARY, x_ratelimit_remaining="70"), ForgeRateLimited, id="words"),
        pytest.param(no(500), ForgeUnavailable, id="500"),
        pytest.param(httpx.Response(502, text="<html>"), ForgeUnavailable, id="proxy page"),
    ],
)
def test_kind(answer: httpx.Response, kind: type[ForgeError]) -> None:
    """Each refusal becomes the class that says who must act."""
    error = error_of_response(answer, "GET /x", NOW)
    assert type(error) is kind
    assert error.status == answer.status_code


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        pytest.param(no(429, retry_after="30"), 30, id="seconds"),
        pytest.param(no(403, retry_after="Fri, 01 May 2026 10:01:30 GMT"), 90, id="date"),
        pytest.param(no(403, retry_after="Thu, 01 Jan 1970 00:00:00 GMT"), 0, id="past"),
        pytest.param(no(403, retry_after="soon"), 60, id="nonsense"),
        pytest.param(
            no(403, x_ratelimit_remaining="0", x_ratelimit_reset="1777630200"), 600, id="reset"
        ),
        pytest.param(no(403, SECONDARY), 60, id="no header"),
    ],
)
def test_how_long_to_wait(answer: httpx.Response, wait: float) -> None:
    """A limit says for how long, whichever of its four forms it takes."""
    error = error_of_response(answer, "POST /x", NOW)
    assert isinstance(error, ForgeRateLimited)
    assert error.retry_after == wait


def test_permission_is_named() -> None:
    """The operator reads which permission to grant."""
    header = "pull_requests=write,contents=read; issues=write"
    error = error_of_response(
        no(403, MISSING, x_accepted_github_permissions=header), "POST /x", NOW
    )
    assert "pull_requests: write, contents: read or issues: write" in str(error)


def test_all_words_of_github() -> None:
    """Both forms of details are told: plain strings and structured errors."""
    structured = {"resource": "IssueComment", "code": "custom", "field": "data", "message": "Body"}
    told = no(422, "Unprocessable Entity", "line must be part of the diff", structured).content
    assert words_of(told) == "Unprocessable Entity: line must be part of the diff: Body"
    bare = {"resource": "Label", "code": "missing_field", "field": "name"}
    assert words_of(no(422, "", bare).content) == "Label name missing_field"


@given(st.binary(max_size=200))
def test_any_body_is_survived(body: bytes) -> None:
    """A proxy's page, cut JSON or rubbish never hides the status behind a second error."""
    error = error_of_response(httpx.Response(502, content=body), "GET /x", NOW)
    assert isinstance(error, ForgeUnavailable)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60))
def test_any_permission_header_is_survived(header: str) -> None:
    """The header is a hint: whatever it holds, an answer comes out."""
    for wanted in permissions_accepted({"x-accepted-github-permissions": header}):
        assert all(name is not None for name in wanted)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param({"type": "FORBIDDEN", "message": MISSING}, PermissionMissing, id="forbidden"),
        pytest.param({"type": "NOT_FOUND", "message": "no"}, ForgeNotFound, id="not found"),
        pytest.param({"type": "RATE_LIMITED", "message": "no"}, ForgeRateLimited, id="limit"),
        pytest.param({"message": "Something went wrong"}, ForgeUnavailable, id="bad moment"),
        pytest.param({"message": "Field 'x' doesn't exist"}, ForgeRejected, id="our mistake"),
        pytest.param("rubbish", ForgeRejected, id="rubbish"),
    ],
)
def test_graphql(error: object, kind: type[ForgeError]) -> None:
    """GraphQL says 200 and means no: its types become the same classes."""
    assert type(error_of_graphql([error], "a question")) is kind


CASE = """
- {status: 429, headers: {retry-after: '30'}, wait: 30}
- {status: 403, headers: {retry-after: 'Wed, 01 May 2024 10:01:30 GMT'}, wait: 0}
- {status: 403, headers: {x-ratelimit-remaining: '4999'}, wait: null}
"""


@pytest.mark.parametrize("case", yaml.safe_load(CASE))
def test_limit_or_permission(case: dict[str, object]) -> None:
    """A 403 for a missing permission is never waited for; a limit always is."""
    headers, status = case["headers"], case["status"]
    assert isinstance(headers, dict)
    assert isinstance(status, int)
    answer = httpx.Response(status, headers=headers, json={"message": MISSING})
    assert error_of_response(answer, "GET /x", NOW).retry_after == case["wait"]
