"""The four stories. Each acts as people would, waits until all is quiet, and checks the ending."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from app.cli.demo.report import StoryReport
from app.cli.demo.stage import AUTHOR, FIXER, MAINTAINER, REPOSITORY, REVIEWER, Stage
from app.domain.tasks import FixTaskState
from app.sandbox.github import PullView, ReviewView
from app.sandbox.model import load_story_files
from loop_guards import FindingStatus

SEARCH = "app/api/notes/search.py"
BOT = "scribe[bot]"
CAP = 5
"""`max_review_iterations` as shipped; the demo's repository has no policy of its own."""

Story = Callable[[Stage], Awaitable[StoryReport]]


async def fix_what_was_merged(stage: Stage) -> StoryReport:
    """A person's pull request is reviewed, merged, fixed by the bot, re-reviewed and done."""
    report = _begin(stage, 1, "Three findings, one fix")
    number = await _found_once(stage, report)
    fix = await _handed_off_once(stage, report, number)
    if fix is None:
        stage.check(report, "The fixer opens a pull request", False, "none")
    else:
        await _fixed_for_good(stage, report, number, fix)
    return await _end(stage, report, number)


async def _found_once(stage: Stage, report: StoryReport) -> int:
    """The pull request is reviewed, once. Returns its number."""
    status = await stage.send_forged_webhook()
    stage.check(report, "A forged webhook is refused", status == 401, status)

    # GitHub loses the answer to the review it has just published; nothing may appear twice.
    stage.github.faults.fail_call("POST", r"/pulls/\d+/reviews$", 502, after=True)
    number = await _propose(stage, "story1", "note-search", "Search notes", AUTHOR)
    await stage.settle()
    findings = await stage.findings_of(number)
    stage.check(report, "The review finds three defects", len(findings) == 3, len(findings))
    published = _reviews(stage.pull(number))
    stage.check(
        report,
        "It is published once, although GitHub's answer was lost",
        len(published) == 1,
        len(published),
    )
    stage.check(
        report, "Nothing is handed to a fixer before the merge", not await stage.tasks_of(number)
    )
    return number


async def _handed_off_once(stage: Stage, report: StoryReport, number: int) -> PullView | None:
    """It is merged, and GitHub says so twice. Returns the fix pull request."""
    stage.github.faults.double_webhook("pull_request", "closed")
    await stage.github.merge(REPOSITORY, number, actor=MAINTAINER)
    stage.voice.say(f"{MAINTAINER} merges #{number}", stage.pull(number).url)
    await stage.settle()
    tasks = await stage.tasks_of(number)
    held = [row.fix_task_id for row in await stage.findings_of(number)]
    stage.check(
        report,
        "One fix task holds all three findings, though the merge came twice",
        len(tasks) == 1 and tasks[0].paths == [SEARCH] and held == [tasks[0].id] * 3,
        f"{len(tasks)} tasks, findings in {held}",
    )
    return _fix_pull(stage, number)


async def _fixed_for_good(stage: Stage, report: StoryReport, number: int, fix: PullView) -> None:
    """The fix is judged by what was handed over, merged, and that is the end."""
    stage.voice.say(f"The fixer opened #{fix.number}", fix.url)
    stage.check(
        report,
        "The fix is proposed by the fixer's own account",
        fix.author == f"{FIXER}[bot]",
        fix.author,
    )
    carried = await stage.findings_of(fix.number)
    gone = [row.status for row in carried if row.source_finding_id is not None]
    stage.check(
        report,
        "The re-review sees all three carried findings gone",
        gone == [FindingStatus.FIXED] * 3,
        gone,
    )
    states = [review.state for review in _reviews(fix)]
    stage.check(report, "and approves", states == ["APPROVED"], states)

    await stage.github.merge(REPOSITORY, fix.number, actor=MAINTAINER)
    stage.voice.say(f"{MAINTAINER} merges #{fix.number}", fix.url)
    await stage.settle()
    tasks = await stage.tasks_of(number)
    stage.check(
        report,
        "The task is merged, and nothing follows from it",
        [task.state for task in tasks] == [FixTaskState.MERGED]
        and not await stage.tasks_of(fix.number),
    )


async def never_agree(stage: Stage) -> StoryReport:
    """Fixer and reviewer never agree: a human is asked at the cap, and everything stops."""
    report = _begin(stage, 2, "A fix that never converges")
    number = await _propose(stage, "story2", "csv-export", "Export invoices", AUTHOR)
    await stage.settle()
    await stage.github.merge(REPOSITORY, number, actor=MAINTAINER)
    stage.voice.say(f"{MAINTAINER} merges #{number}")
    await stage.settle()
    tasks = await stage.tasks_of(number)
    fix = _fix_pull(stage, number)
    if fix is None or len(tasks) != 1:
        stage.check(report, "One fix task has one fix pull request", False, len(tasks))
        return await _end(stage, report, number)
    stage.voice.say(f"The fixer opened #{fix.number}", fix.url)
    task = tasks[0]
    stage.check(
        report,
        f"The task is escalated after {CAP} rounds",
        task.state is FixTaskState.ESCALATED and task.rounds_started == CAP,
        f"{task.state}, {task.rounds_started} rounds",
    )
    stage.check(
        report, "because of the cap", task.escalation_reason == "cap", task.escalation_reason
    )
    said = [item.body for item in fix.comments if "**A human is needed.**" in item.body]
    complete = len(said) == 1 and "model calls" in said[0] and "$" in said[0]
    promise = "One comment says which rule, what remains, and what it cost"
    stage.check(report, promise, complete, len(said))
    stage.check(
        report,
        "The pull request carries the label for people",
        "mergeward:needs-human" in fix.labels,
        fix.labels,
    )
    states = {review.state for review in _reviews(fix)}
    stage.check(report, "It was never approved", "APPROVED" not in states, states)
    head = fix.head_sha
    await stage.settle()
    after = await stage.tasks_of(number)
    same = stage.pull(fix.number).head_sha == head and after[0].turns == task.turns
    stage.check(report, "Nothing more happens by itself", same)
    return await _end(stage, report, number)


async def closed_unmerged(stage: Stage) -> StoryReport:
    """Closed without a merge: whatever was found, nothing is fixed."""
    report = _begin(stage, 3, "Closed, not merged")
    number = await _propose(stage, "story3", "trash", "Replace archive by trash", AUTHOR)
    await stage.settle()
    found = await stage.findings_of(number)
    stage.check(report, "The review finds something", bool(found), len(found))
    await stage.github.close(REPOSITORY, number, actor=AUTHOR)
    stage.voice.say(f"{AUTHOR} closes #{number} without merging", stage.pull(number).url)
    await stage.settle()
    tasks = await stage.tasks_of(number)
    stage.check(report, "Zero fix tasks", not tasks, len(tasks))
    return await _end(stage, report, number)


async def person_queues_one(stage: Stage) -> StoryReport:
    """A bot's pull request hands nothing off by itself; a person may order one finding fixed."""
    report = _begin(stage, 4, "A person queues one finding of a bot")
    number = await _propose(stage, "story4", "scribe/share-links", "Share notes", BOT)
    await stage.settle()
    findings = await stage.findings_of(number)
    stage.check(report, "The review finds two defects", len(findings) == 2, len(findings))
    if not findings:
        return await _end(stage, report, number)
    wanted = findings[0]
    stage.github.comment(REPOSITORY, number, f"/mergeward fix {wanted.short_id}", actor=MAINTAINER)
    stage.voice.say(f"{MAINTAINER} orders {wanted.short_id}", stage.pull(number).url)
    await stage.settle()
    replies = [
        item
        for item in stage.pull(number).comments
        if wanted.short_id in item.body
        and item.author == f"{REVIEWER}[bot]"
        and "status:" not in item.body
    ]
    stage.check(report, "The order is answered", len(replies) == 1, len(replies))
    await stage.github.merge(REPOSITORY, number, actor=MAINTAINER)
    await stage.settle()
    tasks = await stage.tasks_of(number)
    stage.check(report, "Exactly one task", len(tasks) == 1, len(tasks))
    covered = [row.short_id for row in await stage.findings_of(number) if row.fix_task_id]
    stage.check(
        report, "and it holds the ordered finding alone", covered == [wanted.short_id], covered
    )
    fix = _fix_pull(stage, number)
    if fix is not None:
        stage.voice.say(f"The fixer opened #{fix.number}", fix.url)
        await stage.github.merge(REPOSITORY, fix.number, actor=MAINTAINER)
        await stage.settle()
    tasks = await stage.tasks_of(number)
    stage.check(
        report,
        "The fix is approved and merged",
        [task.state for task in tasks] == [FixTaskState.MERGED],
        [task.state.value for task in tasks],
    )
    return await _end(stage, report, number)


STORIES: dict[int, Story] = {
    1: fix_what_was_merged,
    2: never_agree,
    3: closed_unmerged,
    4: person_queues_one,
}


def _begin(stage: Stage, number: int, title: str) -> StoryReport:
    stage.voice.story(number, title)
    return StoryReport(number, title)


async def _propose(stage: Stage, story: str, branch: str, title: str, author: str) -> int:
    files = load_story_files(story)
    await stage.github.push(REPOSITORY, branch, files, author=author, message=title)
    pull = await stage.github.open_pull_request(
        REPOSITORY, author=author, head=branch, title=title, body=f"{title}."
    )
    stage.voice.say(f"{author} opens #{pull.number}: {title}", stage.pull(pull.number).url)
    return pull.number


def _reviews(pull: PullView) -> list[ReviewView]:
    return [review for review in pull.reviews if review.author == f"{REVIEWER}[bot]"]


def _fix_pull(stage: Stage, number: int) -> PullView | None:
    """The newest pull request after `number` that the fixer opened."""
    for candidate in range(stage.newest_pull(), number, -1):
        pull = stage.pull(candidate)
        if pull.head_ref.startswith("mergeward/fix/"):
            return pull
    return None


_ENDINGS = {
    FixTaskState.MERGED: "the fix was approved and merged",
    FixTaskState.ESCALATED: "escalated",
}


async def _end(stage: Stage, report: StoryReport, number: int) -> StoryReport:
    await stage.fill(report, number)
    tasks = await stage.tasks_of(number)
    state = stage.pull(number).state
    if not tasks:
        report.stopped_by = f"{state}: nothing was handed off"
    else:
        task = tasks[0]
        why = task.escalation_reason or ""
        report.stopped_by = (
            f"{_ENDINGS.get(task.state, task.state.value)}{f': {why}' if why else ''}"
        )
    return report
