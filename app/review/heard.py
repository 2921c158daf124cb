"""What people did in the threads of our findings, and what may follow from it.

Who resolves a thread, or answers "won't fix" and may write, has decided to live with the finding.
Any other answer is an argument: the coordinator weighs it, and only an answer of somebody who may
write can settle anything. The guards say whether it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.findings import Finding
from app.domain.pull_request import Permission, ReviewThread, ThreadComment
from loop_guards import DismissalDecision, DismissalFacts, answer_dismissal

MOST_ASKED = 5
"""People whose permission one round asks for, the latest acts first: each costs a request."""

_SETTLES = re.compile(
    r"(?:won['’]?t fix|wontfix|will not fix|acknowledged)(?![\w-])", re.IGNORECASE
)
_QUOTED = re.compile(r"^\s{0,3}>")


class How(StrEnum):
    """How somebody spoke of a finding."""

    RESOLVED = "resolved"
    SAID = "said"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class Word:
    """A person's latest act in a finding's thread."""

    who: str
    how: How


@dataclass(frozen=True, slots=True)
class Heard:
    """The same with what the guards say of it: whether that settles the finding."""

    who: str
    how: How
    decision: DismissalDecision

    @property
    def is_decision(self) -> bool:
        """Whether it was one by itself, and no argument."""
        return self.how is not How.ANSWERED

    def settles(self, *, conceded: bool) -> bool:
        """Whether the finding is settled. `conceded`: the coordinator took the answer for a
        decision to live with it; a plain answer needs that too."""
        return self.decision.accepted and (self.is_decision or conceded)


def words_of(
    findings: Sequence[Finding],
    threads: Sequence[ReviewThread],
    comment_ids: Mapping[str, int],
    our_logins: frozenset[str],
) -> dict[str, tuple[Word, ...]]:
    """What people did in the thread of each finding, by short id, the latest act first and one act
    a person.

    `comment_ids` maps short ids to the first comment of the finding's thread. Nothing that a bot
    does is an act, ours least of all.
    """
    by_comment = {thread.comments[0].id: thread for thread in threads if thread.comments}
    found: dict[str, tuple[Word, ...]] = {}
    for finding in findings:
        thread = by_comment.get(comment_ids.get(finding.short_id, 0))
        words = _words(thread, our_logins) if thread is not None else ()
        if words:
            found[finding.short_id] = words
    return found


def _words(thread: ReviewThread, our_logins: frozenset[str]) -> tuple[Word, ...]:
    words: dict[str, Word] = {}
    by = thread.resolved_by
    if thread.resolved and by and by not in our_logins and not by.endswith("[bot]"):
        words[by] = Word(by, How.RESOLVED)
    for item in reversed(thread.comments[1:]):
        if not item.by_bot:
            how = How.SAID if says_it_stays(item) else How.ANSWERED
            words.setdefault(item.author, Word(item.author, how))
    return tuple(words.values())


def says_it_stays(comment: ThreadComment) -> bool:
    """Whether the first words of the comment, quotes left out, settle the finding."""
    lines = (line.strip() for line in comment.body.splitlines() if not _QUOTED.match(line))
    first = next((line for line in lines if line), "")
    return _SETTLES.match(first.lstrip("*_`\"'")) is not None


def people_in(words: Mapping[str, Sequence[Word]]) -> tuple[str, ...]:
    """Whose permission has to be known, as many as one round asks for."""
    everybody = (word.who for acts in words.values() for word in acts)
    return tuple(dict.fromkeys(everybody))[:MOST_ASKED]


def heard(
    findings: Sequence[Finding],
    words: Mapping[str, Sequence[Word]],
    rights: Mapping[str, Permission],
    *,
    author: str,
    gated: bool,
) -> dict[str, Heard]:
    """What the guards say of the latest act of somebody who may write, else of the latest at all.

    `author` wrote the pull request; whoever is not in `rights` may not write.
    """

    def may(word: Word) -> bool:
        return rights.get(word.who, Permission.NONE).can_write

    found: dict[str, Heard] = {}
    for finding in findings:
        acts = words.get(finding.short_id, ())
        word = next(filter(may, acts), next(iter(acts), None))
        if word is None:
            continue
        facts = DismissalFacts(
            by_human=True,
            can_write=may(word),
            status=finding.status,
            severity=finding.severity,
            gated=gated,
            is_author=word.who == author,
        )
        found[finding.short_id] = Heard(word.who, word.how, answer_dismissal(facts))
    return found
