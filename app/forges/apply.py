"""The one interpreter of effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import assert_never

from app.domain.effects import (
    AddLabel,
    Comment,
    CommentReceipt,
    DismissalReceipt,
    DismissReview,
    Done,
    EditReview,
    Effect,
    OpenPullRequest,
    PublishReview,
    React,
    Receipt,
    RemoveLabel,
    ReplyToThread,
    Resolution,
    ResolveThread,
    SetCheckRun,
    SetStickyComment,
    ThreadReceipt,
)
from app.domain.pull_request import RepoRef
from app.forges.port import Forge

OnReceipt = Callable[[Effect, Receipt], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Target:
    """What effects are applied to. `number` is None where no pull request is meant."""

    repo: RepoRef
    number: int | None = None

    @property
    def pull(self) -> int:
        """The pull request's number; ValueError for effects that need one and have none."""
        if self.number is None:
            raise ValueError("this effect needs a pull request")
        return self.number


async def apply(
    forge: Forge,
    target: Target,
    effects: Sequence[Effect],
    *,
    maybe_published: bool = True,
    on_receipt: OnReceipt | None = None,
) -> tuple[Receipt, ...]:
    """Apply `effects` in order; one receipt each.

    The first `ForgeError` stops it: what came before holds, and the whole may be applied again.
    `maybe_published` is False only where it is known that none of them was ever tried.
    `on_receipt` is awaited after each effect, so that a crash forgets as little as possible.
    """
    receipts: list[Receipt] = []
    resolved: Mapping[str, Resolution] = {}
    for at, effect in enumerate(effects):
        if isinstance(effect, ResolveThread) and effect.node_id not in resolved:
            # Those that follow at once are one request.
            together = takewhile(lambda one: isinstance(one, ResolveThread), effects[at:])
            nodes = [one.node_id for one in together if isinstance(one, ResolveThread)]
            resolved = await forge.resolve_threads(target.repo, nodes)
        receipt = await _apply_one(forge, target, effect, maybe_published, resolved)
        receipts.append(receipt)
        if on_receipt is not None:
            await on_receipt(effect, receipt)
    return tuple(receipts)


async def _apply_one(
    forge: Forge, target: Target, effect: Effect, maybe: bool, resolved: Mapping[str, Resolution]
) -> Receipt:
    repo = target.repo
    match effect:
        case SetCheckRun():
            return await forge.ensure_check_run(repo, effect, maybe_published=maybe)
        case OpenPullRequest():
            return await forge.ensure_pull_request(repo, effect, maybe_published=maybe)
        case React():
            await forge.react(repo, effect.comment_id, effect.reaction, inline=effect.inline)
            return Done()
        case PublishReview():
            return await forge.ensure_review(repo, target.pull, effect, maybe_published=maybe)
        case SetStickyComment() | Comment() | ReplyToThread():
            return await _say(forge, target, effect, maybe)
        case ResolveThread():
            return await _closed(forge, target, effect, maybe, resolved[effect.node_id])
        case AddLabel() | RemoveLabel() | DismissReview() | EditReview():
            return await _change(forge, target, effect)
        case _:
            assert_never(effect)


async def _say(
    forge: Forge, target: Target, effect: SetStickyComment | Comment | ReplyToThread, maybe: bool
) -> CommentReceipt:
    repo, number = target.repo, target.pull
    match effect:
        case ReplyToThread():
            return await forge.ensure_reply(repo, number, effect, maybe_published=maybe)
        case Comment(marker, body):
            return await forge.ensure_comment(repo, number, marker, body, maybe_published=maybe)
        case SetStickyComment(marker, body, comment_id):
            return await forge.ensure_comment(
                repo, number, marker, body, comment_id=comment_id, maybe_published=maybe
            )
        case _:
            assert_never(effect)


async def _closed(
    forge: Forge, target: Target, effect: ResolveThread, maybe: bool, resolution: Resolution
) -> ThreadReceipt:
    if resolution is not Resolution.NOT_GRANTED or effect.otherwise is None:
        return ThreadReceipt(resolution)
    return ThreadReceipt(resolution, await _say(forge, target, effect.otherwise, maybe))


async def _change(
    forge: Forge, target: Target, effect: AddLabel | RemoveLabel | DismissReview | EditReview
) -> Receipt:
    repo, number = target.repo, target.pull
    match effect:
        case AddLabel(name):
            await forge.ensure_label(repo, number, name)
        case RemoveLabel(name):
            await forge.remove_label(repo, number, name)
        case EditReview():
            await forge.edit_review(repo, number, effect)
        case DismissReview(review_id, message):
            outcome = await forge.dismiss_review(repo, number, review_id, message)
            return DismissalReceipt(outcome)
        case _:
            assert_never(effect)
    return Done()
