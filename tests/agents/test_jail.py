"""What is withheld, odd or endless in a repository, asked for by every tool over real git."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.port import ToolError
from app.agents.workspace import Workspace, _cover
from app.domain.policy import Policy
from app.policy.paths import withheld_by
from tests.git.repos import LINK, BareRepo, Content

WITHHELD = Policy(never_send=("vault/", "*.secret"))
HOSTILE: dict[bytes, Content] = {
    b"a.py": b"KEY = public\n",
    b".env": b"KEY=one-two\n",
    b"app/.ENV.local": b"KEY=one-two\n",
    b"app/b.py": b"KEY = public\n",
    b"vault/a": b"KEY=one-two\n",
    b"vault/deep/b": b"KEY=one-two\n",
    b"x.secret": b"KEY=one-two\n" * 500,
    b"line\nbreak.py": b"KEY = public\n",
    b"caf\xe9.py": b"KEY = public\n",
    b"-rf": b"KEY = public\n",
    b"link": (LINK, b".env"),
    b"folder": (LINK, b"vault"),
    b"long.txt": b"x\n" * 6_000_000,
}


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A real tree of a repository whose author means harm."""
    repo = BareRepo.create(tmp_path_factory.mktemp("jail") / "repo.git")
    tree = repo.repository.tree(repo.commit(HOSTILE))
    return Workspace(tree, withheld=partial(withheld_by, WITHHELD))


async def said(calls: Iterable[Awaitable[str]]) -> str:
    """The answers of tools, refusals too."""
    answers = []
    for call in calls:
        try:
            answers.append(await call)
        except ToolError as error:
            answers.append(str(error))
    return "\n".join(answers)


@pytest.mark.parametrize(
    "path",
    [
        ".env", "./.env", " .env ", "app/.ENV.local", "app//.ENV.local", "app/./.ENV.local",
        "vault/a", "vault/deep/b", "vault", "vault/deep", "x.secret", "link", "folder", "folder/a",
        "<U+002E>env", "app/../.env", "a.py/../.env", "**", ":(literal).env", ".env\n", "*.secret",
        "vault/*", "HEAD:.env", "app/b.py/../../.env",
    ],
)  # fmt: skip
async def test_no_tool_says_what_is_withheld(jail: Workspace, path: str) -> None:
    """Whatever is asked for, and however it is spelled."""
    asked = (jail.read_file, jail.read_patch, jail.list, jail.glob, partial(jail.grep, "."))
    assert "two" not in await said(call(path) for call in asked)


@pytest.mark.parametrize(
    "pattern", ["KEY", "one", "KEY=one-tw", ".", "K.Y|one", "[^x]", "(t|x)wo$"]
)
async def test_no_search_finds_what_is_withheld(jail: Workspace, pattern: str) -> None:
    """Alone or among other hits."""
    assert "two" not in await said([jail.grep(pattern), jail.grep(pattern, "app")])


async def test_every_tool_names_what_is_withheld(jail: Workspace) -> None:
    """A model that knows of a file does not take it for missing."""
    note = (
        "[not searched, withheld by policy: .env (.env*), app/.ENV.local (.env*), "
        "vault/a (vault/), vault/deep/b (vault/), x.secret (*.secret)]"
    )
    assert (await jail.grep("KEY = ")).splitlines()[-1] == note
    assert await jail.grep("one-two") == f"no matches\n{note}"
    assert await jail.grep("KEY", "app") == (
        "app/b.py:1: KEY = public\n[not searched, withheld by policy: app/.ENV.local (.env*)]"
    )
    assert await jail.grep("KEY", "a.py") == "a.py:1: KEY = public"
    assert await jail.glob("**/.[eE]*") == "no paths"
    assert await jail.glob(".env*") == ".env [withheld: .env*]"
    assert (
        await jail.glob("vault/**") == "vault/a [withheld: vault/]\nvault/deep/b [withheld: vault/]"
    )
    assert await jail.list("app") == ".ENV.local [withheld: .env*]\nb.py"
    with pytest.raises(ToolError, match="withheld by policy"):
        await jail.read_file("x.secret")


async def test_a_search_answers_nothing_about_withheld_files(jail: Workspace) -> None:
    """Not by what is missing either: five hundred lines there take no hit from other files."""
    paths = {line.partition(":")[0] for line in (await jail.grep("KEY")).splitlines()[:-1]}
    assert paths == {"-rf", "a.py", "app/b.py", "caf<U+DCE9>.py", "line<U+000A>break.py"}


def test_few_paths_stand_for_many() -> None:
    """A folder that is withheld as a whole is one path on the command line; a mixed one is not."""
    closed = {f"data/{n}/x": "data/" for n in range(10_000)} | {"src/.env": ".env*"}
    assert _cover([*closed, "src/a.py"], closed) == ("data", "src/.env")


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)), st.data())
def test_a_cover_is_all_of_them_and_nothing_else(names: set[str], data: st.DataObject) -> None:
    """No withheld file is searched, and no other is left out."""
    paths = sorted(name for name in names if not any(o.startswith(f"{name}/") for o in names))
    closed = {path: "x" for path in paths if data.draw(st.booleans())}
    cover = _cover(paths, closed)
    under = {p for p in paths if any(p == top or p.startswith(f"{top}/") for top in cover)}
    assert under == set(closed)


async def test_odd_names_are_one_line_and_can_be_asked_for(jail: Workspace) -> None:
    """As they are shown, or as they are; a line break in a name adds no line of its own."""
    listed = (await jail.list()).splitlines()
    assert {"caf<U+DCE9>.py", "line<U+000A>break.py", "-rf"} <= set(listed)
    for name in ("caf<U+DCE9>.py", "caf\udce9.py", "line<U+000A>break.py", "line\nbreak.py", "-rf"):
        assert await jail.read_file(name) == "     1\tKEY = public"


async def test_a_file_that_nobody_can_read_is_not_numbered(jail: Workspace) -> None:
    """Each part of it would cost all of it."""
    with pytest.raises(ToolError, match="12000000 bytes, too many to show"):
        await jail.read_file("long.txt", 5_000_000)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("x" * 1_001, id="too-long"),
        pytest.param("(", id="no-expression"),
        pytest.param("a\0b", id="nul"),
        pytest.param("\ud83d", id="half-a-character"),
        pytest.param("((a{1,200}){1,200}){1,200}", id="memory"),
    ],
)
async def test_a_search_that_can_not_be_made_is_refused(jail: Workspace, pattern: str) -> None:
    """With words that a model can act on, and none of git's, which name folders of this machine."""
    with pytest.raises(ToolError, match=r"simple ERE|longer than") as refusal:
        await jail.grep(pattern)
    assert "repo.git" not in str(refusal.value)


async def test_a_tree_that_git_can_not_read_is_a_refusal(tmp_path: Path) -> None:
    """Every tool says so in its own words; the run goes on."""
    repo = BareRepo.create(tmp_path / "repo.git")
    space = Workspace(repo.repository.tree("f" * 40))
    for call in (space.read_file("a"), space.glob("**"), space.grep("a")):
        with pytest.raises(ToolError, match="can't be read"):
            await call
