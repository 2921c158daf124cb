"""A person commands something in a comment: done or refused, and answered once."""

from __future__ import annotations

from app.commands.gather import Place, answers, gather, last_policy
from app.commands.glass import break_glass
from app.commands.grammar import BreakGlass, parse
from app.commands.record import note_machine, note_said, store_answers
from app.commands.render import failed
from app.commands.seen import Sign
from app.commands.services import CommandServices
from app.domain.effects import ResolveThread
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Mode
from app.errors import MergewardError
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
            sign = Sign(forge, place)
            await sign.give_early(job, services)
            asked = await gather(job, services, forge, place, commands)
            if not asked.person.by_human:
                await note_machine(job, asked)
                return
            if asked.policy.mode is Mode.SHADOW:
                return
            await sign.give()
            await store_answers(job, asked, marker)
        await _settle_threads(job, forge, target)
        await say(job, forge, target, marker)


async def report_failure(job: JobContext, error: BaseException, services: CommandServices) -> None:
    """The job has failed for good: whoever commanded learns that nothing was carried out."""
    place = Place.of(job, await repo_of(job))
    policy = await last_policy(job, services, place)
    done = job.has("answered") or job.has("glass")
    if done or policy is None or not answers(job, services, policy):
        return
    why = str(error) if isinstance(error, MergewardError) else "an internal error, see the log"
    async with services.open_forge() as forge:
        marker = Marker(MarkerKind.COMMENT, place.marker_id)
        await forge.ensure_comment(place.repo, place.number, marker, failed(why))


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


async def say(job: JobContext, forge: Forge, target: Target, marker: Marker) -> None:
    """What was stored with the answers is said, also by a later try."""
    answered = job.recorded("answered")
    if answered["body"] is None:
        return
    receipt = await forge.ensure_comment(target.repo, target.pull, marker, answered["body"])
    await note_said(job, int(answered["publication"]), receipt)
