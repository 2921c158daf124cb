"""Who is a machine (app/domain/bots.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.bots import Authorship, BotSignal, bot_signal
from app.domain.pull_request import Account, AccountKind

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
