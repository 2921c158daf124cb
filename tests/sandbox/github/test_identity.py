"""Who may call what: App JWTs, installation tokens, people, and GitHub's refusals."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from app.sandbox.github import AppConfig, DoubleConfig
from tests.sandbox.github.stage import PULL_PATH, REPO, REPO_PATH, SHARED, Stage, staged

_EXP = "'Expiration time' claim ('exp') must be a numeric value"

CLAIMS: list[tuple[str, dict[str, Any], int, str]] = [
    ("app id", {}, 200, ""),
    ("client id", {"iss": "Iv23li00000000000101"}, 200, ""),
    ("expired", {"exp": -1}, 401, _EXP),
    ("not a number", {"exp": None}, 401, _EXP),
    ("eleven minutes", {"exp": 700}, 401, "is too far in the future"),
    ("issued tomorrow", {"iat": 86_400}, 401, "'Issued at' claim"),
    ("unknown app", {"iss": "999"}, 404, "Integration not found"),
]


@SHARED
@pytest.mark.parametrize(
    ("claims", "status", "message"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS]
)
async def test_app_jwt(shared: Stage, claims: dict[str, Any], status: int, message: str) -> None:
    """`iss` is an id or client id; `exp` lies in the future, by ten minutes at most."""
    now = int(time.time())
    made = {"iat": now - 60, "exp": now + 540, "iss": "101"} | {
        name: now + value if isinstance(value, int) else value for name, value in claims.items()
    }
    made = {name: value for name, value in made.items() if value is not None}
    token = jwt.encode(made, shared.gh.app("ward").private_key, algorithm="RS256")
    answer = await shared.http.get("/app", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status
    assert message in answer.text


async def test_jwt_of_another_key_is_refused(stage: Stage) -> None:
    """An App is known by its key, not by the issuer that it claims."""
    now = int(time.time())
    claims = {"iat": now - 60, "exp": now + 540, "iss": "101"}
    token = jwt.encode(claims, stage.gh.app("fix").private_key, algorithm="RS256")
    answer = await stage.http.get("/app", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401
    assert answer.json()["message"] == "A JSON web token could not be decoded"


HEADERS: list[tuple[str, str | None, str, int, str]] = [
    ("nobody", None, PULL_PATH, 401, "Requires authentication"),
    ("unknown token", "Bearer ghs_1_x", PULL_PATH, 401, "Bad credentials"),
    ("unknown scheme", "Digest x", PULL_PATH, 401, "Bad credentials"),
    ("broken basic", "Basic ???", PULL_PATH, 401, "Bad credentials"),
    ("broken jwt", "Bearer a.b.c", "/app", 401, "A JSON web token could not be decoded"),
]


@SHARED
@pytest.mark.parametrize(
    ("header", "path", "status", "message"), [h[1:] for h in HEADERS], ids=[h[0] for h in HEADERS]
)
async def test_bad_credentials(
    shared: Stage, header: str | None, path: str, status: int, message: str
) -> None:
    """Bad credentials are 401, in GitHub's words."""
    headers = {"Authorization": header} if header else {}
    answer = await shared.http.get(path, headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (status, message)


async def test_kinds_of_tokens_do_not_mix(stage: Stage) -> None:
    """App routes want the JWT, all others a token."""
    with_token = await stage.call("GET", "/app")
    with_jwt = await stage.call("GET", PULL_PATH, who="jwt:ward")
    assert (with_token.status_code, with_jwt.status_code) == (401, 401)


async def _mint(stage: Stage, body: object) -> Any:
    found = await stage.call("GET", f"{REPO_PATH}/installation", who="jwt:ward")
    path = f"/app/installations/{found.json()['id']}/access_tokens"
    return await stage.call("POST", path, body, who="jwt:ward")


async def test_token_is_long_and_narrow(stage: Stage) -> None:
    """A token has the asked permissions and repositories, whole seconds, and the new length."""
    body = {"permissions": {"pull_requests": "read"}, "repositories": ["shop"]}
    minted = (await _mint(stage, body)).json()
    assert minted["token"].startswith("ghs_101_")
    assert len(minted["token"]) > 100
    expires = datetime.strptime(minted["expires_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert expires > datetime.now(UTC) + timedelta(minutes=59)
    assert minted["permissions"] == {"metadata": "read", "pull_requests": "read"}
    assert [r["full_name"] for r in minted["repositories"]] == [REPO]
    headers = {"Authorization": f"token {minted['token']}"}
    assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 200
    refused = await stage.http.post(
        f"{PULL_PATH}/reviews", json={"event": "APPROVE"}, headers=headers
    )
    assert refused.status_code == 403


MINTS: list[tuple[str, object, str]] = [
    (
        "more than granted",
        {"permissions": {"administration": "write"}},
        "The permissions requested are not granted to this installation.",
    ),
    ("write where read is granted", {"permissions": {"metadata": "write"}}, "not granted"),
    ("no such level", {"permissions": {"contents": "all"}}, "not granted"),
    ("other repository", {"repositories": ["nope"]}, "does not exist or is not accessible"),
]


@SHARED
@pytest.mark.parametrize(("body", "message"), [m[1:] for m in MINTS], ids=[m[0] for m in MINTS])
async def test_minting_refused(shared: Stage, body: object, message: str) -> None:
    """Asking for more than the installation has is 422."""
    answer = await _mint(shared, body)
    assert answer.status_code == 422
    assert message in answer.json()["message"]


async def test_token_expires() -> None:
    """An expired token answers 401 Bad credentials."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    apps = (AppConfig(101, "ward"), AppConfig(102, "fix"))
    config = DoubleConfig(apps=apps, clock=lambda: now[0])
    async with staged(config) as stage:
        headers = {"Authorization": f"Bearer {stage.token('ward')}"}
        assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 200
        now[0] += timedelta(hours=1)
        late = await stage.http.get(PULL_PATH, headers=headers)
        assert (late.status_code, late.json()["message"]) == (401, "Bad credentials")


async def test_suspension_and_removal(stage: Stage) -> None:
    """Suspended: listed, but no token, old or new. Removed: 404 and tokens are dead."""
    found = await stage.call("GET", f"{REPO_PATH}/installation", who="jwt:ward")
    installation = stage.gh.hub.world.installations[found.json()["id"]]
    headers = {"Authorization": f"Bearer {stage.token('ward')}"}
    stage.gh.suspend(installation)
    minted = await _mint(stage, {})
    assert (minted.status_code, minted.json()["message"]) == (
        403,
        "This installation has been suspended",
    )
    assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 403
    listed = await stage.call("GET", "/app/installations", who="jwt:ward")
    assert listed.json()[0]["suspended_at"] is not None
    stage.gh.suspend(installation, suspended=False)
    assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 200
    stage.gh.uninstall(installation)
    assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 401
    gone = await stage.call("GET", f"{REPO_PATH}/installation", who="jwt:ward")
    assert gone.status_code == 404


FORBIDDEN = [
    ("review", "POST", f"{PULL_PATH}/reviews", {"event": "APPROVE"}, "pull_requests=write"),
    ("check run", "POST", f"{REPO_PATH}/check-runs", {"name": "x"}, "checks=write"),
    ("merge", "PUT", f"{PULL_PATH}/merge", {}, "contents=write"),
    ("diff", "GET", PULL_PATH, None, "pull_requests=read;contents=read"),
    (
        "comment",
        "POST",
        f"{REPO_PATH}/issues/1/comments",
        {"body": "x"},
        "issues=write;pull_requests=write",
    ),
]


@SHARED
@pytest.mark.parametrize(
    ("method", "path", "body", "accepted"),
    [f[1:] for f in FORBIDDEN],
    ids=[f[0] for f in FORBIDDEN],
)
async def test_missing_permission(
    shared: Stage, method: str, path: str, body: object, accepted: str
) -> None:
    """403 with the permissions that would have done."""
    answer = await shared.call(method, path, body, permissions={})
    assert answer.status_code == 403
    assert answer.json()["message"] == "Resource not accessible by integration"
    assert answer.headers["x-accepted-github-permissions"] == accepted


async def test_private_repository_is_hidden(stage: Stage) -> None:
    """Without access a private repository is 404, not 403; a public one can be read only."""
    await stage.gh.create_repository("other", "secret", {})
    await stage.gh.create_repository("other", "open", {}, private=False)
    assert (await stage.call("GET", "/repos/other/secret")).status_code == 404
    assert (await stage.call("GET", "/repos/other/secret", who="alice")).status_code == 404
    assert (await stage.call("GET", "/repos/other/open")).status_code == 200
    body = {"title": "t", "head": "x", "base": "main"}
    assert (await stage.call("POST", "/repos/other/open/pulls", body)).status_code == 403


async def test_bot_account(stage: Stage) -> None:
    """An App's user is `<slug>[bot]` of type Bot, with a user id of its own and no level."""
    user = (await stage.call("GET", "/users/ward[bot]")).json()
    assert (user["login"], user["type"]) == ("ward[bot]", "Bot")
    assert user["id"] != stage.gh.app("ward").id
    assert user["html_url"].endswith("/apps/ward")
    path = f"{REPO_PATH}/collaborators/{{}}/permission"
    levels = {
        login: (await stage.call("GET", path.format(login))).json()["permission"]
        for login in ("alice", "eve", "acme", "ward[bot]")
    }
    assert levels == {"alice": "write", "eve": "read", "acme": "admin", "ward[bot]": "none"}
    assert (await stage.call("GET", path.format("nobody-known"))).status_code == 404


async def test_basic_authentication(stage: Stage) -> None:
    """REST takes the same basic credentials that git sends."""
    pair = base64.b64encode(f"x-access-token:{stage.token('ward')}".encode()).decode()
    answer = await stage.http.get(PULL_PATH, headers={"Authorization": f"Basic {pair}"})
    assert answer.status_code == 200


async def test_people_need_their_level(stage: Stage) -> None:
    """A reader may comment but not merge; check runs are for Apps."""
    comment = await stage.call("POST", f"{REPO_PATH}/issues/1/comments", {"body": "x"}, who="eve")
    merge = await stage.call("PUT", f"{PULL_PATH}/merge", {}, who="eve")
    check = await stage.call("POST", f"{REPO_PATH}/check-runs", {"name": "x"}, who="alice")
    assert [a.status_code for a in (comment, merge, check)] == [201, 403, 403]
