"""A scenario that cannot be used says which file and which key is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.sandbox.model import ScenarioError, load_scenario, parse_scenario, shipped_scenarios
from app.sandbox.model.scenario import MODELS, normal_title
from tests.sandbox.model.builders import planted

FIX = {"finding": "rm", "find": "a", "replace": "b"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param({"plantd": []}, "plantd: Extra inputs", id="unknown key"),
        pytest.param({"planted": [planted(sev=1)]}, "planted[0].sev: Extra", id="unknown field"),
        pytest.param(
            {"planted": [planted(), planted(id="b", severity="high", title="b")]},
            "planted[1].severity: Input should be 'critical', 'warning' or 'suggestion'",
            id="severity",
        ),
        pytest.param(
            {"planted": [planted(agents=["securty"])]}, "planted[0].agents[0]:", id="agent"
        ),
        pytest.param({"planted": [planted(agents=[])]}, "planted[0].agents:", id="no agent"),
        pytest.param(
            {"planted": [planted(agents=["coordinator"])]}, "planted[0].agents[0]", id="no reviewer"
        ),
        pytest.param({"planted": [planted(needle="a\nb")]}, "planted[0].needle", id="two lines"),
        pytest.param({"planted": [planted(needle="  ")]}, "planted[0].needle", id="blank needle"),
        pytest.param(
            {"planted": [{k: v for k, v in planted().items() if k != "body"}]},
            "planted[0].body: Field required",
            id="missing",
        ),
        pytest.param(
            {"planted": [planted(), planted(title="b")]}, "id 'rm' is used twice", id="doubled id"
        ),
        pytest.param(
            {"planted": [planted(title="A b"), planted(id="b", title="a  B")]},
            "title 'a b' is used twice",
            id="doubled title",
        ),
        pytest.param({"fixes": [FIX]}, "fixes[0].finding: no planted id 'rm'", id="unknown id"),
        pytest.param(
            {"planted": [planted()], "fixes": [FIX | {"replace": "a"}]},
            "fixes[0]: find and replace are the same",
            id="fix that changes nothing",
        ),
        pytest.param({"faults": [{"agent": "x", "kind": "auth"}]}, "faults[0].agent", id="who"),
        pytest.param({"faults": [{"agent": "*", "kind": "odd"}]}, "faults[0].kind", id="kind"),
        pytest.param(
            {"faults": [{"agent": "*", "kind": "auth", "call": 0}]}, "faults[0].call", id="call 0"
        ),
        pytest.param(
            {"faults": [{"agent": "*", "kind": "auth", "times": 0}]}, "faults[0]: times", id="times"
        ),
        pytest.param(
            {"faults": [{"agent": "*", "kind": "auth", "retry_after": 1}]},
            "retry_after goes with kind: rate_limit",
            id="retry_after",
        ),
        pytest.param({"usage": {"input_chars_per_token": 0}}, "usage.input", id="usage"),
        pytest.param({"models": []}, "models:", id="no models"),
        pytest.param([], "must hold a mapping", id="a list"),
    ],
)
def test_a_wrong_key_is_named(data: Any, words: str) -> None:
    """The message leads to the place without a search."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, name="mine.yaml")
    assert str(caught.value).startswith("mine.yaml: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("planted: [", "not valid YAML", id="broken YAML"),
        pytest.param("models: [a]\nodd: 1\n", "odd: Extra inputs", id="unknown key"),
        pytest.param("!!python/object:os.system {}", "not valid YAML", id="a Python object"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    """The path stands at the front of the message."""
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_a_name_that_is_not_shipped_names_those_that_are() -> None:
    """A misspelt name is answered with the names there are."""
    with pytest.raises(ScenarioError, match="demo, review"):
        load_scenario("dmeo")


def test_an_empty_file_is_a_clean_scenario(tmp_path: Path) -> None:
    """Nothing planted, nothing found, all models known."""
    path = tmp_path / "empty.yaml"
    path.write_text("", encoding="utf-8")
    loaded = load_scenario(path)
    assert (loaded.planted, loaded.fixes, loaded.faults) == ((), (), ())
    assert loaded.models == MODELS


def test_the_shipped_scenarios_load() -> None:
    """What travels in the package is valid."""
    assert shipped_scenarios() == ("demo", "review")
    for name in shipped_scenarios():
        assert load_scenario(name).planted


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("  SQL\tInjection ", "sql injection"),
        ("a\u200bb", "ab"),
        ("Straße", "strasse"),
        ("a\u00a0b", "a b"),
    ],
)
def test_titles_are_compared_by_what_is_read(title: str, expected: str) -> None:
    """Spacing, case and invisible characters do not make another finding."""
    assert normal_title(title) == expected
