"""REST: Apps, installations, tokens, deliveries, users, rate limit."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.sandbox.github import rules
from app.sandbox.github.endpoint import Auth, Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import ApiError, not_found
from app.sandbox.github.hooks import Delivery
from app.sandbox.github.identity import suspended
from app.sandbox.github.render import Json, stamp
from app.sandbox.github.state import App, Installation

endpoints = Endpoints()


def _app(call: Call) -> App:
    if call.actor.app is None:
        raise not_found()
    return call.actor.app


@endpoints.add("GET", "/app", auth=Auth.JWT)
async def get_app(call: Call) -> Reply:
    return Reply(body=call.hub.render.app(_app(call)))


@endpoints.add("GET", "/app/installations", auth=Auth.JWT)
async def list_installations(call: Call) -> Reply:
    return call.page([call.hub.render.installation(i) for i in _own(call)])


def _own(call: Call) -> list[Installation]:
    app = _app(call)
    return [i for i in call.hub.world.installations.values() if i.app is app]


def _installation(call: Call) -> Installation:
    wanted = call.number("installation_id")
    return _first(i for i in _own(call) if i.id == wanted)


def _first(found: Iterable[Installation]) -> Installation:
    installation = next(iter(found), None)
    if installation is None:
        raise not_found()
    return installation


@endpoints.add("GET", "/app/installations/{installation_id:int}", auth=Auth.JWT)
async def get_installation(call: Call) -> Reply:
    return Reply(body=call.hub.render.installation(_installation(call)))


@endpoints.add("GET", "/repos/{owner}/{repo}/installation", auth=Auth.JWT)
async def get_repository_installation(call: Call) -> Reply:
    world = call.hub.world
    found = _first(i for i in _own(call) if world.covers(i, call.repo))
    return Reply(body=call.hub.render.installation(found))


@endpoints.add("GET", "/users/{login}/installation", auth=Auth.JWT)
@endpoints.add("GET", "/orgs/{login}/installation", auth=Auth.JWT)
async def get_account_installation(call: Call) -> Reply:
    login = call.path("login").lower()
    found = _first(i for i in _own(call) if i.account.login.lower() == login)
    return Reply(body=call.hub.render.installation(found))


@endpoints.add("POST", "/app/installations/{installation_id:int}/access_tokens", auth=Auth.JWT)
async def mint_token(call: Call) -> Reply:
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise suspended()
    asked = call.body.get("permissions")
    if not isinstance(asked, dict | None):
        raise invalid_request("For 'properties/permissions', expected an object.")
    permissions = rules.narrowed(installation.permissions, asked)
    if permissions is None:
        raise ApiError(422, "The permissions requested are not granted to this installation.")
    token = call.hub.identity.mint(installation, permissions, _chosen(call, installation))
    return Reply(201, call.hub.render.token(token))


def _chosen(call: Call, installation: Installation) -> frozenset[int] | None:
    """The repositories a token is narrowed to, by name or id; 422 when one is not covered."""
    names, ids = call.body.get("repositories"), call.body.get("repository_ids")
    if names is None and ids is None:
        return None
    if not isinstance(names, list | None) or not isinstance(ids, list | None):
        raise invalid_request("For 'properties/repositories', expected an array.")
    covered = call.hub.world.covered(installation)
    known = {r.name.lower(): r.id for r in covered} | {r.id: r.id for r in covered}
    wanted = [str(name).lower() for name in names or []] + [_id(n) for n in ids or []]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ApiError(
            422,
            "There is at least one repository that does not exist or is not accessible to the "
            "parent installation.",
        )
    return frozenset(known[name] for name in wanted)


def _id(value: object) -> int:
    return value if isinstance(value, int) else -1


@endpoints.add("GET", "/installation/repositories")
async def list_repositories(call: Call) -> Reply:
    token = call.actor.token
    if token is None:
        raise ApiError(403, "You must authenticate with an installation access token")
    covered = call.hub.world.covered(token.installation)
    shown = [r for r in covered if token.repositories is None or r.id in token.repositories]
    return call.page([call.hub.render.repository(r) for r in shown], wrap="repositories")


@endpoints.add("DELETE", "/installation/token")
async def revoke_token(call: Call) -> Reply:
    if call.actor.token is not None:
        call.hub.identity.tokens.pop(call.actor.token.value, None)
    return Reply(204)


@endpoints.add("GET", "/users/{login}", auth=Auth.OPTIONAL)
async def get_user(call: Call) -> Reply:
    account = call.hub.world.account(call.path("login"))
    if account is None:
        raise not_found()
    created = stamp(call.hub.world.now())
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    texts = dict.fromkeys(("name", "company", "blog", "location", "email", "bio", "hireable"))
    times = {"created_at": created, "updated_at": created}
    return Reply(body={**call.hub.render.user(account), **texts, **counts, **times})


@endpoints.add("GET", "/user")
async def get_me(call: Call) -> Reply:
    if call.actor.app is not None:
        raise ApiError(403, "Resource not accessible by integration")
    return Reply(body=call.hub.render.user(call.account))


@endpoints.add("GET", "/rate_limit", auth=Auth.OPTIONAL)
async def rate_limit(call: Call) -> Reply:
    core = call.hub.limits.core(call.actor)
    core.pop("resource")
    other = {"limit": 5000, "remaining": 5000, "reset": core["reset"], "used": 0}
    body: Json = {"resources": {"core": core, "search": other, "graphql": other}}
    if call.request.headers.get("x-github-api-version", "2022-11-28") == "2022-11-28":
        body["rate"] = core
    return Reply(body=body)


@endpoints.add("GET", "/app/hook/deliveries", auth=Auth.JWT)
async def list_deliveries(call: Call) -> Reply:
    """Newest first; pages by cursor, which is the id of the next delivery."""
    found = [d for d in call.hub.hooks.of(_app(call)) if d.status != "pending"]
    cursor = call.query("cursor")
    if re.fullmatch(r"[0-9]{1,18}", cursor):
        found = [d for d in found if d.id <= int(cursor)]
    size = call.page_size
    headers = {}
    if len(found) > size:
        url = f"{call.hub.url}{call.request.url.path}?per_page={size}&cursor={found[size].id}"
        headers["Link"] = f'<{url}>; rel="next"'
    return Reply(200, [_delivery(d) for d in found[:size]], headers)


def _delivery(delivery: Delivery) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": stamp(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": None,
    }


def _find_delivery(call: Call) -> Delivery:
    wanted = call.number("delivery_id")
    for delivery in call.hub.hooks.of(_app(call)):
        if delivery.id == wanted:
            return delivery
    raise not_found()


@endpoints.add("GET", "/app/hook/deliveries/{delivery_id:int}", auth=Auth.JWT)
async def get_delivery(call: Call) -> Reply:
    found = _find_delivery(call)
    request = {"headers": found.headers, "payload": found.payload}
    response = {"headers": found.response_headers, "payload": found.response_body}
    url = found.app.webhook_url
    return Reply(body={**_delivery(found), "url": url, "request": request, "response": response})


@endpoints.add("POST", "/app/hook/deliveries/{delivery_id:int}/attempts", auth=Auth.JWT)
async def redeliver(call: Call) -> Reply:
    call.hub.hooks.redeliver(_find_delivery(call))
    return Reply(202, {})
