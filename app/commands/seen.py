"""The sign that a comment was read, given before anything that may take long."""

from __future__ import annotations

from app.commands.gather import Place, Where, answers, last_policy
from app.commands.services import CommandServices
from app.domain.effects import React, Reaction
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext


class Sign:
    """The reaction to one comment, given once by each try of its job; giving it again is fine."""

    def __init__(self, forge: Forge, place: Place) -> None:
        self._forge = forge
        self._place = place
        self._given = False

    async def give_early(self, job: JobContext, services: CommandServices) -> None:
        """React at once, if the policy as we saw it last lets us: the present one has to be
        fetched, which may take longer than a person waits for a sign."""
        policy = await last_policy(job, services, self._place)
        if policy is not None and answers(job, services, policy):
            await self.give()

    async def give(self) -> None:
        """React. A review takes no reactions."""
        if self._given or self._place.where is Where.REVIEW:
            return
        inline = self._place.where is Where.THREAD
        seen = React(self._place.comment_id, Reaction.EYES, inline=inline)
        await apply(self._forge, Target(self._place.repo, self._place.number), (seen,))
        self._given = True
