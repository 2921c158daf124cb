"""Path patterns select what `.gitignore` would."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.policy import NEVER_SEND
from app.policy.globs import selected_by

TABLE = [
    ("*.pem", "a.pem", True),
    ("*.pem", "deep/down/a.pem", True),
    ("*.pem", "a.pem.txt", False),
    ("*.pem", "A.PEM", False),
    (".env*", "app/.env.local", True),
    (".env*", "app/.envs/prod", True),
    ("docs/", "docs/a.md", True),
    ("docs/", "sub/docs/a.md", True),
    ("docs/", "docs", False),
    ("/docs/", "sub/docs/a.md", False),
    ("docs/*.md", "docs/a.md", True),
    ("docs/*.md", "docs/sub/a.md", False),
    ("docs/**", "docs/sub/a.md", True),
    ("docs/**", "docs", False),
    ("docs/**/a.md", "docs/a.md", True),
    ("docs/**/a.md", "docs/x/y/a.md", True),
    ("**/gen/*.go", "gen/x.go", True),
    ("**/gen/*.go", "a/b/gen/x.go", True),
    ("src/?.c", "src/a.c", True),
    ("src/?.c", "src/ab.c", False),
    ("src/[ab].c", "src/b.c", True),
    ("src", "src/deep/a.c", True),
    ("**", "anything/at/all", True),
    ("/", "a", False),
]


@pytest.mark.parametrize(("glob", "path", "expected"), TABLE)
def test_selects(glob: str, path: str, expected: bool) -> None:
    """One pattern, one path, one answer; the answer names the pattern."""
    assert selected_by(path, [glob]) == (glob if expected else None)


@pytest.mark.parametrize(("glob", "path", "expected"), TABLE)
def test_git_agrees(tmp_path: Path, glob: str, path: str, expected: bool) -> None:
    """The same pattern in a `.gitignore` ignores the same path."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git" / "info" / "exclude").write_text(f"{glob}\n", encoding="utf-8")
    result = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "-q", "--no-index", path],
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        check=False,
    )
    assert (result.returncode == 0) is expected


def test_the_last_match_decides() -> None:
    """`!` takes back what an earlier pattern selected, and a later one selects again."""
    globs = ["*.md", "!README.md", "docs/README.md"]
    assert selected_by("a.md", globs) == "*.md"
    assert selected_by("README.md", globs) is None
    assert selected_by("docs/README.md", globs) == "docs/README.md"
    assert selected_by("a.py", globs) is None


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.ENV.production",
        "certs/server.PEM",
        "home/.ssh/id_rsa",
        "x/.aws/credentials",
        "prod.tfvars",
    ],
)
def test_secrets_are_withheld_by_default(path: str) -> None:
    """Files that hold keys are withheld at any depth and in any case."""
    assert selected_by(path, NEVER_SEND, ignore_case=True)


@pytest.mark.parametrize(
    "path", [".env.example", "id_ed25519.pub", "src/environment.py", "keys.py"]
)
def test_what_only_looks_alike_is_sent(path: str) -> None:
    """Examples, public keys and code are not withheld."""
    assert selected_by(path, NEVER_SEND, ignore_case=True) is None


def test_no_pair_takes_long() -> None:
    """Many stars against a long path is answered at once."""
    start = time.monotonic()
    selected_by("a/" * 2000 + "b", ["**/" * 40 + "*a*a*a*a*a*a*a*a*c"])
    selected_by("a" * 4000, ["*a" * 60 + "b"])
    assert time.monotonic() - start < 5


GLOB = st.text("aB/*?[!].", max_size=12)


@given(st.lists(GLOB, max_size=4), st.text("aAb/.", max_size=12), st.booleans())
def test_a_list_is_its_globs_one_by_one(globs: list[str], path: str, ignore_case: bool) -> None:
    """The short cut for paths that nothing selects misses none that something does."""
    alone = [
        glob for glob in globs if selected_by(path, [glob.lstrip("!")], ignore_case=ignore_case)
    ]
    last = alone[-1] if alone else None
    expected = None if last is None or last.startswith("!") else last
    assert selected_by(path, globs, ignore_case=ignore_case) == expected


def test_a_repository_is_asked_about_in_no_time() -> None:
    """All files of a large repository are compared with all globs that withhold."""
    start = time.monotonic()
    for number in range(20_000):
        selected_by(f"src/package{number % 250}/module/file{number}.py", NEVER_SEND)
    assert time.monotonic() - start < 5


@given(st.text("ab/*?[!].", max_size=20), st.text("ab/.", max_size=20))
def test_any_pattern_gets_an_answer(glob: str, path: str) -> None:
    """No pattern is an error, and only the pattern that was given is named."""
    assert selected_by(path, [glob]) in (glob, None)
