"""Who wrote a pull request: a person or a machine. One pure question, asked once per pull request.

No single signal is enough: agents push as Apps, as plain users, or in a person's name. The signals
and known names come from GitHub's account types and from what the agents' makers document; policy
adds its own or exempts a login.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.domain.jobs import Cause
from app.domain.pull_request import Account, AccountKind
from loop_guards import ActKind, ActorFacts, judge_actor

KNOWN_BOTS = frozenset(
    {
        "anthropic-code-agent",
        "chatgpt-codex-connector",
        "claude",
        "coderabbitai",
        "copilot",
        "copilot-pull-request-reviewer",
        "copilot-swe-agent",
        "cursor",
        "dependabot",
        "devin-ai-integration",
        "gemini-code-assist",
        "github-actions",
        "github-advanced-security",
        "google-labs-jules",
        "greptile-apps",
        "openai-code-agent",
        "renovate",
    }
)
"""Logins of coding and review bots, lower case, without `[bot]`."""

BOT_BRANCHES = ("claude/", "codex/", "copilot/", "cursor/", "devin/", "jules")
"""Prefixes of branches that coding agents push to, whoever their commits' author seems to be."""

FIX_BRANCH_PREFIX = "mergeward/fix/"
"""Prefix of every branch the built-in fixer pushes to."""


class BotSignal(StrEnum):
    """Which fact decided that an author is a machine."""

    OUR_APP = "our_app"
    POLICY = "policy"
    ACCOUNT_TYPE = "account_type"
    KNOWN_LOGIN = "known_login"
    BRANCH = "branch"
    TRAILER = "trailer"


@dataclass(frozen=True, slots=True)
class Authorship:
    """Everything that tells a machine from a person. `co_authors` are names or logins of trailers.

    `our_logins` are the bot logins of our own Apps; `added` and `exempted` come from the policy.
    """

    author: Account
    head_ref: str
    co_authors: tuple[str, ...] = ()
    our_logins: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    exempted: frozenset[str] = frozenset()


def bot_signal(facts: Authorship) -> BotSignal | None:
    """The first signal that says "machine", or None for a person.

    A person whose login looks like our App's is no App of ours. An exempted login is a person
    whatever else speaks; our own Apps can't be exempted.
    """
    login = plain_login(facts.author.login)
    if facts.author.kind is AccountKind.BOT and login in _plain(facts.our_logins):
        return BotSignal.OUR_APP
    if login in _plain(facts.exempted):
        return None
    signals = (
        (BotSignal.POLICY, login in _plain(facts.added)),
        (BotSignal.ACCOUNT_TYPE, is_machine_account(facts.author)),
        (BotSignal.KNOWN_LOGIN, login in KNOWN_BOTS),
        (BotSignal.BRANCH, facts.head_ref.startswith((*BOT_BRANCHES, FIX_BRANCH_PREFIX))),
        (BotSignal.TRAILER, any(plain_login(name) in KNOWN_BOTS for name in facts.co_authors)),
    )
    return next((signal for signal, speaks in signals if speaks), None)


def is_machine_account(account: Account) -> bool:
    """Whether GitHub itself says that the account is not a person's."""
    return account.kind is not AccountKind.USER or account.login.casefold().endswith("[bot]")


def is_human_act(cause: Cause, machine_accounts: Iterable[str], our_logins: Iterable[str]) -> bool:
    """Whether a person acted: a User, not driven by a machine, not through an App, not us.

    What we post ourselves is known by its author here: a cause carries no id of it.
    """
    machines = {plain_login(name) for name in (*machine_accounts, *our_logins)}
    facts = ActorFacts(
        is_user=not is_machine_account(cause.actor),
        machine_account=plain_login(cause.actor.login) in machines,
        through_app=cause.through_app is not None,
    )
    return judge_actor(facts).is_human


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that was done to a pull request."""

    kind: ActKind
    by_human: bool


_ACTIONS = {
    "opened": ActKind.OPEN,
    "synchronize": ActKind.PUSH,
    "reopened": ActKind.REOPEN,
    "ready_for_review": ActKind.READY,
    "edited": ActKind.BASE_CHANGE,
    "created": ActKind.COMMAND,
    "requested_action": ActKind.COMMAND,
    "rerequested": ActKind.COMMAND,
}
"""By the forge's name of it, what an act is that asked for a review: of comments only commands do,
of checks their buttons."""


def act_kind(action: str) -> ActKind:
    """What a cause's action is to the guards. One that nobody knows changes nothing."""
    return _ACTIONS.get(action, ActKind.COMMENT)


def plain_login(login: str) -> str:
    """A login for comparison: lower case, without the `[bot]` that REST adds and GraphQL omits."""
    return login.casefold().removesuffix("[bot]")


def _plain(logins: frozenset[str]) -> frozenset[str]:
    return frozenset(plain_login(login) for login in logins)
