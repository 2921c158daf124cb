"""Which plugins a process has (app/plugins/discovery.py, configured.py)."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from app.errors import ConfigurationError, PluginError
from app.plugins.configured import plugins_of
from app.plugins.discovery import GROUP
from app.plugins.port import ReviewPlugin
from app.settings import Settings, load_settings

KEY = {"anthropic_api_key": "a" * 20, "openai_api_key": None, "model_base_url": None}
NOTHING = {**KEY, "anthropic_api_key": None}


class Good(ReviewPlugin):
    name = "good"


class Other(ReviewPlugin):
    name = "other-name"


def broken() -> ReviewPlugin:
    raise OSError("no such file")


def entry(name: str, what: str) -> EntryPoint:
    return EntryPoint(name, f"tests.plugins.test_discovery:{what}", GROUP)


def names(given: dict[str, Any], *entries: EntryPoint) -> list[str]:
    settings: Settings = load_settings(**given)
    return [plugin.name for plugin in plugins_of(settings, entries).plugins]


def test_others_come_after_the_built_in_ones() -> None:
    """So that what they give is laid over what ships."""
    ours = names(KEY)
    assert names(KEY, entry("good", "Good")) == [*ours, "good"]
    assert {"github", "local", "models"} <= set(ours)


def test_what_is_off_is_not_even_loaded() -> None:
    """A broken package can be left out by its name."""
    off = {**KEY, "plugins_off": "local, bad"}
    assert names(off, entry("bad", "Nowhere")) == [n for n in names(KEY) if n != "local"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        pytest.param(entry("bad", "Nowhere"), "bad .* cannot be loaded: AttributeError", id="gone"),
        pytest.param(
            entry("bad", "broken"), "bad .* cannot be loaded: OSError: no such file", id="fails"
        ),
        pytest.param(entry("bad", "entry"), "bad .* cannot be loaded: TypeError", id="arguments"),
        pytest.param(entry("bad", "dict"), "bad .* cannot be loaded", id="no-such-thing"),
        pytest.param(EntryPoint("bad", "builtins:dict", GROUP), "no ReviewPlugin", id="no-plugin"),
        pytest.param(entry("bad", "Other"), "calls itself 'other-name'", id="another-name"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named(bad: EntryPoint, words: str) -> None:
    """The process does not start without what the operator installed."""
    with pytest.raises(PluginError, match=words):
        names(KEY, bad)


def test_an_unknown_name_is_an_error() -> None:
    """A typing mistake would leave on what was meant to be off."""
    with pytest.raises(PluginError, match="names locl, but there is no such plugin; there are: "):
        names({**KEY, "plugins_off": "locl"})


def test_without_any_model_the_remedy_is_named() -> None:
    """Unless a plugin is there that may bring a provider."""
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        names(NOTHING)
    assert "good" in names(NOTHING, entry("good", "Good"))
