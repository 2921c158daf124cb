"""The demo's files and its script agree: every defect is there once, and every fix removes it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring

from app.sandbox.model import (
    STORIES,
    Scenario,
    load_demo_repository,
    load_scenario,
    load_story_files,
)
from app.sandbox.model.scenario import Fix, Planted
from tests.sandbox.model.builders import (
    added,
    body,
    changed_files,
    named,
    numbered,
    run,
    system,
    tool,
)

DEMO = load_scenario("demo")
BASE = load_demo_repository()
IN_STORY = {
    "story1": ["search-injection", "storage-key", "search-limit"],
    "story2": ["export-f-string"],
    "story3": ["trash-silent"],
    "story4": ["share-random", "share-limit"],
}
CHAIN = [entry for entry in DEMO.planted if entry.id.startswith("export-")]
EXPORT = "app/billing/export.py"


def story(name: str) -> dict[str, str]:
    """The files a story adds or changes."""
    return {path: text for path, text in load_story_files(name).items() if text is not None}


def merged(name: str) -> dict[str, str]:
    """The repository as the story's change leaves it."""
    files: dict[str, str | None] = {**BASE, **load_story_files(name)}
    return {path: text for path, text in files.items() if text is not None}


def present(files: Mapping[str, str], entry: Planted) -> int:
    """In how many lines of its path the needle stands."""
    return sum(
        entry.needle in line
        for path, text in files.items()
        if fnmatchcase(path, entry.path)
        for line in text.split("\n")
    )


def apply(files: Mapping[str, str], fix: Fix, entry: Planted) -> dict[str, str]:
    path = fix.path or entry.path
    assert files[path].count(fix.find) == 1, f"{fix.find!r} in {path}"
    return {**files, path: files[path].replace(fix.find, fix.replace)}


def test_the_base_is_clean() -> None:
    """Whatever is found in the demo comes from a story, never from the repository before it."""
    assert [entry.id for entry in DEMO.planted if present(BASE, entry)] == []
    assert {"README.md", "AGENTS.md", "pyproject.toml", "tests/test_notes.py"} <= set(BASE)


@pytest.mark.parametrize("name", STORIES)
def test_each_defect_of_a_story_stands_on_one_line(name: str) -> None:
    """A needle names one line, so that each finding has one place; others are not there."""
    counts = {entry.id: present(merged(name), entry) for entry in DEMO.planted}
    assert {entry: count for entry, count in counts.items() if count} == dict.fromkeys(
        IN_STORY[name], 1
    )


def test_no_story_changes_what_another_does() -> None:
    """Stories can be told in any order and merged into one branch."""
    paths = [path for name in STORIES for path in load_story_files(name)]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("name", STORIES)
def test_every_file_is_what_its_name_says(name: str) -> None:
    """Python parses, TOML parses, text ends in a newline."""
    for path, text in merged(name).items():
        assert text.endswith("\n"), path
        if path.endswith(".py"):
            ast.parse(text, path)
        if path.endswith(".toml"):
            tomllib.loads(text)


@pytest.mark.parametrize("name", ["story1", "story4"])
def test_all_fixes_of_a_story_remove_all_its_needles(name: str) -> None:
    """Together, in any order, they leave valid Python in which nothing is planted."""
    entries = [entry for entry in DEMO.planted if entry.id in IN_STORY[name]]
    for order in (entries, entries[::-1]):
        files = merged(name)
        for entry in order:
            for fix in DEMO.fixes_of(entry):
                files = apply(files, fix, entry)
            assert present(files, entry) == 0
        assert not any(present(files, entry) for entry in DEMO.planted)
        for path in story(name):
            ast.parse(files[path], path)


@pytest.mark.parametrize("chosen", IN_STORY["story4"])
def test_either_finding_of_story_4_is_fixed_alone(chosen: str) -> None:
    """A human queues one of the two: the other line stays, and stays away from the change."""
    entry = next(item for item in DEMO.planted if item.id == chosen)
    (other,) = (
        item for item in DEMO.planted if item.id in IN_STORY["story4"] and item.id != chosen
    )
    files = merged("story4")
    before = files[entry.path].split("\n")
    for fix in DEMO.fixes_of(entry):
        files = apply(files, fix, entry)
    after = files[entry.path].split("\n")
    ast.parse(files[entry.path])
    assert (present(files, entry), present(files, other)) == (0, 1)
    (place,) = (index for index, line in enumerate(before) if other.needle in line)
    assert all(line in after for line in before[place - 3 : place + 4])


def test_the_injections_of_story_2_chain_without_an_end() -> None:
    """Each fix removes its own defect and brings the next: more of them than any cap of rounds."""
    assert len(CHAIN) >= 8
    assert {entry.severity for entry in CHAIN} == {"critical"}
    files = merged("story2")
    for entry, following in pairwise([*CHAIN, CHAIN[0]]):
        assert [item.id for item in CHAIN if present(files, item)] == [entry.id]
        assert present(files, entry) == 1
        (fix,) = DEMO.fixes_of(entry)
        files = apply(files, fix, entry)
        ast.parse(files[EXPORT])
        assert present(files, following) == 1
    assert files == merged("story2")


def test_each_tier_can_see_every_finding() -> None:
    """Small changes get the general reviewer alone, larger ones the specialised: all can tell."""
    for entry in DEMO.planted:
        assert {"general", "code_quality"} <= set(entry.agents), entry.id


@pytest.mark.parametrize("agent", ["general", "code_quality", "security"])
@pytest.mark.parametrize("name", STORIES)
def test_a_reviewer_finds_what_the_story_planted(agent: str, name: str) -> None:
    """Through the agent itself: titles and lines as a reader of the file would give them."""
    files = story(name)
    request = body(
        system=system(agent),
        messages=[{"role": "user", "content": changed_files(*files)}],
        tools=[tool("read_patch")],
    )
    text, _ = run(DEMO, request, {"read_patch": lambda use: added(use["path"], files[use["path"]])})
    expected = [
        (entry.title, str(number))
        for entry in DEMO.planted
        if entry.id in IN_STORY[name] and agent in entry.agents
        for number, line in enumerate(files[entry.path].split("\n"), start=1)
        if entry.needle in line
    ]
    found = [(item.findtext("title"), item.findtext("line")) for item in fromstring(text)]
    assert found == expected


def test_fixer_and_reviewer_of_story_2_never_agree() -> None:
    """Ten rounds of the real agents on one file, and the file is never clean."""
    text = story("story2")[EXPORT]
    titles = []
    for _ in range(10):
        (found,) = review(DEMO, {EXPORT: text})
        titles.append(found["title"])
        text = fixed(DEMO, EXPORT, text, found)
    assert len(set(titles)) == len(CHAIN)


def review(script: Scenario, files: Mapping[str, str]) -> list[dict[str, Any]]:
    request = body(
        system=system("general"),
        messages=[{"role": "user", "content": changed_files(*files)}],
        tools=[tool("read_patch")],
    )
    text, _ = run(
        script, request, {"read_patch": lambda use: added(use["path"], files[use["path"]])}
    )
    return [{child.tag: child.text for child in finding} for finding in fromstring(text)]


def fixed(script: Scenario, path: str, text: str, found: Mapping[str, Any]) -> str:
    task = {"id": "F1", "path": path, "title": found["title"]}
    edited = [text]

    def edit(use: Mapping[str, Any]) -> str:
        assert edited[0].count(use["old_text"]) == 1
        edited[0] = edited[0].replace(use["old_text"], use["new_text"])
        return "edited"

    request = body(
        system=system("fixer"),
        messages=[{"role": "user", "content": named("fix_task", task)}],
        tools=[tool("read_file"), tool("edit_file")],
    )
    report, _ = run(script, request, {"read_file": lambda _: numbered(text), "edit_file": edit})
    assert fromstring(report).find("fixed") is not None
    return edited[0]


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("a.js", "x = eval(code)", 1),
        ("a.py", "run(c, shell=True)", 1),
        ("a.js", "run(c, shell=True)", 0),
        ("deep/er/a.py", "get(u, verify=False)", 1),
        ("a.py", "ast.literal_eval(x)", 0),
    ],
)
def test_the_review_scenario_suits_any_repository(path: str, line: str, found: int) -> None:
    """It flags a few calls wherever a change adds them."""
    assert len(review(load_scenario("review"), {path: line})) == found


def test_an_unknown_story_is_refused() -> None:
    """A misspelt story is not an empty change."""
    with pytest.raises(KeyError, match="story1, story2"):
        load_story_files("story9")


def test_story_3_removes_a_file() -> None:
    """A removed file is told apart from an empty one."""
    assert load_story_files("story3")["app/api/notes/archive.py"] is None
    assert "app/api/notes/archive.py" in BASE
