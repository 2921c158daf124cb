"""The page for authors of plugins tells of everything that there is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from app.plugins.builtin.gateway import GatewayModels
from app.plugins.builtin.reviewer_config import parse_overrides
from app.plugins.codex import parse_codex
from app.plugins.configured import plugins_of
from app.plugins.context import ConfigureContext
from app.plugins.port import ReviewPlugin
from app.settings import load_settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")


def table(heading: str) -> set[str]:
    """The names in the first column of the table below a heading."""
    return set(re.findall(r"^\| `([a-z_-]+)", section(heading), re.MULTILINE))


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def example(language: str) -> str:
    found: list[str] = re.findall(
        rf"```{language}\n(.*?)```", section("The built-in ones"), re.DOTALL
    )
    return found[0]


def test_every_method_is_in_the_table() -> None:
    """And nothing that is none. `close` is ours."""
    methods = {name for name in vars(ConfigureContext) if not name.startswith("_")}
    assert table("What `configure` can give") == methods - {"close", "facts", "prepared"}


def test_every_step_is_in_the_table() -> None:
    """With the one at the end of a process told below it."""
    steps = {name for name in vars(ReviewPlugin) if not name.startswith("_")}
    assert table("Three steps") | {"close"} == steps


def test_every_built_in_plugin_is_in_the_table() -> None:
    """Those of a process with every setting, and the one that the gateway takes the place of."""
    settings = load_settings(
        gateway_url="https://gateway.test",
        reviewer_config_url="https://config.test",
        telemetry_url="https://collector.test",
        tracing=True,
    )
    names = {plugin.name for plugin in plugins_of(settings, ()).plugins}
    assert table("The built-in ones") == names | {"models"}


@pytest.mark.parametrize("language", ["toml", "json", "yaml"])
def test_the_examples_are_read(language: str) -> None:
    """By the code that reads an operator's own."""
    text = example(language)
    if language == "toml":
        assert GatewayModels.model_validate(tomllib.loads(text)).tiers
    elif language == "json":
        assert set(parse_overrides(text.encode()).reviewers) == set(json.loads(text)["reviewers"])
    else:
        assert parse_codex(text.encode()).ids == {"ENG-001"}
