"""`breaker`: sessions of several workers against one service, under a clock set by hand."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

from app.agents.configured import direct_runtimes, open_breakers
from app.agents.failback import RetryPolicy
from app.agents.port import AgentTask, ModelRef
from app.agents.runtimes.direct import DirectRuntime, Surroundings
from app.domain.runs import AgentName
from app.settings import load_settings
from tests.adapters.case import Case, only_knows
from tests.adapters.service import Service
from tests.redis_server import forget, redis_url

ONCE = RetryPolicy(attempts_per_model=1, longest_wait_s=0.0, minimum_left_s=1e9)


async def check(case: Case, tmp_path: Path) -> None:
    sent_at = [f"sent_at_{step['at']}" for step in case.input["steps"]]
    only_knows(case.expect, "state_after", "state_after_first", "state_after_second", *sent_at)
    limits = case.input["settings"]
    assert limits["trial_calls"] == 1
    settings = load_settings(
        redis_url=redis_url(),
        breaker_failures=limits["failures_to_open"],
        breaker_seconds=limits["open_seconds"],
    )
    service, model = Service(), ModelRef("anthropic", f"m-{uuid4().hex}")
    told: dict[str, object] = {}
    task = AgentTask(AgentName.SECURITY, "system", "prompt", (model,))
    async with AsyncExitStack() as stack:
        workers: list[DirectRuntime] = []
        for _ in range(max(step.get("worker_processes", 1) for step in case.input["steps"])):
            breakers = await stack.enter_async_context(
                open_breakers(settings, monotonic=service.clock, shared_clock=service.clock)
            )
            around = Surroundings(monotonic=service.clock, retry=ONCE, breakers=breakers)
            runtime = direct_runtimes(around)(service.providers(), http_client=service.client)
            workers.append(await stack.enter_async_context(runtime))
        for step, place in zip(case.input["steps"], ("first", "second", *"3456789"), strict=False):
            before = service.begin(step)
            calls = [
                asyncio.create_task(workers[number % len(workers)].run(task))
                for number in range(service.at_once(step))
            ]
            for _ in range(service.in_turn(step)):
                await workers[0].run(task)
            await service.settle(step, calls)
            mode = (await breakers.state(model)).mode
            told[f"state_after_{place}"] = told["state_after"] = mode
            told[f"sent_at_{step['at']}"] = service.requests - before
    forget(model.name)
    for key, value in case.expect.items():
        assert told[key] == value, key
