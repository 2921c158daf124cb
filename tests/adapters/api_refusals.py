"""Refusals of the forge, in the API's words, in the middle of a review that is being published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx

from app.domain.effects import Effect, PublishReview, SetCheckRun
from app.errors import ForgeError
from app.forges.github.errors import error_of_response
from tests.review.story import Story

_VERBS: dict[str, tuple[str, type[Effect]]] = {
    "POST reviews": ("ensure_review", PublishReview),
    "PATCH check-runs": ("ensure_check_run", SetCheckRun),
}


def error_of(answer: Mapping[str, Any], now: datetime) -> ForgeError:
    """What our client makes of an answer. GitHub wraps its words in a JSON object."""
    said = {"message": answer.get("body", "")}
    response = httpx.Response(answer["status"], headers=answer.get("headers"), json=said)
    return error_of_response(response, answer.get("request", "a request"), now)


class Refusals:
    """Each of `calls` is refused once, from the moment the review is about to be posted."""

    def __init__(self, story: Story, calls: Sequence[Mapping[str, Any]]) -> None:
        self._story, self._calls, self._begin = story, calls, 0
        story.forge.before_review = self._arm

    async def _arm(self) -> None:
        self._story.forge.before_review = None
        self._begin = len(self._story.forge.effects)
        for call in self._calls:
            error = error_of(call, self._story.clock.now())
            self._story.forge.fail_next(self._of(call)[0], error)

    def _of(self, call: Mapping[str, Any]) -> tuple[str, type[Effect]]:
        return _VERBS[call["request"].split("/")[0]]

    async def seen(self) -> dict[str, int]:
        """What was asked for after the refusals: at once, and once their time was over."""
        effects = self._story.forge.effects
        kinds = [self._of(call)[1] for call in self._calls]
        late = effects[self._begin :]
        refused = [next(item for item in late if isinstance(item, kind)) for kind in kinds]
        at_once = len(late) - 1 - max((late.index(item) for item in refused), default=0)
        await self._story.retry()
        repeated = sum(effects.count(item) - 1 for item in refused)
        return {"writes_until_wait_is_over": at_once, "same_request_repeated": repeated}
