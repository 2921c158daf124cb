"""What a review may cost: an estimate before it begins, and an end when a cap is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentFailure,
    AgentResult,
    AgentTask,
    EventSink,
    FinishReason,
    ModelCallFinished,
    Runtime,
    ignore_events,
)
from app.control.routing import Routing
from app.domain.policy import Policy, SpendCaps
from app.domain.runs import AgentName, Usage
from app.domain.spend import Period, Standing
from app.jobs.context import JobContext
from app.review.brief import models_of
from app.review.budget import FIXED_TOKENS, tokens_of
from app.review.plan import ReviewPlan
from app.store.spend import Cap, Held, hold
from app.store.tables import Repository, ReviewRun
from app.telemetry.cost import Price, Tokens

READS = 2
"""How often over an agent takes in its patches: once as they are, once as source around them."""
TURNS = 4
"""How often what an agent has read is sent again as it goes on; then it comes from the cache."""
OUTPUT_TOKENS = 16_000
"""Of one session, as its limit has it."""


@dataclass(frozen=True, slots=True)
class SpendRules:
    """What caps hold: the policy's for the repository, the operator's for the installation."""

    price: Price
    installation: SpendCaps = field(default_factory=SpendCaps)


def caps_of(policy: SpendCaps, installation: SpendCaps) -> tuple[Cap, ...]:
    """Every cap that is set."""
    wanted = (
        (False, Period.DAY, policy.day_usd),
        (False, Period.MONTH, policy.month_usd),
        (True, Period.DAY, installation.day_usd),
        (True, Period.MONTH, installation.month_usd),
    )
    return tuple(
        Cap(whole, period, Decimal(str(dollars)))
        for whole, period, dollars in wanted
        if dollars is not None
    )


def cheaper(routing: Routing) -> Routing:
    """The same table one step down: who ran on the top chain runs on the standard one, and who ran
    on that on the light one. What an agent was pinned to at run time stays."""
    chains = dict(routing.chains)
    standard = chains.get("standard", chains.get("top"))
    light = chains.get("light", standard)
    if standard is None or light is None:
        return routing
    return replace(routing, chains={**chains, "top": standard, "standard": light})


def estimate(plan: ReviewPlan, policy: Policy, routing: Routing, price: Price) -> Decimal:
    """What the review costs at most if agents read as they are meant to, in dollars.

    It is no bound: sessions are bounded by counts, whose product no purse would ever hold. What
    goes beyond it is stopped while it happens (`Spending`). An unknown price counts as nothing.
    """
    patches = sum(map(tokens_of, plan.files))
    total = Decimal(0)
    for agent in (AgentName.COORDINATOR, *plan.reviewers):
        read = 0 if agent == AgentName.COORDINATOR else patches * READS
        taken = FIXED_TOKENS + read
        tokens = Tokens(FIXED_TOKENS, taken * TURNS, read, OUTPUT_TOKENS)
        ref = models_of(agent, plan.tier, policy, routing)[0]
        total += price(tokens, provider=ref.provider, model=ref.name) or Decimal(0)
    return total


async def hold_for(
    job: JobContext,
    run_id: int,
    plan: ReviewPlan,
    policy: Policy,
    routing: Routing,
    rules: SpendRules,
) -> Held:
    """Hold the run's estimate, once: a later try of the job gets the same answer, and of what was
    left what earlier tries did not use."""
    caps = caps_of(policy.spend, rules.installation)
    if not caps:
        return Held()
    if job.has("spend"):
        said = job.recorded("spend")
        async with job.store.read() as session:
            used = (await session.get_one(ReviewRun, run_id)).cost_usd or Decimal(0)
        left = max(Decimal(0), Decimal(said["left"]) - used)
        return Held(Standing(said["standing"]), None, tuple(said["notes"]), left)
    costs = (
        estimate(plan, policy, routing, rules.price),
        estimate(plan, policy, cheaper(routing), rules.price),
    )
    now = job.clock.now()
    async with job.store.write() as session:
        run = await session.get_one(ReviewRun, run_id, with_for_update=True)
        repository = await session.get_one(Repository, int(job.claim.repository_id or 0))
        held = await hold(session, run, repository, caps, costs, now=now)
        notes = [*held.notices, *_words(held)]
        kept = {"standing": held.standing.value, "notes": notes, "left": str(held.left)}
        await job.record_in(session, "spend", kept)
    return replace(held, notices=tuple(notes))


def _words(held: Held) -> tuple[str, ...]:
    if held.standing is Standing.CHEAPER and held.cap is not None:
        return (f"Little is left of {held.cap.words}: this review ran on cheaper models.",)
    return ()


def spent_text(held: Held) -> str:
    """What the check says of a review that would cost more than is left."""
    what = held.cap.words if held.cap is not None else "the spend cap"
    return (
        f"Not enough is left of {what}, so this head was not reviewed. It is reviewed when the "
        "period is over and somebody asks for it, or when the cap is raised. "
    ) + " ".join(held.notices)


@dataclass(slots=True)
class Spending:
    """What is left while a run goes on. `left` None: no cap holds."""

    left: Decimal | None
    used: Decimal = Decimal(0)

    @property
    def is_over(self) -> bool:
        return self.left is not None and self.used >= self.left

    def watching(self, sink: EventSink) -> EventSink:
        """The sink, with every call's cost counted first."""

        async def on_event(event: AgentEvent) -> None:
            if isinstance(event, ModelCallFinished):
                self.used += event.usage.cost_usd or Decimal(0)
            await sink(event)

        return on_event


@dataclass(frozen=True, slots=True)
class CappedRuntime:
    """Implements `app.agents.port.Runtime`: when a cap is reached, no further reviewer begins. The
    coordinator still judges what there is, so that it is not lost."""

    runtime: Runtime
    is_over: Callable[[], bool]

    async def run(self, task: AgentTask, on_event: EventSink = ignore_events) -> AgentResult:
        if task.agent != AgentName.COORDINATOR and self.is_over():
            failure = AgentFailure(AgentErrorKind.LIMIT, "the spend cap is reached")
            return AgentResult("", Usage(), FinishReason.ERROR, failure)
        return await self.runtime.run(task, on_event)
