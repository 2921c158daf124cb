"""Stored facts follow GitHub, and late news changes nothing."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from app.domain.jobs import AppRole
from app.domain.pull_request import AccountKind, PullRequestState
from app.domain.tasks import PublicationState
from app.store import queries
from app.store.commands import (
    BotFact,
    DecisionRecord,
    RepositoryFacts,
    ensure_installation,
    ensure_lineage,
    ensure_pull_request,
    ensure_repository,
    finish_publication,
    forget_repositories,
    prepare_publication,
    record_decision,
)
from app.store.findings import number_findings
from app.store.session import Store
from app.store.tables import FindingRow, Publication, Repository
from loop_guards import FindingStatus, Origin, Severity
from tests.store.rows import (
    INSTALLATION,
    NOW,
    REPOSITORY,
    account,
    add_pull_request,
    add_repository,
    later,
    pull_request,
)

OPEN, CLOSED, MERGED = PullRequestState.OPEN, PullRequestState.CLOSED, PullRequestState.MERGED


@pytest.mark.parametrize(
    ("first", "second", "head", "state"),
    [
        pytest.param((0, OPEN), (5, OPEN), "a2", OPEN, id="newer-push"),
        pytest.param((5, OPEN), (0, OPEN), "a1", OPEN, id="late-push"),
        pytest.param((0, OPEN), (0, OPEN), "a2", OPEN, id="same-second"),
        pytest.param((5, CLOSED), (0, OPEN), "a1", CLOSED, id="late-push-after-close"),
        pytest.param((0, CLOSED), (5, OPEN), "a2", OPEN, id="reopened"),
        pytest.param((5, MERGED), (5, OPEN), "a1", MERGED, id="same-second-after-merge"),
        pytest.param((5, MERGED), (9, CLOSED), "a1", MERGED, id="merged-is-final"),
    ],
)
async def test_late_events_change_nothing(
    store: Store,
    first: tuple[int, PullRequestState],
    second: tuple[int, PullRequestState],
    head: str,
    state: PullRequestState,
) -> None:
    """Facts older than what is stored are ignored whatever their order of arrival."""
    async with store.write() as session:
        await add_repository(session)
    for seconds_and_state, sha in ((first, "a1"), (second, "a2")):
        async with store.write() as session:
            row = await add_pull_request(
                session, later(seconds_and_state[0]), state=seconds_and_state[1], head_sha=sha
            )
    assert (row.head_sha, row.state) == (head, state)


async def test_who_wrote_it_is_written_once(store: Store) -> None:
    """A later signal does not turn a person's pull request into a bot's."""
    async with store.write() as session:
        await add_repository(session)
        first = await add_pull_request(session)
        second = await ensure_pull_request(
            session,
            REPOSITORY,
            pull_request(author=account("other[bot]", AccountKind.BOT)),
            bot=BotFact(is_bot=True, signal="type"),
            updated_at=later(1),
            now=later(1),
        )
    assert second.id == first.id
    assert (second.is_bot, second.author_login) == (False, "author-1")


async def test_one_pull_request_made_by_two_at_once(store: Store) -> None:
    """Two jobs that see a new pull request at the same time share one row."""
    async with store.write() as session:
        await add_repository(session)

    async def make() -> int:
        async with store.write() as session:
            return (await add_pull_request(session)).id

    assert len(set(await asyncio.gather(*(make() for _ in range(6))))) == 1


async def test_repositories_follow_renames_transfers_and_removal(store: Store) -> None:
    """GitHub's id is the repository; name, owner and installation may change under it."""
    async with store.write() as session:
        await add_repository(session)
        await ensure_installation(
            session, 42, app=AppRole.REVIEWER, account=account("umbrella"), now=NOW
        )
        await forget_repositories(session, [REPOSITORY], app=AppRole.REVIEWER, now=later(1))
        gone = await queries.repository(session, REPOSITORY)
        assert gone is not None
        assert gone.removed_at == later(1)
        row = await ensure_repository(
            session,
            RepositoryFacts(id=REPOSITORY, owner="umbrella", name="store"),
            installation_id=42,
            now=later(2),
        )
    assert row is not None
    assert (row.full_name, row.installation_id) == ("umbrella/store", 42)
    assert (row.default_branch, row.private) == ("main", True), "not told, so kept"
    assert (row.removed_at, row.enabled_at) == (None, later(2))


async def test_the_fixer_only_joins_known_repositories(store: Store) -> None:
    """The fixer App's installation is noted beside the reviewer's and never replaces it."""
    facts = RepositoryFacts(id=REPOSITORY, owner="acme", name="shop")
    async with store.write() as session:
        unknown = await ensure_repository(
            session, facts, installation_id=9, app=AppRole.FIXER, now=NOW
        )
        assert unknown is None
        await add_repository(session)
        row = await ensure_repository(session, facts, installation_id=9, app=AppRole.FIXER, now=NOW)
        assert row is not None
        assert (row.installation_id, row.fixer_installation_id) == (INSTALLATION, 9)
        theirs = await queries.repositories_of(session, 9, app=AppRole.FIXER)
        assert [each.id for each in theirs] == [REPOSITORY]
        await forget_repositories(session, [REPOSITORY], app=AppRole.FIXER, now=NOW)
    async with store.read() as session:
        row = await session.get(Repository, REPOSITORY)
        assert row is not None
        assert (row.removed_at, row.fixer_installation_id) == (None, None)


async def test_a_lineage_is_made_once(store: Store) -> None:
    """A source pull request has exactly one lineage."""
    async with store.write() as session:
        await add_repository(session)
        source = await add_pull_request(session)
        first = await ensure_lineage(session, source, now=NOW)
        second = await ensure_lineage(session, source, now=later(1))
    assert first.id == second.id == source.lineage_id


async def test_an_effect_is_announced_once(store: Store) -> None:
    """The second announcement finds the first, and with it how far that one came."""

    def effect() -> Publication:
        return Publication(marker="review:1", kind="review", created_at=NOW, updated_at=NOW)

    async with store.write() as session:
        row, new = await prepare_publication(session, effect())
        assert (new, row.state) == (True, PublicationState.PREPARED)
    async with store.write() as session:
        again, new = await prepare_publication(session, effect())
        assert (new, again.id, again.state) == (False, row.id, PublicationState.PREPARED)
        await finish_publication(session, again.id, {"review_id": 5}, now=later(1))
    async with store.read() as session:
        done = await queries.publication(session, "review:1")
        assert done is not None
        assert (done.state, done.receipt) == (PublicationState.DONE, {"review_id": 5})


async def test_decisions_keep_their_record(store: Store) -> None:
    """A decision comes back with its reason, all reasons and the trace, in order."""
    async with store.write() as session:
        for outcome in ("yes", "no"):
            await record_decision(
                session,
                DecisionRecord(
                    kind="handoff",
                    outcome=outcome,
                    reason="auto",
                    reasons=("auto", "budget"),
                    record={"trace": [["stopped", False]]},
                    pull_request_id=3,
                ),
                now=NOW,
            )
    async with store.read() as session:
        rows = await queries.decisions_about(session, 3)
    assert [(row.outcome, row.reasons) for row in rows] == [
        ("yes", ["auto", "budget"]),
        ("no", ["auto", "budget"]),
    ]
    assert rows[0].record == {"trace": [["stopped", False]]}
    assert rows[0].decided_at == NOW


def finding(pull_request_id: int, moment: datetime = NOW) -> FindingRow:
    return FindingRow(
        pull_request_id=pull_request_id,
        severity=Severity.WARNING,
        category="security",
        title="An injection",
        body="…",
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
        first_seen_sha="a1",
        last_seen_sha="a1",
        created_at=moment,
        updated_at=moment,
    )


async def test_finding_numbers_are_never_shared(store: Store) -> None:
    """Runs that number findings at the same time, after reading the row, get different numbers."""
    async with store.write() as session:
        await add_repository(session)
        source = await add_pull_request(session)

    async def number() -> int:
        async with store.write() as session:
            await queries.pull_request(session, REPOSITORY, 7)
            await asyncio.sleep(0)
            row = finding(source.id)
            await number_findings(session, source.id, [row])
            return row.number

    assert sorted(await asyncio.gather(*(number() for _ in range(5)))) == [1, 2, 3, 4, 5]
