"""REST: check runs."""

from __future__ import annotations

import re

from app.sandbox.github.check_body import CheckBody, parsed
from app.sandbox.github.endpoint import Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import ApiError, not_found
from app.sandbox.github.hub import Hub
from app.sandbox.github.render_pulls import check_run as shown
from app.sandbox.github.state import App, CheckRun, Repository

endpoints = Endpoints()

_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{check_run_id:int}}"


def _run(call: Call) -> CheckRun:
    wanted = call.number("check_run_id")
    run = next((r for r in call.repo.checks if r.id == wanted), None)
    if run is None:
        raise not_found()
    return run


@endpoints.add("POST", f"{_REPO}/check-runs", "checks=write", human=None)
async def create_check_run(call: Call) -> Reply:
    body, app = parsed(call.body), call.actor.app
    name, sha = body.name, body.head_sha
    if app is None or not name or not sha:
        raise invalid_request('"name" and "head_sha" must be supplied.')
    if not re.fullmatch(r"[0-9a-f]{40}", sha):
        raise ApiError(422, f"No commit found for SHA: {sha}")
    if await call.hub.git.resolve(call.repo.path, sha) is None:
        raise ApiError(422, f"No commit found for SHA: {sha}")
    run = _new_run(call, app, name, sha)
    _apply(call, run, body)
    call.repo.checks.append(run)
    call.hub.events.check_run("created", call.repo, run, call.account)
    if run.status == "completed":
        call.hub.events.check_run("completed", call.repo, run, call.account)
    return Reply(201, shown(call.hub.render, call.repo, run))


def _new_run(call: Call, app: App, name: str, sha: str) -> CheckRun:
    world = call.hub.world
    suite = call.repo.suites.setdefault((sha, app.id), world.next_id())
    return CheckRun(
        id=world.next_id(),
        app=app,
        name=name,
        head_sha=sha,
        status="queued",
        conclusion=None,
        external_id="",
        details_url=None,
        started_at=world.now(),
        completed_at=None,
        suite_id=suite,
    )


@endpoints.add("PATCH", _RUN, "checks=write", human=None)
async def update_check_run(call: Call) -> Reply:
    """Change a run of one's own; annotations are appended."""
    run = _run(call)
    if run.app is not call.actor.app:
        raise ApiError(
            403,
            "Invalid app_id `"
            + str(run.app.id)
            + "` - check run can only be modified by the GitHub App that created it.",
        )
    body = parsed(call.body)
    finished_before = run.status == "completed"
    run.name = body.name or run.name
    _apply(call, run, body)
    if run.status == "completed" and not finished_before:
        call.hub.events.check_run("completed", call.repo, run, call.account)
    return Reply(body=shown(call.hub.render, call.repo, run))


def _apply(call: Call, run: CheckRun, body: CheckBody) -> None:
    run.external_id = body.external_id or run.external_id
    run.details_url = body.details_url or run.details_url
    run.started_at = body.started_at or run.started_at
    if body.status is not None:
        run.status = body.status
        if run.status != "completed":
            run.conclusion = run.completed_at = None
    if body.conclusion is not None:
        run.status, run.conclusion = "completed", body.conclusion
        run.completed_at = body.completed_at or call.hub.world.now()
    if body.actions is not None:
        run.actions = [action.model_dump() for action in body.actions]
    if body.output is not None:
        run.title = body.output.title or run.title
        run.summary = body.output.summary
        run.text = body.output.text or run.text
        run.annotations.extend(item.model_dump() for item in body.output.annotations)


@endpoints.add("GET", _RUN, "checks=read")
async def get_check_run(call: Call) -> Reply:
    return Reply(body=shown(call.hub.render, call.repo, _run(call)))


@endpoints.add("GET", f"{_RUN}/annotations", "checks=read")
async def list_annotations(call: Call) -> Reply:
    names = ("start_column", "end_column", "title", "raw_details")
    run = _run(call)
    blob = f"{call.hub.render.repo_url(call.repo)}/git/blobs"
    items = [
        {**dict.fromkeys(names), **item, "blob_href": f"{blob}/{run.head_sha}"}
        for item in run.annotations
    ]
    return call.page(items)


@endpoints.add("POST", f"{_RUN}/rerequest", "checks=write", human="write")
async def rerequest(call: Call) -> Reply:
    click(call.hub, call.repo, _run(call), call.account.login, None)
    return Reply(201, {})


@endpoints.add("GET", f"{_REPO}/commits/{{ref:path}}/check-runs", "checks=read")
async def list_check_runs(call: Call) -> Reply:
    """Filters `check_name`, `app_id`, `status`; `filter=latest` keeps the last of each name."""
    git, name = call.hub.git, call.path("ref")
    sha = await git.branch(call.repo.path, name) or await git.resolve(call.repo.path, name)
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {name}")
    found = [r for r in call.repo.checks if r.head_sha == sha and _wanted(call, r)]
    if call.query("filter", "latest") == "latest":
        found = list({(run.app.id, run.name): run for run in found}.values())
    found.sort(key=lambda run: run.id, reverse=True)
    render = call.hub.render
    return call.page([shown(render, call.repo, run) for run in found], wrap="check_runs")


def _wanted(call: Call, run: CheckRun) -> bool:
    name, app_id, status = (call.query(q) for q in ("check_name", "app_id", "status"))
    return (
        (not name or run.name == name)
        and (not app_id or str(run.app.id) == app_id)
        and (not status or run.status == status)
    )


def click(hub: Hub, repository: Repository, run: CheckRun, login: str, button: str | None) -> None:
    """A person clicks a button of a run, or Re-run when `button` is None."""
    sender = hub.world.ensure_account(login)
    action = "rerequested" if button is None else "requested_action"
    hub.events.check_run(action, repository, run, sender, button)
