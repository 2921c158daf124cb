"""REST: check runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.sandbox.github import rules
from app.sandbox.github.endpoint import Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import ApiError, not_found
from app.sandbox.github.hub import Hub
from app.sandbox.github.render_pulls import check_run as shown
from app.sandbox.github.state import App, CheckRun, Repository

endpoints = Endpoints()

_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{check_run_id:int}}"
_STATUSES = frozenset({"queued", "in_progress", "completed"})
_CONCLUSIONS = frozenset(
    {
        "action_required",
        "cancelled",
        "failure",
        "neutral",
        "success",
        "skipped",
        "timed_out",
    }
)


def _run(call: Call) -> CheckRun:
    wanted = call.number("check_run_id")
    run = next((r for r in call.repo.checks if r.id == wanted), None)
    if run is None:
        raise not_found()
    return run


@endpoints.add("POST", f"{_REPO}/check-runs", "checks=write", human=None)
async def create_check_run(call: Call) -> Reply:
    name, sha, app = call.text("name"), call.text("head_sha"), call.actor.app
    if app is None or not name or not sha:
        raise invalid_request('"name" and "head_sha" must be supplied.')
    if not re.fullmatch(r"[0-9a-f]{40}", sha):
        raise ApiError(422, f"No commit found for SHA: {sha}")
    if await call.hub.git.resolve(call.repo.path, sha) is None:
        raise ApiError(422, f"No commit found for SHA: {sha}")
    _check(call.body)
    run = _new_run(call, app, name, sha)
    _apply(call, run)
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


def _check(body: Mapping[str, Any]) -> None:
    """Refuse what GitHub's limits refuse."""
    if body.get("status", "queued") not in _STATUSES:
        raise invalid_request("For 'properties/status', not a member of the enum.")
    conclusion = body.get("conclusion")
    if conclusion is not None and conclusion not in _CONCLUSIONS:
        raise invalid_request("For 'properties/conclusion', not a member of the enum.")
    if body.get("status") == "completed" and conclusion is None:
        raise invalid_request('"conclusion" wasn\'t supplied.')
    _check_output(body.get("output"))
    _check_actions(body.get("actions") or [])


def _check_output(output: object) -> None:
    if output is None:
        return
    if not isinstance(output, dict) or not isinstance(output.get("summary"), str):
        raise invalid_request('"summary" wasn\'t supplied.')
    for name in ("summary", "text"):
        if len(output.get(name) or "") > rules.MAX_CHECK_TEXT:
            raise invalid_request(
                f"Only {rules.MAX_CHECK_TEXT} characters are allowed; {name} is too long."
            )
    if len(output.get("title") or "") > rules.MAX_TITLE:
        raise invalid_request(f"title is too long (maximum is {rules.MAX_TITLE} characters)")
    annotations = output.get("annotations") or []
    if len(annotations) > rules.MAX_ANNOTATIONS:
        raise invalid_request(
            f"No more than {rules.MAX_ANNOTATIONS} items are allowed; "
            f"{len(annotations)} were supplied."
        )
    for item in annotations:
        _check_annotation(item)


def _check_annotation(item: object) -> None:
    required = ("path", "start_line", "end_line", "annotation_level", "message")
    if not isinstance(item, dict) or any(item.get(name) is None for name in required):
        raise invalid_request(f"An annotation needs {', '.join(required)}.")
    columns = item.get("start_column"), item.get("end_column")
    if columns != (None, None) and item["start_line"] != item["end_line"]:
        raise invalid_request("Columns can only be given when start_line equals end_line.")


def _check_actions(actions: object) -> None:
    if not isinstance(actions, list) or len(actions) > rules.MAX_ACTIONS:
        raise invalid_request(f"No more than {rules.MAX_ACTIONS} items are allowed in actions.")
    for action in actions:
        for name, limit in rules.ACTION_LIMITS.items():
            text = action.get(name) if isinstance(action, dict) else None
            if not isinstance(text, str) or len(text) > limit:
                raise invalid_request(f"{name} must be a string of at most {limit} characters.")


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
    _check(call.body)
    finished_before = run.status == "completed"
    run.name = call.text("name") or run.name
    _apply(call, run)
    if run.status == "completed" and not finished_before:
        call.hub.events.check_run("completed", call.repo, run, call.account)
    return Reply(body=shown(call.hub.render, call.repo, run))


def _apply(call: Call, run: CheckRun) -> None:
    body = call.body
    run.external_id = call.text("external_id") or run.external_id
    run.details_url = call.text("details_url") or run.details_url
    run.started_at = _time(call.text("started_at")) or run.started_at
    if call.text("status"):
        run.status = str(body["status"])
        if run.status != "completed":
            run.conclusion = run.completed_at = None
    if call.text("conclusion"):
        run.status, run.conclusion = "completed", str(body["conclusion"])
        run.completed_at = _time(call.text("completed_at")) or call.hub.world.now()
    if "actions" in body:
        run.actions = [dict(action) for action in body["actions"] or []]
    output = body.get("output")
    if isinstance(output, dict):
        run.title = output.get("title") or run.title
        run.summary = output["summary"]
        run.text = output.get("text") or run.text
        run.annotations.extend(dict(item) for item in output.get("annotations") or [])


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise invalid_request(f"{text} is not a date-time.") from None
    return parsed.astimezone(UTC)


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
