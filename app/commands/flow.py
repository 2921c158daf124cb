"""A person commands something in a comment: done or refused, and answered once."""

from __future__ import annotations

from app.commands.gather import Place, gather
from app.commands.glass import break_glass
from app.commands.grammar import BreakGlass, parse
from app.commands.record import note_machine, note_said, store_answers
from app.commands.seen import seen
from app.commands.services import CommandServices
from app.domain.effects import ResolveThread
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
    place = Place.of(job, await repo_of(job))
    target = Target(place.repo, place.number)
    marker = Marker(MarkerKind.COMMENT, place.marker_id)
    async with services.open_forge() as forge:
        if isinstance(commands[0], BreakGlass):
            await break_glass(job, services, forge, place, commands[0])
            return
        if not job.has("answered"):
            asked = await gather(job, services, forge, place, commands)
            if not asked.person.by_human:
                await note_machine(job, asked)
                return
            if asked.policy.mode is Mode.SHADOW:
                return
            await apply(forge, target, seen(place))
            await store_answers(job, asked, marker)
        await _settle_threads(job, forge, target)
        await _say(job, forge, target, marker)


async def _settle_threads(job: JobContext, forge: Forge, target: Target) -> None:
    """Threads of findings that were dismissed are resolved: nobody is to answer there any more."""
    begun_by = frozenset(job.recorded("answered")["threads"])
    if not begun_by or job.has("resolved"):
        return
    threads = (await forge.discussion(target.repo, target.pull)).threads
    effects = tuple(
        ResolveThread(thread.node_id)
        for thread in threads
        if thread.ours and not thread.resolved and thread.comments[0].id in begun_by
    )
    await apply(forge, target, effects)
    await job.record("resolved")


async def _say(job: JobContext, forge: Forge, target: Target, marker: Marker) -> None:
    """What was stored with the answers is said, also by a later try."""
    answered = job.recorded("answered")
    if answered["body"] is None:
        return
    receipt = await forge.ensure_comment(target.repo, target.pull, marker, answered["body"])
    await note_said(job, int(answered["publication"]), receipt)
