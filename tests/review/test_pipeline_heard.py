"""People decide to live with a finding: what the next round makes of it."""

from __future__ import annotations

import pytest

from app.domain.pull_request import Permission
from app.domain.runs import AgentName
from app.forges.recording.world import ThreadRecord
from loop_guards import FindingStatus, Severity
from tests.review.story import (
    BASE,
    PERSON,
    PLANTED,
    REPO,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
)
from tests.store.rows import account

HEAD = {**BASE, SEARCH: PLANTED}
MORE = {**HEAD, "app/more.py": b"y = 2\n"}
WRITER, READER = account("wanda"), account("ron")
FOUND = findings(finding(severity="warning"))


@pytest.fixture
async def page(story: Story) -> Story:
    """One round has found F1, a warning; `wanda` may write, `ron` may not."""
    story.world.permissions |= {"wanda": Permission.WRITE, PERSON.login: Permission.WRITE}
    story.world.permissions["ron"] = Permission.READ
    story.model.answers = {AgentName.GENERAL: [FOUND]}
    story.open_pull(HEAD)
    await story.review()
    story.page()
    return story


def thread(story: Story) -> ThreadRecord:
    return story.world.pull(REPO, story.number).threads[0]


async def again(story: Story) -> None:
    story.push(MORE)
    await story.review(action="synchronize")


async def statuses(story: Story) -> list[tuple[str, FindingStatus, str | None]]:
    return [(row.short_id, row.status, row.status_by_login) for row in await story.findings()]


async def test_a_resolved_thread_is_respected(page: Story) -> None:
    """The finding is acknowledged by who resolved it, the reviewers find it again and nobody is
    told; the thread stays as the person left it."""
    thread(page).resolved_by = "wanda"
    await again(page)
    assert await statuses(page) == [("F1", FindingStatus.ACKNOWLEDGED, "wanda")]
    assert "Left as it is, by a person's decision: **F1**" in page.bodies[-1]
    assert page.check.title == "Approved: no findings"
    assert ("dismissal", "dismissed", "by_human") in await page.decisions()
    await again(page)
    assert len(await page.findings()) == 1
    assert len(page.world.pull(REPO, page.number).threads) == 1
    assert thread(page).resolved_by == "wanda"


async def test_other_code_is_another_matter(page: Story) -> None:
    """The same claim about a changed line is new."""
    thread(page).resolved_by = "wanda"
    await again(page)
    page.push({**MORE, SEARCH: PLANTED.replace(b"select", b"delete from")})
    await page.review(action="synchronize")
    assert [row[:2] for row in await statuses(page)] == [
        ("F1", FindingStatus.ACKNOWLEDGED),
        ("F2", FindingStatus.OPEN),
    ]


async def test_what_has_become_worse_is_raised_again(page: Story) -> None:
    """A warning was accepted, not a critical."""
    thread(page).resolved_by = "wanda"
    page.model.answers = {AgentName.GENERAL: [findings(finding(severity="critical"))]}
    await again(page)
    assert (await statuses(page))[0][1] is FindingStatus.OPEN


@pytest.mark.parametrize(
    ("author", "body", "claim", "status"),
    [
        pytest.param(WRITER, "Won't fix.", "open", FindingStatus.ACKNOWLEDGED, id="writer-decides"),
        pytest.param(READER, "Won't fix.", "open", FindingStatus.OPEN, id="reader-decides"),
        pytest.param(
            READER, "Won't fix.", "acknowledged", FindingStatus.OPEN, id="reader-convinces-a-model"
        ),
        pytest.param(WRITER, "It is only a demo.", "open", FindingStatus.OPEN, id="argument"),
        pytest.param(
            WRITER,
            "We keep it this way on purpose.",
            "acknowledged",
            FindingStatus.ACKNOWLEDGED,
            id="argument-taken",
        ),
    ],
)
async def test_answers(
    page: Story, author: object, body: str, claim: str, status: FindingStatus
) -> None:
    """A decision needs somebody who may write; an argument needs the judge too."""
    page.world.reply(thread(page), author, body)  # type: ignore[arg-type]
    page.model.carried = {"F1": claim}
    await again(page)
    assert (await statuses(page))[0][1] is status


async def test_a_model_alone_settles_nothing(page: Story) -> None:
    """Nobody answered, whatever the coordinator says."""
    page.model.carried = {"F1": "acknowledged"}
    await again(page)
    assert await statuses(page) == [("F1", FindingStatus.OPEN, None)]


async def test_models_are_told_who_may_write(page: Story) -> None:
    """Each answer comes with what its author may do."""
    page.world.reply(thread(page), WRITER, "On purpose.")
    page.world.reply(thread(page), READER, "Really?")
    await again(page)
    [prompt] = [task.prompt for task in page.model.tasks[2:] if task.agent is AgentName.COORDINATOR]
    assert '<reply author="wanda" role="write">On purpose.</reply>' in prompt
    assert '<reply author="ron" role="read">Really?</reply>' in prompt


async def test_behind_a_gate_nobody_waives_an_own_critical(story: Story) -> None:
    """Its author resolves the thread: the finding goes on blocking."""
    story.world.permissions[PERSON.login] = Permission.WRITE
    story.policy("human_prs: gate\n")
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    story.open_pull(HEAD)
    await story.review()
    thread(story).resolved_by = PERSON.login
    await again(story)
    assert (await statuses(story))[0][1] is FindingStatus.OPEN
    assert story.check.title.startswith("Significant concerns")


async def test_on_a_fix_it_is_dismissed(story: Story) -> None:
    """Only a dismissal lifts what blocks a fix, and then nothing blocks any more."""
    story.world.permissions["wanda"] = Permission.WRITE
    await open_fix(story, Severity.WARNING, tree=HEAD)
    new = findings(finding(title="A new hole", path="app/fix.py", line=1))
    story.model.answers = {AgentName.GENERAL: [new], AgentName.CODE_QUALITY: [new]}
    story.push({**HEAD, "app/fix.py": b"eval(q)\n"})
    await story.review()
    found = [row for row in await story.findings() if row.title == "A new hole"]
    assert [row.status for row in found] == [FindingStatus.OPEN]
    thread(story).resolved_by = "wanda"
    story.push({**HEAD, "app/fix.py": b"eval(q)\n\n"})
    await story.review(action="synchronize")
    found = [row for row in await story.findings() if row.title == "A new hole"]
    assert [(row.status, row.status_by_login) for row in found] == [
        (FindingStatus.DISMISSED, "wanda")
    ]
    assert found[0].id not in (await story.last_run()).blocking


async def test_a_dismissal_is_remembered_in_the_repository(story: Story) -> None:
    """Another pull request with the same code is not told the same again."""
    story.model.answers = {AgentName.GENERAL: [FOUND]}
    story.open_pull(HEAD)
    await story.review()
    async with story.store.write() as session:
        (row,) = await story.findings()
        row.status = FindingStatus.DISMISSED
        session.add(await session.merge(row))
    story.open_pull(HEAD, number=8)
    await story.review()
    assert await story.findings() == []
    assert story.check.title == "Approved: no findings"
