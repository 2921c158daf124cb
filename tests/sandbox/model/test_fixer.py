"""The fixer changes what the task names and what it has read, and reports what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring

from app.sandbox.model import Scenario
from app.sandbox.model.wire import Reply, ToolUse
from tests.sandbox.model.builders import (
    NEEDLE,
    PATH,
    body,
    named,
    numbered,
    planted,
    run,
    scenario,
    system,
    tool,
)

TITLE = "A name goes into a command"
FIX = {"finding": "rm", "find": NEEDLE, "replace": 'run(["rm", name])'}
TASK = {"id": "F1", "path": PATH, "title": TITLE}
SCENARIO = scenario(fixes=[FIX])


class Checkout:
    """A checkout of files in memory, with the fixer's tools over it."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)

    def read_file(self, use: Mapping[str, Any]) -> Any:
        if use["path"] not in self.files:
            return {"content": f"{use['path']} does not exist", "is_error": True}
        return numbered(self.files[use["path"]])

    def edit_file(self, use: Mapping[str, Any]) -> Any:
        text = self.files[use["path"]]
        if text.count(use["old_text"]) != 1:
            return {"content": "old_text must occur exactly once", "is_error": True}
        self.files[use["path"]] = text.replace(use["old_text"], use["new_text"])
        return "edited"


def fix(
    checkout: Checkout, *task: Any, script: Scenario = SCENARIO, tools: tuple[str, ...] = ()
) -> tuple[dict[str, str], list[Reply]]:
    """Run the fixer on a task. Returns what it says per finding id, and its turns."""
    request = body(
        system=system("fixer"),
        messages=[{"role": "user", "content": named("fix_task", *task)}],
        tools=[tool(name) for name in tools or ("read_file", "edit_file")],
    )
    text, replies = run(
        script, request, {"read_file": checkout.read_file, "edit_file": checkout.edit_file}
    )
    report = fromstring(text)
    assert report.findtext("summary")
    return {item.get("id", ""): item.tag for item in report if item.tag != "summary"}, replies


def test_it_reads_then_edits_then_reports() -> None:
    """One turn each, and the file is as the scenario wants it."""
    checkout = Checkout({PATH: f"a\n{NEEDLE}\nb\n"})
    said, replies = fix(checkout, TASK)
    assert [reply.tools for reply in replies] == [("read_file",), ("edit_file",), ()]
    assert checkout.files[PATH] == 'a\nrun(["rm", name])\nb\n'
    assert said == {"F1": "fixed"}


@pytest.mark.parametrize(
    ("files", "task", "tools"),
    [
        pytest.param({PATH: NEEDLE}, {"title": "Something else"}, (), id="not named"),
        pytest.param({PATH: "clean"}, {}, (), id="text not there"),
        pytest.param({}, {}, (), id="no file"),
        pytest.param({PATH: NEEDLE, "o.py": NEEDLE}, {"path": "o.py"}, (), id="other path"),
        pytest.param({PATH: f"{NEEDLE}\n{NEEDLE}"}, {}, (), id="edit refused"),
        pytest.param({PATH: NEEDLE}, {}, ("edit_file",), id="not read"),
        pytest.param({PATH: NEEDLE}, {}, ("read_file",), id="no tool to edit"),
    ],
)
def test_anything_less_is_declined_and_changes_nothing(
    files: dict[str, str], task: dict[str, str], tools: tuple[str, ...]
) -> None:
    """A fix needs the finding in the task, the text in a read, and an edit that took."""
    checkout = Checkout(files)
    said, _ = fix(checkout, TASK | task, tools=tools)
    assert said == {"F1": "declined"}
    assert checkout.files == files


def test_only_the_named_finding_of_two_is_fixed() -> None:
    """Knowing a fix is no reason to make it."""
    other = planted(id="two", needle="second()", title="Second")
    more = {"finding": "two", "find": "second()", "replace": "done()"}
    script = scenario(planted=[planted(), other], fixes=[FIX, more])
    checkout = Checkout({PATH: f"{NEEDLE}\nsecond()"})
    said, _ = fix(checkout, TASK | {"title": "Second"}, script=script)
    assert checkout.files[PATH] == f"{NEEDLE}\ndone()"
    assert said == {"F1": "fixed"}


def test_several_edits_for_one_finding_all_must_take() -> None:
    """Half a fix is reported as declined, in the tool's own words."""
    second = {"finding": "rm", "find": "twice", "replace": "once"}
    script = scenario(fixes=[FIX, second])
    checkout = Checkout({PATH: f"{NEEDLE}\ntwice twice"})
    said, replies = fix(checkout, TASK, script=script)
    assert replies[1].tools == ("edit_file", "edit_file")
    assert said == {"F1": "declined"}


def test_a_fix_in_another_file_reads_that_file_first() -> None:
    """`path` of a fix names where the change belongs."""
    script = scenario(fixes=[FIX | {"path": "src/lib.py", "find": "old", "replace": "new"}])
    checkout = Checkout({PATH: NEEDLE, "src/lib.py": "old"})
    said, replies = fix(checkout, TASK, script=script)
    reads = [dict(block.input)["path"] for block in replies[0].blocks if isinstance(block, ToolUse)]
    assert reads == [PATH, "src/lib.py"]
    assert checkout.files == {PATH: NEEDLE, "src/lib.py": "new"}
    assert said == {"F1": "fixed"}


def test_the_same_file_is_read_once_for_all_findings() -> None:
    """One read serves every finding of a file, and each gets its own line in the report."""
    said, replies = fix(Checkout({PATH: NEEDLE}), TASK, TASK | {"id": "F2", "title": "Other"})
    assert replies[0].tools == ("read_file",)
    assert said == {"F1": "fixed", "F2": "declined"}
