"""Readable pages for people: what the demo's links open. Everything is escaped."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.sandbox.github.hub import Hub
from app.sandbox.github.pullgit import pull_diff
from app.sandbox.github.snapshot import view
from app.sandbox.github.state import PullRequest

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


def routes(hub: Hub) -> list[Route]:
    """The start page, a page per pull request, and its diff as text."""
    loader = PackageLoader("app.sandbox.github", "templates")
    templates = Environment(loader=loader, autoescape=True)

    async def index(_: Request) -> Response:
        pulls = [view(pull, hub.render.html_url(pull)) for pull in hub.world.pulls()]
        repositories = [r.full_name for r in hub.world.repositories.values()]
        page = templates.get_template("index.html")
        shown = page.render(pulls=pulls, repositories=repositories)
        return HTMLResponse(shown, headers=_HEADERS)

    async def pull(request: Request) -> Response:
        found = _find(hub, request)
        if found is None:
            return PlainTextResponse("no such pull request", 404)
        diff = await pull_diff(hub.git, found)
        shown = view(found, hub.render.html_url(found))
        page = templates.get_template("pull.html").render(pull=shown, files=diff.files)
        return HTMLResponse(page, headers=_HEADERS)

    async def diff(request: Request) -> Response:
        found = _find(hub, request)
        if found is None:
            return PlainTextResponse("no such pull request", 404)
        return PlainTextResponse((await pull_diff(hub.git, found)).text, headers=_HEADERS)

    return [
        Route("/", index, methods=["GET"]),
        Route("/{owner}/{repo}/pull/{number:int}.diff", diff, methods=["GET"]),
        Route("/{owner}/{repo}/pull/{number:int}", pull, methods=["GET"]),
    ]


def _find(hub: Hub, request: Request) -> PullRequest | None:
    params = request.path_params
    repository = hub.world.repository(f"{params['owner']}/{params['repo']}")
    return repository.pulls.get(params["number"]) if repository else None
