"""What agents can read: the exact form, the limits, and the walls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.numbered import (
    LINE_CHARS,
    is_shown_whole,
    numbered_file,
    numbered_patch,
    show_line,
)
from app.agents.port import HostTool, ToolError
from app.agents.prompts import TOOL_NAMES
from app.agents.tools import coordinator_tools, integer, reviewer_tools
from app.agents.workspace import ANSWER_CHARS, Workspace, clean_path
from app.domain.runs import AgentName

PATCH = b"""diff --git a/src/a.py b/src/a.py
index 111..222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,4 +1,5 @@ def f():
 one
-two
---- a/looks like a header
+2
+@@ -9,9 +9,9 @@ looks like a hunk
+++ b/looks like a header

@@ -20 +21,2 @@
 twenty
+x\xe2\x80\xaey
\\ No newline at end of file
"""

NUMBERED = f"""diff --git a/src/a.py b/src/a.py
index 111..222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,4 +1,5 @@ def f():
     1      1  one
     2        -two
     3        ---- a/looks like a header
            2 +2
            3 +@@ -9,9 +9,9 @@ looks like a hunk
            4 +++ b/looks like a header
     4      5 {" "}
@@ -20 +21,2 @@
    20     21  twenty
           22 +x<U+202E>y
\\ No newline at end of file"""


@dataclass(frozen=True)
class Line:
    path: str
    line: int
    text: str


class Files:
    """A tree in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    async def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    async def list(self, prefix: str) -> Sequence[str]:
        start = f"{prefix}/" if prefix else ""
        names = [path[len(start) :] for path in self.files if path.startswith(start)]
        return sorted({name.split("/")[0] + ("/" if "/" in name else "") for name in names})

    async def glob(self, pattern: str) -> Sequence[str]:
        return [path for path in self.files if fnmatchcase(path, pattern)]

    async def grep(self, pattern: str, prefix: str, without: Sequence[str]) -> Sequence[Line]:
        return [
            Line(path, number, text)
            for path, content in self.files.items()
            if path.startswith(prefix) and path not in without
            for number, text in enumerate(content.decode("latin-1").split("\n"), 1)
            if re.search(pattern, text)
        ]


def workspace(directory: Path, **files: bytes) -> Workspace:
    (directory / "diff").mkdir()
    (directory / "diff/src__a.py.patch").write_bytes(PATCH)
    (directory / "diff/env.patch").write_bytes(b"secret")
    (directory / "shared-pr-context.txt").write_bytes(b"Title\nBody")
    tree = {
        "src/a.py": b"one\r\n\ttwo\x0cx\nthree",
        ".env.local": b"KEY=1",
        "empty.py": b"",
        "logo.png": b"\x89PNG\0\0",
        "long.txt": b"0123456789\n" * 20_000,
        "wide.txt": b"w" * LINE_CHARS,
        "endless.txt": b"w" * (LINE_CHARS + 1),
        **files,
    }
    patches = {"src/a.py": "diff/src__a.py.patch", ".env": "diff/env.patch"}

    def withheld(path: str) -> str | None:
        return ".env*" if path.rpartition("/")[2].startswith(".env") else None

    return Workspace(Files(tree), directory, patches, withheld)


def test_a_patch_is_numbered_by_its_counts() -> None:
    """Both sides' numbers; lines that look like headers are code when the hunk's counts say so."""
    assert numbered_patch(PATCH, 10_000).text == NUMBERED


@given(st.lists(st.tuples(st.sampled_from(" +-"), st.text(alphabet="ab@+- \t", max_size=8))))
def test_numbers_follow_the_sides(lines: list[tuple[str, str]]) -> None:
    """Old numbers count context and removed lines, new ones context and added, without gaps."""
    old = sum(sign != "+" for sign, _ in lines)
    new = sum(sign != "-" for sign, _ in lines)
    body = "".join(f"{sign}{text}\n" for sign, text in lines)
    patch = f"@@ -7,{old} +9,{new} @@\n{body}".encode()
    shown = numbered_patch(patch, 100_000).text.split("\n")[1:]
    olds = [int(line[:6]) for line in shown if line[:6].strip()]
    news = [int(line[7:13]) for line in shown if line[7:13].strip()]
    assert olds == list(range(7, 7 + old))
    assert news == list(range(9, 9 + new))
    assert [line[14:] for line in shown] == [sign + text for sign, text in lines]


async def test_reading_a_file(tmp_path: Path) -> None:
    """One numbered line per source line; ranges; an empty file is one empty line."""
    space = workspace(tmp_path)
    assert await space.read_file("src/a.py") == "     1\tone\n     2\t\ttwo<U+000C>x\n     3\tthree"
    assert await space.read_file("./src/a.py", 2, 2) == "     2\t\ttwo<U+000C>x"
    assert await space.read_file("empty.py") == "     1\t"
    assert await space.read_file("shared-pr-context.txt") == "     1\tTitle\n     2\tBody"


async def test_reading_a_patch(tmp_path: Path) -> None:
    """By the file's path or by the patch's name, through either tool."""
    space = workspace(tmp_path)
    for read in (space.read_patch, space.read_file):
        assert await read("diff/src__a.py.patch") == NUMBERED
    assert await space.read_patch("src/a.py") == NUMBERED


async def test_long_answers_say_how_to_go_on(tmp_path: Path) -> None:
    """What was cut is said with the line to continue at, and continuing there works."""
    space = workspace(tmp_path)
    first = await space.read_file("long.txt")
    assert len(first) < 51_000
    told = re.search(r"\[cut here: .* from start_line=(\d+)\]$", first)
    assert told is not None
    then = await space.read_file("long.txt", int(told.group(1)))
    assert then.startswith(f"{int(told.group(1)):>6}\t")


async def test_only_an_endless_line_is_cut(tmp_path: Path) -> None:
    """A long one is shown to its end, with its number, in one answer."""
    space = workspace(tmp_path)
    assert await space.read_file("wide.txt") == f"     1\t{'w' * LINE_CHARS}"
    endless = await space.read_file("endless.txt")
    assert endless.endswith(f"[line cut here: {LINE_CHARS + 1} characters]")
    assert len(endless) < ANSWER_CHARS


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=3))
def test_what_is_shown_whole_is_not_cut(line: bytes, times: int) -> None:
    """What counts a line as read and what shows it agree, also where letters are written out."""
    raw = (line.replace(b"\n", b"") or b"\0") * times * 300
    assert is_shown_whole(raw) == ("[line cut here" not in show_line(raw)[-60:])


def test_at_least_one_line_is_shown() -> None:
    """A line longer than the limit is shown, so that reading on always gets further."""
    assert numbered_file(b"abcdef\nx", 1, None, 3).next_line == 2


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../x", id="up"),
        pytest.param("src/../../x", id="up-inside"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("~/x", id="home"),
        pytest.param(".git/config", id="git"),
        pytest.param("src/.GIT/config", id="git-in-capitals"),
        pytest.param("..\\x", id="backslashes"),
        pytest.param("a\0b", id="nul"),
        pytest.param("", id="empty"),
        pytest.param("diff/../../secret", id="up-from-the-patches"),
    ],
)
async def test_there_is_no_way_out(tmp_path: Path, path: str) -> None:
    """Every tool refuses a path that points outside, with words for the model."""
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("x")
    space = workspace(tmp_path / "run")
    for call in (space.read_file, space.read_patch, space.glob):
        with pytest.raises(ToolError):
            await call(path)
    with pytest.raises(ToolError):
        await space.grep("x", path or "..")
    with pytest.raises(ToolError):
        await space.list(path or "..")


async def test_withheld_content_reaches_no_model(tmp_path: Path) -> None:
    """By file, by patch, and by search; the refusal names the policy."""
    space = workspace(tmp_path)
    for refused in (
        space.read_file(".env.local"),
        space.read_patch(".env"),
        space.read_patch("diff/env.patch"),
        space.read_file("diff/env.patch"),
    ):
        with pytest.raises(ToolError, match="withheld by policy"):
            await refused


@pytest.mark.parametrize(
    ("value", "number"),
    [("3", 3), (" 12 ", 12), (3.0, 3), (0, 0), (-1, -1), ("", None), (None, None)],
)
def test_whole_numbers(value: object, number: int | None) -> None:
    """However a model writes them."""
    assert integer({"n": value}, "n") == number


@pytest.mark.parametrize(
    "value", ["x", "\u00b2", "9" * 5_000, 1.5, float("nan"), float("inf"), True, [1], {}]
)
def test_what_is_no_whole_number(value: object) -> None:
    """The model is told, whatever it sent."""
    with pytest.raises(ToolError, match="whole number"):
        integer({"n": value}, "n")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("nope.py", "does not exist", id="missing"),
        pytest.param("logo.png", "binary", id="binary"),
    ],
)
async def test_refusals_say_why(tmp_path: Path, path: str, words: str) -> None:
    """A model can act on what it is told."""
    with pytest.raises(ToolError, match=words):
        await workspace(tmp_path).read_file(path)


async def test_searching(tmp_path: Path) -> None:
    """Matches, names and listings in their forms, with a count when cut."""
    space = workspace(tmp_path)
    assert await space.grep("^three", "src") == "src/a.py:3: three"
    assert "[cut here: only 200 matches; use a narrower pattern or path]" in await space.grep(
        "0123"
    )
    assert await space.glob("src/*") == "src/a.py"
    assert await space.glob("*.rs") == "no paths"
    assert (await space.list()).split("\n")[-2:] == ["src/", "wide.txt"]
    with pytest.raises(ToolError, match="does not exist"):
        await space.list("nowhere")


def named(tools: Sequence[HostTool]) -> dict[str, HostTool]:
    return {tool.name: tool for tool in tools}


async def test_tools_check_what_models_send(tmp_path: Path) -> None:
    """Wrong kinds are told to the model; numbers may come as strings."""
    tools = named(reviewer_tools(workspace(tmp_path)))
    assert list(tools) == ["read_patch", "read_file", "grep", "glob", "list"]
    answer = await tools["read_file"].call({"path": "src/a.py", "start_line": "3"})
    assert answer == "     3\tthree"
    for bad in ({}, {"path": 3}, {"path": "src/a.py", "start_line": [1]}):
        with pytest.raises(ToolError):
            await tools["read_file"].call(bad)


async def test_spawning_reviewers(tmp_path: Path) -> None:
    """Names are understood or refused; none means all of the run's."""
    seen: list[tuple[AgentName, ...]] = []

    async def spawn(names: tuple[AgentName, ...], into: list[tuple[AgentName, ...]]) -> str:
        into.append(names)
        return "results"

    tool = named(coordinator_tools(workspace(tmp_path), partial(spawn, into=seen)))[
        "spawn_reviewers"
    ]
    assert tool.timeout_s is None
    await tool.call({})
    await tool.call({"reviewers": ["Security", "general"]})
    with pytest.raises(ToolError, match="no such reviewer"):
        await tool.call({"reviewers": ["the one who knows"]})
    assert seen == [(), (AgentName.SECURITY, AgentName.GENERAL)]


def test_every_tool_of_the_prompts_exists(tmp_path: Path) -> None:
    """What prompts name is what agents get (the fixer's two editing tools are made elsewhere)."""

    async def spawn(_: tuple[AgentName, ...]) -> str:
        return ""

    made = set(named(coordinator_tools(workspace(tmp_path), spawn)))
    assert made | {"edit_file", "write_file"} == set(TOOL_NAMES)


@given(st.text(alphabet="ab/.~\\ \0g it", max_size=20))
def test_a_clean_path_stays_inside(path: str) -> None:
    """Whatever is asked for, what is used has no way up, no root and no git directory in it."""
    try:
        cleaned = clean_path(path)
    except ToolError:
        return
    parts = cleaned.split("/")
    assert ".." not in parts
    assert ".git" not in parts
    assert not cleaned.startswith("/")
