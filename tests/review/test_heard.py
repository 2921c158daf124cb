"""What people did in threads (app/review/heard.py)."""

from __future__ import annotations

import pytest

from app.domain.pull_request import Permission, ReviewThread, ThreadComment
from app.review.heard import MOST_ASKED, How, Word, heard, people_in, says_it_stays, words_of
from loop_guards import DismissalReason, Severity
from tests.review.factories import finding

OURS = frozenset({"mergeward[bot]"})
WRITE, READ = Permission.WRITE, Permission.READ


def comment(author: str, body: str = "Why?", *, by_bot: bool = False) -> ThreadComment:
    return ThreadComment(1, author, by_bot, body)


def thread(*answers: ThreadComment, resolved_by: str | None = None) -> ReviewThread:
    first = ThreadComment(100, "mergeward[bot]", True, "F1", ours=True)
    return ReviewThread(
        "PRRT_1", "a.py", 1, resolved_by is not None, False, resolved_by, (first, *answers)
    )


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        pytest.param("won't fix", True, id="plain"),
        pytest.param("Won’t fix: it is only a demo.", True, id="typographic"),
        pytest.param("wontfix", True, id="one-word"),
        pytest.param("**Acknowledged.** We live with it.", True, id="emphasised"),
        pytest.param("> won't fix?\n\nNo, I will fix it.", False, id="quoted"),
        pytest.param("> Search term\n\nWon't fix.", True, id="below-a-quote"),
        pytest.param("I won't fix this the way you say, but differently", False, id="in-passing"),
        pytest.param("acknowledged-by: nobody", False, id="a-longer-word"),
        pytest.param("Not acknowledged.", False, id="not"),
        pytest.param("Done in 1234abc", False, id="something-else"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_the_first_words_count(body: str, stays: bool) -> None:
    """Only what is plainly a decision is read as one by code."""
    assert says_it_stays(comment("mara", body)) is stays


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param(thread(), (), id="nobody"),
        pytest.param(thread(resolved_by="mara"), (Word("mara", How.RESOLVED),), id="resolved"),
        pytest.param(thread(resolved_by="mergeward[bot]"), (), id="resolved-by-us"),
        pytest.param(thread(resolved_by="other[bot]"), (), id="resolved-by-a-bot"),
        pytest.param(thread(comment("x[bot]", "won't fix", by_bot=True)), (), id="a-bot-answers"),
        pytest.param(
            thread(comment("mara", "won't fix"), comment("mergeward[bot]", by_bot=True)),
            (Word("mara", How.SAID),),
            id="our-answer-changes-nothing",
        ),
        pytest.param(
            thread(comment("mara", "won't fix"), comment("mara", "I was wrong, it is a bug.")),
            (Word("mara", How.ANSWERED),),
            id="the-latest-word-counts",
        ),
        pytest.param(
            thread(comment("mara", "won't fix"), comment("joe")),
            (Word("joe", How.ANSWERED), Word("mara", How.SAID)),
            id="two-people-latest-first",
        ),
        pytest.param(
            thread(comment("mara"), resolved_by="mara"), (Word("mara", How.RESOLVED),), id="both"
        ),
    ],
)
def test_what_people_did(said: ReviewThread, words: tuple[Word, ...]) -> None:
    """One act a person, the latest first; bots do not act."""
    found = words_of([finding()], [said], {"F1": 100}, OURS)
    assert found == ({"F1": words} if words else {})


def test_a_thread_of_somebody_else_is_not_ours() -> None:
    """Only threads of our findings are looked at."""
    assert words_of([finding()], [thread(resolved_by="mara")], {"F1": 7}, OURS) == {}


@pytest.mark.parametrize(
    ("words", "rights", "severity", "gated", "reason", "settles"),
    [
        pytest.param(
            (Word("mara", How.RESOLVED),), {"mara": WRITE}, "warning", False,
            DismissalReason.BY_HUMAN, (True, True), id="a-writer-resolves",
        ),
        pytest.param(
            (Word("mara", How.SAID),), {"mara": WRITE}, "critical", True,
            DismissalReason.BY_HUMAN, (True, True), id="a-writer-says-so",
        ),
        pytest.param(
            (Word("mara", How.ANSWERED),), {"mara": WRITE}, "warning", False,
            DismissalReason.BY_HUMAN, (False, True), id="an-argument-needs-the-judge",
        ),
        pytest.param(
            (Word("joe", How.SAID),), {"joe": READ}, "warning", False,
            DismissalReason.NO_WRITE_ACCESS, (False, False), id="a-reader-says-so",
        ),
        pytest.param(
            (Word("joe", How.ANSWERED), Word("mara", How.SAID)), {"joe": READ, "mara": WRITE},
            "warning", False, DismissalReason.BY_HUMAN, (True, True), id="a-reader-speaks-last",
        ),
        pytest.param(
            (Word("ann", How.RESOLVED),), {"ann": WRITE}, "critical", True,
            DismissalReason.OWN_CRITICAL, (False, False), id="own-critical-behind-a-gate",
        ),
        pytest.param(
            (Word("ann", How.RESOLVED),), {"ann": WRITE}, "critical", False,
            DismissalReason.BY_HUMAN, (True, True), id="own-critical-as-advice",
        ),
        pytest.param(
            (Word("joe", How.SAID),), {}, "warning", False,
            DismissalReason.NO_WRITE_ACCESS, (False, False), id="nobody-asked-github",
        ),
    ],
)  # fmt: skip
def test_what_settles_a_finding(
    words: tuple[Word, ...],
    rights: dict[str, Permission],
    severity: str,
    gated: bool,
    reason: DismissalReason,
    settles: tuple[bool, bool],
) -> None:
    """The guards decide on the latest act of somebody who may write; what is only an argument
    needs the coordinator as well. `ann` wrote the pull request."""
    known = [finding(severity=Severity(severity))]
    said = heard(known, {"F1": words}, rights, author="ann", gated=gated)["F1"]
    assert said.decision.reason is reason
    assert (said.settles(conceded=False), said.settles(conceded=True)) == settles


def test_few_people_are_asked_about() -> None:
    """A thread of a hundred people costs no hundred requests."""
    words = {"F1": tuple(Word(f"p{n}", How.ANSWERED) for n in range(100))}
    assert people_in(words) == tuple(f"p{n}" for n in range(MOST_ASKED))
