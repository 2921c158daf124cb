"""Check runs, conversation comments, labels and reactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.github.stage import REPO, REPO_PATH, SHARED, Stage

RUNS = f"{REPO_PATH}/check-runs"


def note(**changes: Any) -> dict[str, Any]:
    """A good annotation."""
    return {
        "path": "a.py",
        "start_line": 1,
        "end_line": 1,
        "annotation_level": "warning",
        "message": "m",
    } | changes


def action(**changes: str) -> dict[str, str]:
    return {"label": "Fix", "description": "d", "identifier": "fix"} | changes


def output(**changes: Any) -> dict[str, Any]:
    return {"output": {"title": "t", "summary": "s"} | changes}


LIMITS: list[tuple[str, dict[str, Any], bool]] = [
    ("50 annotations", output(annotations=[note()] * 50), True),
    ("51 annotations", output(annotations=[note()] * 51), False),
    ("summary of 65,535", output(summary="x" * 65_535), True),
    ("summary of 65,536", output(summary="x" * 65_536), False),
    ("text of 65,536", output(text="x" * 65_536), False),
    ("no summary", {"output": {"title": "t"}}, False),
    ("title of 256", output(title="x" * 256), False),
    ("columns on one line", output(annotations=[note(start_column=1, end_column=2)]), True),
    ("columns on two", output(annotations=[note(end_line=2, start_column=1)]), False),
    ("annotation without message", output(annotations=[note(message=None)]), False),
    ("3 actions", {"actions": [action()] * 3}, True),
    ("4 actions", {"actions": [action()] * 4}, False),
    ("label of 21", {"actions": [action(label="x" * 21)]}, False),
    ("description of 41", {"actions": [action(description="x" * 41)]}, False),
    ("identifier of 21", {"actions": [action(identifier="x" * 21)]}, False),
    ("completed without conclusion", {"status": "completed"}, False),
    ("unknown conclusion", {"conclusion": "stale"}, False),
    ("unknown status", {"status": "done"}, False),
    ("head in short form", {"head_sha": "abc1234"}, False),
    ("unknown head", {"head_sha": "a" * 40}, False),
]


@SHARED
@pytest.mark.parametrize(("body", "good"), [x[1:] for x in LIMITS], ids=[x[0] for x in LIMITS])
async def test_check_run_limits(shared: Stage, body: dict[str, Any], good: bool) -> None:
    """GitHub's limits on check runs, at the edge and beyond it."""
    answer = await shared.call("POST", RUNS, {"name": "ward", "head_sha": shared.head, **body})
    assert answer.status_code == (201 if good else 422)


async def test_check_run_life(stage: Stage) -> None:
    """A conclusion completes; updates keep what they do not name and append annotations."""
    start = {"name": "ward", "head_sha": stage.head, "status": "in_progress", "external_id": "e"}
    run = (await stage.call("POST", RUNS, {**start, **output(annotations=[note()])})).json()
    assert (run["status"], run["conclusion"], run["completed_at"]) == ("in_progress", None, None)
    path = f"{RUNS}/{run['id']}"
    end = {"conclusion": "action_required", **output(annotations=[note(), note()])}
    done = (await stage.call("PATCH", path, end)).json()
    assert (done["status"], done["external_id"]) == ("completed", "e")
    assert done["output"]["annotations_count"] == 3
    notes = (await stage.call("GET", f"{path}/annotations")).json()
    assert [item["path"] for item in notes] == ["a.py"] * 3
    assert [p["number"] for p in done["pull_requests"]] == [1]
    assert done["app"]["slug"] == "ward"


async def test_check_runs_of_a_commit(stage: Stage) -> None:
    """Listing shows the latest of each name, filtered by name and App, by branch or SHA."""
    for name, conclusion in (("a", "failure"), ("b", "success"), ("a", "success")):
        body = {"name": name, "head_sha": stage.head, "conclusion": conclusion}
        await stage.call("POST", RUNS, body)
    queries = {
        "": ["a", "b"],
        "?filter=all": ["a", "b", "a"],
        "?check_name=b": ["b"],
        "?app_id=102": [],
        "?app_id=101&check_name=a": ["a"],
    }
    for query, names in queries.items():
        path = f"{REPO_PATH}/commits/feature/check-runs{query}"
        found = (await stage.call("GET", path)).json()
        assert [run["name"] for run in found["check_runs"]] == names, query
        assert found["total_count"] == len(names)


async def test_other_apps_run(stage: Stage) -> None:
    """An App changes only its own runs."""
    body = {"name": "ward", "head_sha": stage.head}
    run = (await stage.call("POST", RUNS, body)).json()
    stage.gh.install("fix", "acme", [REPO], permissions={"checks": "write"})
    fixers = [i for i in stage.gh.hub.world.installations.values() if i.app.slug == "fix"]
    token = stage.gh.hub.identity.mint(fixers[-1], fixers[-1].permissions, None).value
    answer = await stage.http.patch(
        f"{RUNS}/{run['id']}",
        json={"conclusion": "success"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 403


COMMENTS = f"{REPO_PATH}/issues/1/comments"


async def test_comments(stage: Stage) -> None:
    """Comments are made, listed, edited and deleted; Apps are named as their means."""
    made = (await stage.call("POST", COMMENTS, {"body": "one"})).json()
    person = (await stage.call("POST", COMMENTS, {"body": "two"}, who="alice")).json()
    assert made["performed_via_github_app"]["slug"] == "ward"
    assert person["performed_via_github_app"] is None
    assert (made["author_association"], person["author_association"]) == ("NONE", "COLLABORATOR")
    path = f"{REPO_PATH}/issues/comments/{made['id']}"
    await stage.call("PATCH", path, {"body": "uno"})
    listed = (await stage.call("GET", COMMENTS)).json()
    assert [comment["body"] for comment in listed] == ["uno", "two"]
    assert (await stage.call("DELETE", path)).status_code == 204
    assert (await stage.call("GET", path)).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"), [("", "body"), ("x" * 65_537, "data")], ids=["empty", "too long"]
)
async def test_comment_refused(stage: Stage, body: str, field: str) -> None:
    """Empty and over-long bodies are 422, on creation and on edit."""
    made = (await stage.call("POST", COMMENTS, {"body": "x" * 65_536})).json()
    path = f"{REPO_PATH}/issues/comments/{made['id']}"
    for method, where in (("POST", COMMENTS), ("PATCH", path)):
        answer = await stage.call(method, where, {"body": body})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == field


async def test_locked_conversation(stage: Stage) -> None:
    """A locked conversation takes no comments."""
    stage.gh.pull_request(REPO, 1).locked = True
    assert (await stage.call("POST", COMMENTS, {"body": "x"})).status_code == 403


async def test_labels(stage: Stage) -> None:
    """Labels come and go by name, in both forms of the body; removing a missing one is 404."""
    path = f"{REPO_PATH}/issues/1/labels"
    await stage.call("POST", path, {"labels": ["needs human", {"name": "b"}]})
    both = (await stage.call("POST", path, ["B", "c"])).json()
    assert [label["name"] for label in both] == ["needs human", "b", "c"]
    left = (await stage.call("DELETE", f"{path}/needs%20human")).json()
    assert [label["name"] for label in left] == ["b", "c"]
    gone = await stage.call("DELETE", f"{path}/needs%20human")
    assert (gone.status_code, gone.json()["message"]) == (404, "Label does not exist")
    odd: list[object] = [{}, {"labels": []}, {"labels": [1]}]
    for wrong in odd:
        assert (await stage.call("POST", path, wrong)).status_code == 422


async def test_reactions(stage: Stage) -> None:
    """201 when new, 200 when it existed, 422 for what is no reaction."""
    comment = (await stage.call("POST", COMMENTS, {"body": "one"})).json()
    path = f"{REPO_PATH}/issues/comments/{comment['id']}/reactions"
    statuses = [
        (await stage.call("POST", path, {"content": content}, who=who)).status_code
        for content, who in (("eyes", "ward"), ("eyes", "ward"), ("eyes", "bob"), ("x", "ward"))
    ]
    assert statuses == [201, 200, 201, 422]
    shown = (await stage.call("GET", f"{REPO_PATH}/issues/comments/{comment['id']}")).json()
    assert (shown["reactions"]["eyes"], shown["reactions"]["total_count"]) == (2, 2)
    assert len((await stage.call("GET", path)).json()) == 2
