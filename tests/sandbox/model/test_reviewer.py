"""A reviewer finds what its tools showed it, where they showed it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sandbox.model import Scenario
from app.sandbox.model.agents import MAX_CALLS_A_TURN
from tests.sandbox.model.builders import (
    NEEDLE,
    PATH,
    added,
    body,
    changed_files,
    named,
    numbered,
    patch,
    planted,
    run,
    scenario,
    system,
    tool,
    turn,
)

SCENARIO = scenario()
TITLE = "A name goes into a command"

lines = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20)
rows = st.lists(st.tuples(st.sampled_from("+- "), lines), max_size=12)


def review(
    shown: str, *, script: Scenario = SCENARIO, tool_name: str = "read_patch", **changes: Any
) -> list[dict[str, str]]:
    """The findings of a review in which that tool shows `shown`, as fields by name."""
    request = body(**({"tools": [tool(tool_name)]} | changes))
    text, _ = run(script, request, {tool_name: lambda _: shown})
    return [
        {child.tag: "".join(child.itertext()) for child in finding} for finding in fromstring(text)
    ]


@settings(deadline=None, max_examples=60)
@given(
    before=rows, sign=st.sampled_from("+ "), indent=lines, after=rows, start=st.integers(1, 9**9)
)
def test_a_shown_line_is_found_at_its_number(
    before: list[tuple[str, str]],
    sign: str,
    indent: str,
    after: list[tuple[str, str]],
    start: int,
) -> None:
    """Wherever the needle stands in a hunk, the number is the new side's."""
    shown = patch(PATH, [*before, (sign, indent + NEEDLE), *after], old=start, new=start)
    number = start + sum(kind != "-" for kind, _ in before)
    assert [(item["path"], item["line"]) for item in review(shown)] == [(PATH, str(number))]


@settings(deadline=None, max_examples=60)
@given(before=rows, after=rows, start=st.integers(1, 9**9))
def test_a_removed_line_is_never_found(
    before: list[tuple[str, str]], after: list[tuple[str, str]], start: int
) -> None:
    """What a change takes away is not in the file any more."""
    shown = patch(PATH, [*before, ("-", NEEDLE), *after], old=start, new=start)
    assert review(shown) == []


@settings(deadline=None, max_examples=60)
@given(shown=rows)
def test_without_the_needle_nothing_is_found(shown: list[tuple[str, str]]) -> None:
    """The scenario alone is no reason for a finding."""
    assert review(patch(PATH, shown)) == []


@settings(deadline=None, max_examples=60)
@given(before=st.lists(lines, max_size=12), after=st.lists(lines, max_size=12))
def test_a_line_of_a_read_file_is_found(before: list[str], after: list[str]) -> None:
    """`read_file` shows lines as well as a patch does."""
    shown = numbered("\n".join([*before, NEEDLE, *after]))
    found = review(
        shown,
        tool_name="read_file",
        messages=[{"role": "user", "content": named("existing_inline_findings", OPEN)}],
    )
    assert [item["line"] for item in found] == [str(len(before) + 1)]


OPEN = {"id": "F1", "path": PATH, "title": TITLE}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"tools": None}, id="no tools"),
        pytest.param({"tools": [tool("grep")]}, id="other tools"),
        pytest.param(
            {"tools": [tool("read_patch")], "tool_choice": {"type": "none"}}, id="tools forbidden"
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": NEEDLE}]}, id="needle in the prompt"
        ),
        pytest.param({"messages": [{"role": "user", "content": "go"}]}, id="no changed files"),
    ],
)
def test_without_a_tool_result_nothing_is_found(changes: Mapping[str, Any]) -> None:
    """Words of the prompt are not read code."""
    assert run(SCENARIO, body(**changes), {})[0] == "<findings/>"


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(added("src/other.py", NEEDLE), id="another path"),
        pytest.param(f"{PATH} cannot be read: {NEEDLE}", id="an error's words"),
        pytest.param(f"1 {NEEDLE}\n+{NEEDLE}", id="another rendering"),
        pytest.param("", id="empty patch"),
    ],
)
def test_other_words_are_no_finding(shown: str) -> None:
    """Only a numbered line of the planted path counts."""
    assert review(shown) == []


@pytest.mark.parametrize(
    ("agent", "found"), [("security", 1), ("general", 0), ("performance", 0), ("release", 0)]
)
def test_only_the_named_agents_find_it(agent: str, found: int) -> None:
    """Each reviewer keeps to its domain."""
    assert len(review(added(PATH, NEEDLE), system=system(agent))) == found


def test_every_changed_file_is_read_at_once_and_no_more_than_once() -> None:
    """One call per path in the prompt's order, in turns of at most forty."""
    paths = [f"src/{index}.py" for index in range(MAX_CALLS_A_TURN + 5)]
    prompt = [{"role": "user", "content": changed_files(*paths, paths[0])}]
    _, replies = run(SCENARIO, body(messages=prompt), {"read_patch": lambda _: ""})
    assert [len(reply.tools) for reply in replies] == [MAX_CALLS_A_TURN, 5, 0]


def test_files_of_open_findings_outside_the_change_are_read() -> None:
    """What was open in a file that this change does not touch is looked at, too."""
    prompt = changed_files("a.py") + named("existing_inline_findings", OPEN)
    request = body(messages=[{"role": "user", "content": prompt}])
    tools = {"read_patch": lambda _: "", "read_file": lambda _: numbered(NEEDLE)}
    text, replies = run(SCENARIO, request, tools)
    assert [reply.tools for reply in replies] == [("read_patch",), ("read_file",), ()]
    assert TITLE in text


def test_an_added_line_goes_before_a_context_line() -> None:
    """One finding per file, at the line that this change brings."""
    shown = patch(PATH, [(" ", NEEDLE), ("+", NEEDLE)])
    assert [item["line"] for item in review(shown)] == ["2"]


@pytest.mark.parametrize(("sign", "found"), [("+", 1), (" ", 0), ("-", 0)])
def test_added_only_asks_for_an_added_line(sign: str, found: int) -> None:
    """A scenario may keep to what the change brings."""
    script = scenario(planted=[planted(added_only=True)])
    assert len(review(patch(PATH, [(sign, NEEDLE)]), script=script)) == found


def test_all_fields_survive_as_well_formed_xml() -> None:
    """Markup, control characters and indentation in a scenario or a line break nothing."""
    entry = planted(
        title="<b> & 'c' \x00",
        body="</body></finding>",
        suggestion="    indented()\n\tand more",
        also=["x&y.py"],
    )
    (item,) = review(added(PATH, f"\x1b[0m<!-- {NEEDLE} -->"), script=scenario(planted=[entry]))
    assert item["title"] == "<b> & 'c' "
    assert item["body"] == "</body></finding>"
    assert item["suggestion"] == "    indented()\n\tand more"
    assert item["also"].strip() == "x&y.py"
    assert item["evidence"] == f"{PATH}:1: [0m<!-- {NEEDLE} -->"


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(f"Mind <changed_files> below.\n{changed_files(PATH)}", id="tag in prose"),
        pytest.param(f"<changed_files><file</changed_files>{changed_files(PATH)}", id="broken one"),
        pytest.param(f"</changed_files>{changed_files(PATH)}", id="closing tag in prose"),
        pytest.param(
            changed_files(PATH).replace("<changed_files>", '<changed_files n="1">'), id="a"
        ),
    ],
)
def test_the_section_is_found_in_any_prose(prompt: str) -> None:
    """The prompt around the section may speak of it."""
    reply = turn(SCENARIO, body(messages=[{"role": "user", "content": prompt}]))
    assert [dict(block.input) for block in reply.blocks if hasattr(block, "input")] == [
        {"path": PATH}
    ]


def test_a_question_after_nonsense_is_answered_from_the_same_reads() -> None:
    """Asked again in the same conversation, the agent needs no second look."""
    request = body(tools=[tool("read_patch")])
    text, _ = run(SCENARIO, request, {"read_patch": lambda _: added(PATH, NEEDLE)})
    uses = [{"type": "tool_use", "id": "u", "name": "read_patch", "input": {"path": PATH}}]
    result = {"type": "tool_result", "tool_use_id": "u", "content": added(PATH, NEEDLE)}
    more = [
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Looks fine."},
        {"role": "user", "content": "Answer with <findings>."},
    ]
    again, _ = run(SCENARIO, request | {"messages": [*request["messages"], *more]}, {})
    assert again == text


@pytest.mark.parametrize("prompt", ["You are a poet.", "", "#Mergeward agent: security"])
def test_anyone_else_gets_one_line(prompt: str) -> None:
    """Without an agent line there is no role to play."""
    text, _ = run(SCENARIO, body(system=prompt), {})
    assert "\n" not in text
    assert "scripted" in text
