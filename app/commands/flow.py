"""A person commands something in a comment: done or refused, and answered once."""

from __future__ import annotations

from app.commands.gather import gather
from app.commands.grammar import parse
from app.commands.record import note_machine, store_answers
from app.commands.services import CommandServices
from app.domain.effects import Comment, React, Reaction
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
            if not asked.by_human:
                await note_machine(job, asked)
                return
            if asked.policy.mode is Mode.SHADOW or await _was_answered(forge, target, marker):
                return
            await apply(forge, target, (React(asked.comment_id, Reaction.EYES),))
            await store_answers(job, asked)
        said = Comment(marker, str(job.recorded("answered")["body"]))
        await apply(forge, target, (said,), maybe_published=job.attempt > 1)


async def _was_answered(forge: Forge, target: Target, marker: Marker) -> bool:
    """Whether an earlier job answered this very comment: its commands were carried out then."""
    comments = await forge.issue_comments(target.repo, target.pull)
    return any(marker in comment.markers for comment in comments)
