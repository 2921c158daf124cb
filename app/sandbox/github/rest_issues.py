"""REST: conversation comments, labels and reactions."""

from __future__ import annotations

from collections.abc import Iterable

from app.sandbox.github import acts, rules
from app.sandbox.github.endpoint import Call, Endpoints, Reply, invalid_request
from app.sandbox.github.errors import ApiError, missing_field, not_found
from app.sandbox.github.hub import Hub
from app.sandbox.github.rest_reviews import find_comment
from app.sandbox.github.reviewing import body_too_long
from app.sandbox.github.state import Account, App, IssueComment, PullRequest, Reaction

endpoints = Endpoints()

_REPO = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPO}/issues/{{number:int}}"
_COMMENT = f"{_REPO}/issues/comments/{{comment_id:int}}"
_WRITE = "issues=write;pull_requests=write"
_READ = "issues=read;pull_requests=read"


def comment_on(
    hub: Hub, pull: PullRequest, user: Account, body: str, app: App | None = None
) -> IssueComment:
    """Add a comment to the conversation."""
    if not body.strip():
        raise missing_field("IssueComment", "body")
    if rules.too_long(body):
        raise body_too_long("IssueComment")
    now = hub.world.now()
    comment = IssueComment(hub.world.next_id(), user, body, now, now, app)
    pull.comments.append(comment)
    pull.updated_at = now
    hub.events.issue_comment("created", pull, comment, user)
    return comment


def _find(call: Call) -> tuple[PullRequest, IssueComment]:
    wanted = call.number("comment_id")
    for pull in call.repo.pulls.values():
        for comment in pull.comments:
            if comment.id == wanted:
                return pull, comment
    raise not_found()


@endpoints.add("GET", f"{_ISSUE}/comments", _READ)
async def list_comments(call: Call) -> Reply:
    render, pull = call.hub.render, call.pull
    return call.page([render.issue_comment(pull, comment) for comment in pull.comments])


@endpoints.add("POST", f"{_ISSUE}/comments", _WRITE, creates=True)
async def create_comment(call: Call) -> Reply:
    if call.pull.locked:
        raise ApiError(403, "Unable to create comment because issue is locked.")
    comment = comment_on(call.hub, call.pull, call.account, call.text("body") or "", call.actor.app)
    return Reply(201, call.hub.render.issue_comment(call.pull, comment))


@endpoints.add("GET", _COMMENT, _READ)
async def get_comment(call: Call) -> Reply:
    pull, comment = _find(call)
    return Reply(body=call.hub.render.issue_comment(pull, comment))


@endpoints.add("PATCH", _COMMENT, _WRITE)
async def update_comment(call: Call) -> Reply:
    pull, comment = _find(call)
    body = call.text("body") or ""
    if not body.strip():
        raise missing_field("IssueComment", "body")
    if rules.too_long(body):
        raise body_too_long("IssueComment")
    comment.body, comment.updated_at = body, call.hub.world.now()
    call.hub.events.issue_comment("edited", pull, comment, call.account)
    return Reply(body=call.hub.render.issue_comment(pull, comment))


@endpoints.add("DELETE", _COMMENT, _WRITE)
async def delete_comment(call: Call) -> Reply:
    pull, comment = _find(call)
    pull.comments.remove(comment)
    call.hub.events.issue_comment("deleted", pull, comment, call.account)
    return Reply(204)


def _labels(call: Call) -> list[object]:
    return [call.hub.render.label(call.repo, label) for label in call.pull.labels]


@endpoints.add("GET", f"{_ISSUE}/labels", _READ)
async def list_labels(call: Call) -> Reply:
    return call.page(_labels(call))


@endpoints.add("POST", f"{_ISSUE}/labels", _WRITE, human="write")
async def add_labels(call: Call) -> Reply:
    """Takes `{"labels": [...]}` or the bare list, of names or objects."""
    given = call.body.get("labels", call.body.get(""))
    if not isinstance(given, list) or not given:
        raise invalid_request('No subschema in "oneOf" matched.')
    await acts.add_labels(call.hub, call.pull, call.account, list(_names(given)))
    return Reply(body=_labels(call))


def _names(given: list[object]) -> Iterable[str]:
    for item in given:
        name = item.get("name") if isinstance(item, dict) else item
        if not isinstance(name, str) or not name.strip():
            raise missing_field("Label", "name")
        yield name


@endpoints.add("DELETE", f"{_ISSUE}/labels/{{name:path}}", _WRITE, human="write")
async def remove_label(call: Call) -> Reply:
    await acts.remove_label(call.hub, call.pull, call.account, call.path("name"))
    return Reply(body=_labels(call))


def react(
    hub: Hub, user: Account, reactions: list[Reaction], content: object
) -> tuple[Reaction, bool]:
    """The user's reaction of this kind, and whether it is new."""
    if content not in rules.REACTIONS:
        raise invalid_request("For 'properties/content', not a member of the enum.")
    for reaction in reactions:
        if reaction.user is user and reaction.content == content:
            return reaction, False
    reaction = Reaction(hub.world.next_id(), user, str(content), hub.world.now())
    reactions.append(reaction)
    return reaction, True


def _reacted(call: Call, reactions: list[Reaction]) -> Reply:
    reaction, new = react(call.hub, call.account, reactions, call.body.get("content"))
    return Reply(201 if new else 200, call.hub.render.reaction(reaction))


def _listed(call: Call, reactions: list[Reaction]) -> Reply:
    return call.page([call.hub.render.reaction(reaction) for reaction in reactions])


@endpoints.add("POST", f"{_COMMENT}/reactions", _WRITE)
async def react_to_comment(call: Call) -> Reply:
    return _reacted(call, _find(call)[1].reactions)


@endpoints.add("GET", f"{_COMMENT}/reactions", _READ)
async def list_comment_reactions(call: Call) -> Reply:
    return _listed(call, _find(call)[1].reactions)


@endpoints.add(
    "POST", f"{_REPO}/pulls/comments/{{comment_id:int}}/reactions", "pull_requests=write"
)
async def react_to_review_comment(call: Call) -> Reply:
    return _reacted(call, find_comment(call)[1].reactions)


@endpoints.add("GET", f"{_REPO}/pulls/comments/{{comment_id:int}}/reactions", "pull_requests=read")
async def list_review_comment_reactions(call: Call) -> Reply:
    return _listed(call, find_comment(call)[1].reactions)
