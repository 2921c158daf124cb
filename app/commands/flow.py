"""A person commands something in a comment: done or refused, and answered once."""

from __future__ import annotations

from app.commands.gather import gather
from app.commands.grammar import parse
from app.commands.record import note_machine, note_said, store_answers
from app.commands.services import CommandServices
from app.domain.effects import React, Reaction
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Mode
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.places import repo_of


async def handle_comment(job: JobContext, services: CommandServices) -> None:
    """Carry out what the comment asks for, and answer it once."""
    commands = parse(str(job.payload["body"]))
    if not commands:
        return
    repo = await repo_of(job)
    target = Target(repo, int(job.payload["number"]))
    marker = Marker(MarkerKind.COMMENT, f"command:{int(job.payload['comment_id'])}")
    async with services.open_forge() as forge:
        if not job.has("answered"):
            asked = await gather(job, services, forge, repo, commands)
            if not asked.person.by_human:
                await note_machine(job, asked)
                return
            if asked.policy.mode is Mode.SHADOW:
                return
            await apply(forge, target, (React(asked.comment_id, Reaction.EYES),))
            await store_answers(job, asked, marker)
        await _say(job, forge, target, marker)


async def _say(job: JobContext, forge: Forge, target: Target, marker: Marker) -> None:
    """What was stored with the answers is said, also by a later try."""
    answered = job.recorded("answered")
    if answered["body"] is None:
        return
    receipt = await forge.ensure_comment(target.repo, target.pull, marker, answered["body"])
    await note_said(job, int(answered["publication"]), receipt)
