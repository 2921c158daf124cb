"""What each event asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.jobs import AppRole, Cause, JobKind
from app.domain.pull_request import AccountKind
from app.jobs.requests import PRIORITY_PERSON
from app.webhooks.events import MODELS, UnreadableEvent, parse_event
from app.webhooks.routing import (
    Ignore,
    IgnoreReason,
    InstallationChange,
    Route,
    RoutingFacts,
    Work,
    asks_for_something,
    route,
    route_unreadable,
)
from tests.webhooks import payloads
from tests.webhooks.payloads import (
    FIXER_APP,
    INSTALLATION,
    REPOSITORY,
    REVIEWER_APP,
    account,
    check_run,
    comment,
    pull_request,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = RoutingFacts(
    app=AppRole.REVIEWER,
    delivery="d1",
    now=NOW,
    debounce=timedelta(seconds=3),
    reviewer_app_id=REVIEWER_APP,
    own_app_ids=frozenset({REVIEWER_APP, FIXER_APP}),
    own_logins=frozenset({"review-app[bot]", "fix-app[bot]"}),
)
BASE_CHANGED = {"changes": {"base": {"ref": {"from": "old"}, "sha": {"from": "b0"}}}}


def routed(name: str, payload: dict[str, Any], facts: RoutingFacts = FACTS) -> Route:
    return route(name, parse_event(name, payload), facts)


def work(name: str, payload: dict[str, Any]) -> Work:
    result = routed(name, payload)
    assert isinstance(result, Work)
    return result


@pytest.mark.parametrize(
    ("action", "more", "waits", "cancels"),
    [
        pytest.param("opened", {}, 0, False, id="opened"),
        pytest.param("reopened", {}, 0, False, id="reopened"),
        pytest.param("ready_for_review", {}, 0, False, id="ready"),
        pytest.param("synchronize", {}, 3, True, id="push"),
        pytest.param("edited", BASE_CHANGED, 3, True, id="base-changed"),
    ],
)
def test_events_that_start_a_review(
    action: str, more: dict[str, Any], waits: int, cancels: bool
) -> None:
    """These five and no others; moved code waits for more and stops a running review."""
    planned = work("pull_request", pull_request(action, **more))
    request = planned.request
    assert request.kind is JobKind.REVIEW_PULL_REQUEST
    assert request.key == f"review:{REPOSITORY}:7:a1:{action}"
    assert request.subject == request.lane == f"pr:{REPOSITORY}:7"
    assert (request.installation_id, request.repository_id) == (INSTALLATION, REPOSITORY)
    assert request.run_at == NOW + timedelta(seconds=waits)
    assert (planned.supersedes, planned.cancels) == (True, cancels)
    assert request.payload["repository_id"] == REPOSITORY
    assert request.payload["number"] == 7
    [cause] = [Cause.from_json(each) for each in request.payload["causes"]]
    assert (cause.action, cause.actor.login, cause.at, cause.delivery) == (
        action,
        "author-1",
        NOW,
        "d1",
    )


def test_a_close_is_never_merged_with_another() -> None:
    """It starts at once, beside a running review, and each close is a job of its own."""
    planned = work("pull_request", pull_request("closed"))
    assert planned.request.kind is JobKind.CLOSE_PULL_REQUEST
    assert planned.request.key == f"close:{REPOSITORY}:7:d1"
    assert planned.request.subject == f"pr:{REPOSITORY}:7"
    assert planned.request.lane != planned.request.subject
    assert (planned.request.run_at, planned.supersedes) == (NOW, False)


@pytest.mark.parametrize(
    ("name", "payload", "reason"),
    [
        ("pull_request", pull_request("labeled"), IgnoreReason.UNUSED_ACTION),
        ("pull_request", pull_request("edited"), IgnoreReason.UNUSED_ACTION),
        ("pull_request", pull_request("converted_to_draft"), IgnoreReason.UNUSED_ACTION),
        ("pull_request", pull_request("an_action_of_2031"), IgnoreReason.UNUSED_ACTION),
        ("issue_comment", comment("Nice work!"), IgnoreReason.NO_COMMAND),
        ("issue_comment", {**comment(), "action": "edited"}, IgnoreReason.UNUSED_ACTION),
        ("issue_comment", comment(issue={"number": 7}), IgnoreReason.NOT_A_PULL_REQUEST),
        ("issue_comment", comment(sender=account("x[bot]", "Bot")), IgnoreReason.BOT_ACT),
        ("issue_comment", comment(sender=account("Fix-App[bot]")), IgnoreReason.OWN_ACT),
        ("issue_comment", {**comment(), "repository": None}, IgnoreReason.INCOMPLETE),
        ("check_run", check_run("completed"), IgnoreReason.UNUSED_ACTION),
        ("check_run", check_run(app=999), IgnoreReason.OTHER_APP),
        (
            "check_run",
            {**check_run(), "sender": account("x[bot]", "Bot")},
            IgnoreReason.BOT_ACT,
        ),
        ("installation", payloads.installation("renamed"), IgnoreReason.UNUSED_ACTION),
        ("push", {"ref": "refs/heads/main"}, IgnoreReason.UNUSED_EVENT),
        ("merge_group", {"action": "checks_requested"}, IgnoreReason.UNUSED_EVENT),
        ("pull_request_review", payloads.review(), IgnoreReason.NO_COMMAND),
        ("pull_request_review", payloads.review(action="edited"), IgnoreReason.UNUSED_ACTION),
        ("pull_request_review_comment", payloads.thread_comment("x"), IgnoreReason.NO_COMMAND),
        ("ping", {"zen": "Keep it logically awesome."}, IgnoreReason.PING),
        ("an_event_of_2031", {}, IgnoreReason.UNKNOWN_EVENT),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_events_that_ask_for_nothing(
    name: str, payload: dict[str, Any], reason: IgnoreReason
) -> None:
    """Each is ignored for a reason with a name."""
    result = routed(name, payload)
    assert isinstance(result, Ignore)
    assert result.reason is reason


@pytest.mark.parametrize(
    ("through", "reason"),
    [
        pytest.param({"id": FIXER_APP}, IgnoreReason.OWN_ACT, id="our-fixer"),
        pytest.param({"id": 999}, IgnoreReason.BOT_ACT, id="another-app-for-a-person"),
    ],
)
def test_a_comment_made_through_an_app_is_no_persons_word(
    through: dict[str, Any], reason: IgnoreReason
) -> None:
    """The account may be a person's: an App wrote it."""
    said = comment()
    said["comment"]["performed_via_github_app"] = through
    result = routed("issue_comment", said)
    assert isinstance(result, Ignore)
    assert result.reason is reason


def test_pushes_of_our_own_fixer_are_reviewed() -> None:
    """Its comments are dropped, its code is not: fix pull requests are judged like any other."""
    sender = account("fix-app[bot]", "Bot")
    planned = work("pull_request", pull_request("synchronize", sender=sender))
    cause = Cause.from_json(planned.request.payload["causes"][0])
    assert cause.actor.kind is AccountKind.BOT


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        pytest.param("/mergeward review", True, id="command"),
        pytest.param("Thanks!\n\n  /Mergeward fix all\nbye", True, id="command-on-its-own-line"),
        pytest.param("break glass", True, id="break-glass"),
        pytest.param("  BREAK  Glass the site is down", True, id="break-glass-with-reason"),
        pytest.param("Please /mergeward review", False, id="within-a-line"),
        pytest.param("/mergewarden", False, id="another-word"),
        pytest.param("we should not break glass", False, id="break-glass-inside"),
        pytest.param("> /mergeward review", False, id="quoted"),
        pytest.param("", False, id="empty"),
    ],
)
def test_the_first_sieve_for_comments(body: str, asks: bool) -> None:
    """Lets through everything that may be a command; the grammar decides for certain."""
    assert asks_for_something(body) is asks


def test_a_command_becomes_a_job_that_goes_first() -> None:
    """It carries the comment as it was when it was sent, and a person is waiting."""
    request = work("issue_comment", comment("/mergeward fix F1")).request
    assert request.kind is JobKind.HANDLE_COMMENT
    assert request.key == f"comment:{REPOSITORY}:900"
    assert request.priority == PRIORITY_PERSON
    assert request.payload["body"] == "/mergeward fix F1"
    assert request.payload["comment_id"] == 900
    assert request.lane != request.subject, "a command never waits for a running review"


@pytest.mark.parametrize(
    ("action", "pressed"), [("requested_action", "rereview"), ("rerequested", "rereview")]
)
def test_a_pressed_button_becomes_a_job(action: str, pressed: str) -> None:
    """The button's name, the check run and the head arrive in the job."""
    request = work("check_run", check_run(action)).request
    assert request.kind is JobKind.HANDLE_CHECK_ACTION
    assert request.payload["action"] == pressed
    assert request.payload["external_id"] == "run:3"
    assert request.payload["numbers"] == [7]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_fixers_deliveries_change_only_installations(name: str) -> None:
    """Both Apps hear of a pull request; one of them starts the work."""
    payload = {
        "pull_request": pull_request(),
        "issue_comment": comment(),
        "check_run": check_run(),
        "installation": payloads.installation(),
        "installation_repositories": payloads.installation_repositories(),
        "pull_request_review": payloads.review("/mergeward review"),
        "pull_request_review_comment": payloads.thread_comment(),
    }.get(name, {})
    result = routed(name, payload, replace(FACTS, app=AppRole.FIXER))
    assert not isinstance(result, Work)
    assert isinstance(result, InstallationChange) == name.startswith("installation")


@pytest.mark.parametrize(
    ("action", "suspended", "deleted", "added"),
    [
        ("created", False, False, 1),
        ("suspend", True, False, 0),
        ("unsuspend", False, False, 0),
        ("deleted", None, True, 0),
        ("new_permissions_accepted", None, False, 0),
    ],
)
def test_installations_are_recorded(
    action: str, suspended: bool | None, deleted: bool, added: int
) -> None:
    """What happened to the installation, without a job."""
    change = routed("installation", payloads.installation(action))
    assert isinstance(change, InstallationChange)
    assert (change.suspended, change.deleted, len(change.added)) == (suspended, deleted, added)


@pytest.mark.parametrize(
    "thin",
    [
        pytest.param({"action": "opened", "number": 7}, id="nothing-but-a-number"),
        pytest.param(pull_request(repository=None), id="no-repository"),
        pytest.param(pull_request(installation=None), id="no-installation"),
        pytest.param(pull_request() | {"pull_request": {"number": 10**30}}, id="absurd-number"),
    ],
)
def test_a_pull_request_we_cannot_name_is_looked_for(thin: dict[str, Any]) -> None:
    """Something happened that we want to know: GitHub is asked what."""
    try:
        result = route("pull_request", parse_event("pull_request", thin), FACTS)
    except UnreadableEvent as unreadable:
        result = route_unreadable("pull_request", "opened", str(unreadable), FACTS)
    assert isinstance(result, Work)
    assert result.request.kind is JobKind.SYNC_INSTALLATION


@pytest.mark.parametrize(
    ("name", "payload", "field"),
    [
        ("pull_request", {"action": "labeled"}, "pull_request"),
        ("issue_comment", {"action": "created", "comment": {"body": "x"}}, "comment.id"),
        ("check_run", {"check_run": []}, "check_run"),
        ("installation", {"installation": None}, "installation"),
    ],
)
def test_unreadable_events_say_what_they_lack(
    name: str, payload: dict[str, Any], field: str
) -> None:
    """The reason names the fields, so that a change at GitHub is found in one look."""
    with pytest.raises(UnreadableEvent, match=field) as caught:
        parse_event(name, payload)
    result = route_unreadable(name, payload.get("action"), str(caught.value), FACTS)
    assert isinstance(result, Ignore)
    assert result.reason is IgnoreReason.UNREADABLE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
PARTS = ("action", "repository", "installation", "sender", "pull_request", "comment", "issue")


@given(
    name=st.sampled_from(sorted(MODELS)) | st.text(max_size=20),
    payload=st.dictionaries(st.sampled_from(PARTS) | st.text(max_size=8), JSON),
)
def test_routing_is_total(name: str, payload: dict[str, Any]) -> None:
    """Any JSON object under any name ends in work, a change, or a reason; never in an exception."""
    try:
        result = routed(name, payload)
    except UnreadableEvent as unreadable:
        result = route_unreadable(name, None, str(unreadable), FACTS)
    assert isinstance(result, Ignore | Work | InstallationChange)


def test_unknown_account_types_are_people_without_rights() -> None:
    """GitHub has more account types than it says; none of them costs us an event."""
    planned = work("pull_request", pull_request(sender=account("ghost", "Mannequin")))
    assert Cause.from_json(planned.request.payload["causes"][0]).actor.kind is AccountKind.USER


@pytest.mark.parametrize(
    ("name", "event", "where"),
    [
        ("issue_comment", payloads.comment(), "comment"),
        ("pull_request_review_comment", payloads.thread_comment(), "thread"),
        ("pull_request_review", payloads.review("/mergeward review"), "review"),
    ],
)
def test_people_command_wherever_they_speak(name: str, event: dict[str, Any], where: str) -> None:
    """The conversation, a thread and a review: each has numbers of its own."""
    found = work(name, event)
    assert found.request.kind is JobKind.HANDLE_COMMENT
    assert found.request.payload["where"] == where
    assert found.request.key.startswith(f"{where}:")


def test_the_glass_waits_for_nothing() -> None:
    """It goes before everything else, and beside whatever is said on the same pull request."""
    usual = work("issue_comment", payloads.comment())
    body = {"id": 900, "body": "break glass", "user": payloads.account("maintainer-1")}
    glass = work("issue_comment", payloads.comment(comment=body))
    assert glass.request.priority > usual.request.priority
    assert glass.request.lane != usual.request.lane
