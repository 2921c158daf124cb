"""The three steps of a run (app/plugins/lifecycle.py)."""

from __future__ import annotations

import asyncio
import gc
import types
from typing import Any

import pytest
from pydantic import SecretStr

from app.agents.runtimes.direct.providers import WireFormat
from app.domain.runs import AgentName
from app.errors import PluginError
from app.plugins.configuration import RunConfiguration
from app.plugins.context import (
    EVIDENCE_CHARS,
    BootstrapContext,
    ConfigureContext,
    RunContext,
)
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from tests.plugins.factories import FACTS, Made, base, view

SECRET = "the-other-plugin-s-secret"


async def test_bootstraps_run_at_once() -> None:
    """Each waits for the other: one after the other they would never end."""
    first, second = asyncio.Event(), asyncio.Event()

    async def one(_: BootstrapContext) -> None:
        first.set()
        await second.wait()

    async def two(_: BootstrapContext) -> None:
        await first.wait()
        second.set()

    async with asyncio.timeout(2):
        await PluginHost((base(), Made("one", None, one), Made("two", None, two))).configured(
            FACTS, no_file
        )
    assert second.is_set()


async def test_a_failed_bootstrap_is_survived_and_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither an error nor a plugin that hangs keeps the others from being configured, and what
    others prepared is theirs."""
    seen: dict[str, object] = {}

    async def fails(_: BootstrapContext) -> object:
        raise KeyError("x")

    async def hangs(_: BootstrapContext) -> object:
        await asyncio.Event().wait()
        return "never"

    async def works(_: BootstrapContext) -> object:
        return "ready"

    plugins = [
        Made(name, lambda c, name=name: seen.__setitem__(name, c.prepared), step)  # type: ignore[misc]  # a default argument binds
        for name, step in (("fails", fails), ("hangs", hangs), ("works", works))
    ]
    await PluginHost((base(), *plugins), bootstrap_s=0.05).configured(FACTS, no_file)
    assert seen == {"fails": None, "hangs": None, "works": "ready"}


async def test_configure_runs_in_order_and_a_failure_ends_the_run() -> None:
    """The plugin is named with what it said; nothing after it was asked."""
    order: list[str] = []

    def fails(_: ConfigureContext) -> None:
        order.append("b")
        raise ZeroDivisionError("by zero")

    plugins = (
        Made("a", lambda _: order.append("a")),
        Made("b", fails),
        Made("c", lambda _: order.append("c")),
    )
    with pytest.raises(PluginError, match=r"plugin b failed .* ZeroDivisionError: by zero"):
        await PluginHost((base(), *plugins)).configured(FACTS, no_file)
    assert order == ["a", "b"]


async def test_a_cancelled_run_is_cancelled() -> None:
    """Surviving a plugin's failure never swallows the end of the job."""

    async def hangs(_: BootstrapContext) -> None:
        await asyncio.Event().wait()

    running = asyncio.ensure_future(
        PluginHost((base(), Made("a", None, hangs))).configured(FACTS, no_file)
    )
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_evidence_comes_in_order_and_survives_failures() -> None:
    """What was found before a plugin failed or was too slow is kept; it names its plugin."""

    async def slow(context: RunContext) -> None:
        context.evidence("first", "a.py:1 x", agents=["security"])
        await asyncio.Event().wait()

    async def fails(context: RunContext) -> None:
        context.evidence("second", "b.py:2 y")
        raise OSError("no such program")

    plugins = (Made("slow", None, None, slow), Made("fails", None, None, fails))
    found = await PluginHost(plugins, post_configure_s=0.05).evidence(view())
    assert [(one.source, one.title, one.text) for one in found] == [
        ("slow", "first", "a.py:1 x"),
        ("fails", "second", "b.py:2 y"),
    ]
    assert found[0].agents == frozenset({AgentName.SECURITY})


async def test_evidence_is_bounded() -> None:
    """A plugin that finds something in every line can't fill the models' windows."""

    async def floods(context: RunContext) -> None:
        for _ in range(100):
            context.evidence("t", "x" * 15_000)

    found = await PluginHost((Made("floods", None, None, floods),)).evidence(view())
    assert sum(len(one.text) for one in found) <= EVIDENCE_CHARS + 100
    assert found[-1].text.endswith("[cut here]")


def test_a_name_is_unique() -> None:
    """Two plugins of one name could not be told apart in any message."""
    with pytest.raises(PluginError, match="Two plugins are called a"):
        PluginHost((Made("a"), Made("a")))


def reachable(*roots: object) -> list[object]:
    """Everything that can be got at from here: attributes, slots, items, closures, defaults and
    bound objects, by the collector's own account. Not through classes, modules and the names of a
    function's module: those lead everywhere from everywhere."""
    seen: dict[int, object] = {}
    todo = list(roots)
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.FrameType):
            continue
        seen[id(item)] = item
        if isinstance(item, types.FunctionType):
            todo += [cell.cell_contents for cell in item.__closure__ or ()]
            todo += list(item.__defaults__ or ())
        else:
            todo += gc.get_referents(item)
    return list(seen.values())


def tells(found: list[object], secret: str) -> bool:
    return any(isinstance(item, str) and secret in item for item in found)


async def test_no_plugin_sees_another_s_secrets_or_the_configuration() -> None:
    """A hostile plugin walks every object that it can reach from what it is handed, in each of its
    three steps, and finds neither. The walk itself is good enough to find what is its own."""
    reached: dict[str, list[object]] = {}

    def victim(context: ConfigureContext) -> None:
        context.provider("gw", WireFormat.OPENAI, key=SecretStr(SECRET), headers={"x": SECRET})
        context.environment("TOKEN", SecretStr(SECRET))
        context.request_header("gw", "x-token", SecretStr(SECRET))

    def hostile(context: ConfigureContext) -> None:
        context.environment("MINE", SecretStr("my-own-secret"))
        reached["configure"] = reachable(context, *_attributes(context))

    async def early(context: BootstrapContext) -> None:
        reached["bootstrap"] = reachable(context, *_attributes(context))

    async def late(context: RunContext) -> None:
        reached["post_configure"] = reachable(context, *_attributes(context))

    host = PluginHost((base(SECRET), Made("victim", victim), Made("spy", hostile, early, late)))
    made = await host.configured(FACTS, no_file)
    await host.evidence(view())
    assert set(reached) == {"bootstrap", "configure", "post_configure"}
    for step, found in reached.items():
        assert not tells(found, SECRET), step
        assert not any(isinstance(item, RunConfiguration | PluginHost) for item in found), step
    assert tells(reached["configure"], "my-own-secret")
    assert tells(reachable(made), SECRET)


def _attributes(thing: object) -> list[Any]:
    return [getattr(thing, name) for name in dir(thing) if not name.startswith("__")]
