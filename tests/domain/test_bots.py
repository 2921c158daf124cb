"""Who is a machine (app/domain/bots.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.bots import Authorship, BotSignal, act_kind, bot_signal, is_human_act
from app.domain.jobs import Cause
from app.domain.pull_request import Account, AccountKind
from loop_guards import ActKind

PERSON = Authorship(author=Account(7, "mara", AccountKind.USER), head_ref="search")


@pytest.mark.parametrize(
    ("facts", "signal"),
    [
        pytest.param(PERSON, None, id="a-person"),
        pytest.param(
            replace(
                PERSON,
                author=Account(9, "mergeward-fixer[bot]", AccountKind.BOT),
                our_logins=frozenset({"mergeward-fixer[bot]"}),
            ),
            BotSignal.OUR_APP,
            id="our-fixer",
        ),
        pytest.param(
            replace(
                PERSON,
                author=Account(9, "mergeward-fixer", AccountKind.USER),
                our_logins=frozenset({"mergeward-fixer[bot]"}),
            ),
            None,
            id="a-person-of-our-name",
        ),
        pytest.param(
            replace(PERSON, added=frozenset({"Mara"})), BotSignal.POLICY, id="policy-adds"
        ),
        pytest.param(
            replace(PERSON, author=Account(9, "acme", AccountKind.BOT)),
            BotSignal.ACCOUNT_TYPE,
            id="type-bot",
        ),
        pytest.param(
            replace(PERSON, author=Account(9, "acme[bot]", AccountKind.USER)),
            BotSignal.ACCOUNT_TYPE,
            id="bot-suffix",
        ),
        pytest.param(
            replace(PERSON, author=Account(9, "Copilot", AccountKind.USER)),
            BotSignal.KNOWN_LOGIN,
            id="known-login",
        ),
        pytest.param(replace(PERSON, head_ref="codex/fix-it"), BotSignal.BRANCH, id="branch"),
        pytest.param(
            replace(PERSON, head_ref="mergeward/fix/1"), BotSignal.BRANCH, id="fix-branch"
        ),
        pytest.param(replace(PERSON, co_authors=("Claude",)), BotSignal.TRAILER, id="trailer"),
        pytest.param(
            replace(PERSON, head_ref="codex/x", exempted=frozenset({"mara"})), None, id="exempted"
        ),
        pytest.param(
            replace(
                PERSON,
                author=Account(9, "mergeward-fixer[bot]", AccountKind.BOT),
                our_logins=frozenset({"mergeward-fixer[bot]"}),
                exempted=frozenset({"mergeward-fixer"}),
            ),
            BotSignal.OUR_APP,
            id="ours-cannot-be-exempted",
        ),
    ],
)
def test_bot_signal(facts: Authorship, signal: BotSignal | None) -> None:
    """The first speaking signal decides, and it is named."""
    assert bot_signal(facts) is signal


@pytest.mark.parametrize(
    ("changes", "human"),
    [
        pytest.param({}, True, id="a person"),
        pytest.param({"through_app": 7}, False, id="through an App"),
        pytest.param({"actor": Account(5, "ci-user", AccountKind.USER)}, False, id="driven"),
        pytest.param({"actor": Account(5, "CI-User", AccountKind.USER)}, False, id="in capitals"),
        pytest.param({"actor": Account(6, "mergeward", AccountKind.USER)}, False, id="our name"),
        pytest.param({"actor": Account(6, "x", AccountKind.BOT)}, False, id="a bot"),
        pytest.param({"actor": Account(6, "x[bot]", AccountKind.USER)}, False, id="a bot's name"),
    ],
)
def test_who_acted(changes: dict[str, Any], human: bool) -> None:
    """A person's act is one for which nothing at all speaks of a machine."""
    person = Account(4, "mara", AccountKind.USER)
    cause = Cause("synchronize", person, datetime(2026, 3, 1, tzinfo=UTC), "d1")
    assert is_human_act(replace(cause, **changes), ["ci-user"], ["mergeward[bot]"]) is human


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("opened", ActKind.OPEN),
        ("synchronize", ActKind.PUSH),
        ("reopened", ActKind.REOPEN),
        ("ready_for_review", ActKind.READY),
        ("edited", ActKind.BASE_CHANGE),
        ("created", ActKind.COMMAND),
        ("rerequested", ActKind.COMMAND),
        ("labeled", ActKind.COMMENT),
        ("", ActKind.COMMENT),
    ],
)
def test_what_was_done(action: str, kind: ActKind) -> None:
    """The forge's names of acts that ask for a review; any other resets nothing."""
    assert act_kind(action) is kind
