"""Telemetry never holds anything up (app/telemetry/tracker.py)."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest

from app.telemetry.tracker import MOST_PENDING, Tracker

URL = "https://collector.test/events"


class Collector:
    """Keeps what arrives; waits while `gate` is closed."""

    def __init__(self, status: int = 202, *, is_open: bool = True) -> None:
        self.events: list[dict[str, object]] = []
        self.requests: list[httpx.Request] = []
        self.gate = asyncio.Event()
        self.status = status
        if is_open:
            self.gate.set()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        await self.gate.wait()
        if self.status < 300:
            self.events += [json.loads(line) for line in request.content.splitlines()]
        return httpx.Response(self.status)

    def tracker(self, timeout_s: float = 2.0) -> Tracker:
        transport = httpx.MockTransport(self)
        return Tracker(URL, "a-token", timeout_s=timeout_s, transport=transport)


async def test_events_arrive_in_order_and_what_is_left_at_the_end() -> None:
    """As JSON Lines, with the token; what gathered meanwhile goes in one request."""
    collector = Collector()
    tracker = collector.tracker()
    for n in range(20):
        tracker.track({"n": n})
    await tracker.aclose()
    assert [event["n"] for event in collector.events] == list(range(20))
    assert len(collector.requests) == 1
    assert collector.requests[0].headers["authorization"] == "Bearer a-token"
    assert (tracker.sent, tracker.dropped) == (20, 0)
    assert "a-token" not in repr(tracker)


async def test_a_collector_that_hangs_costs_nothing_but_events() -> None:
    """Tracking never waits; at most 50 events are on their way, the newest beyond are dropped; the
    end takes no longer than its timeout."""
    collector = Collector(is_open=False)
    tracker = collector.tracker(timeout_s=0.2)
    tracker.track({"n": -1})
    await asyncio.sleep(0.01)
    begin = time.perf_counter()
    for n in range(200):
        tracker.track({"n": n})
    assert time.perf_counter() - begin < 0.05
    assert tracker.dropped == 200 - (MOST_PENDING - 1)
    begin = time.perf_counter()
    await tracker.aclose()
    assert time.perf_counter() - begin < 1
    assert (tracker.sent, tracker.dropped) == (0, 201)


@pytest.mark.parametrize("status", [500, 404])
async def test_a_refusal_is_counted_and_not_repeated(status: int) -> None:
    """What the collector does not want is gone; later events are tried again."""
    collector = Collector(status)
    tracker = collector.tracker()
    tracker.track({"n": 1})
    await asyncio.sleep(0.02)
    collector.status = 202
    tracker.track({"n": 2})
    await tracker.aclose()
    assert [event["n"] for event in collector.events] == [2]
    assert (tracker.sent, tracker.dropped) == (1, 1)


async def test_nothing_is_taken_after_the_end() -> None:
    """A late event starts nothing new."""
    collector = Collector()
    tracker = collector.tracker()
    await tracker.aclose()
    tracker.track({"n": 1})
    await asyncio.sleep(0.01)
    assert collector.requests == []
    assert tracker.dropped == 1
