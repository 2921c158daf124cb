"""What is declared, documented, locked and imported is the same."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES: list[str] = PROJECT["project"]["dependencies"]
LOCKS = ["requirements.lock", "requirements-dev.lock"]

MODULES = {
    "alembic", "aiosqlite", "celery", "cryptography", "defusedxml", "fastapi", "genai_prices",
    "githubkit", "graphql", "httpx", "jinja2", "psycopg", "pydantic", "pydantic_ai",
    "pydantic_settings", "redis", "rich", "sqlalchemy", "sqlmodel", "structlog", "typer",
    "uvicorn", "yaml",
}  # fmt: skip
"""The top-level modules of the declared packages that the product imports by name."""
COMPANIONS = {"anthropic", "httpx2", "jwt", "openai", "opentelemetry", "pydantic_core", "starlette"}
"""Modules that always come with one of those; docs/dependencies.md names them."""


def split(requirement: str) -> tuple[str, str]:
    """`name[extras]` and the version range of one requirement."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+(?:\[[^\]]*\])?)\s*(.*)", requirement)
    assert found is not None, requirement
    return found[1].replace(",", ", "), found[2]


def rows() -> dict[str, str]:
    """Package → range, as docs/dependencies.md has them."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    cells = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert all(len(row) == 5 and all(cell.strip() for cell in row) for row in cells)
    return {row[0].removeprefix("| "): row[1] for row in cells[2:]}


def test_each_dependency_has_its_line() -> None:
    """docs/dependencies.md says of each runtime dependency what it is for, with its real range."""
    assert rows() == dict(split(requirement) for requirement in DEPENDENCIES)


def declared(lock: str) -> list[Requirement]:
    """What pyproject.toml asks for, as far as it belongs in `lock`."""
    groups = PROJECT["dependency-groups"]
    asked = [*DEPENDENCIES, *groups["build"], *(groups["dev"] if "dev" in lock else [])]
    return [Requirement(requirement) for requirement in asked if isinstance(requirement, str)]


def locked(lock: str) -> dict[str, tuple[set[str], str]]:
    """Package → its extras and version in `lock`."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    found = re.findall(r"(?m)^([a-z0-9-]+)(?:\[([^\]]*)\])?==(\S+)", text)
    return {name: (set(re.findall(r"[^, ]+", extras)), version) for name, extras, version in found}


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_what_is_declared(lock: str) -> None:
    """`make lock` was run since pyproject.toml changed: names, extras and ranges all fit."""
    pinned = locked(lock)
    for requirement in declared(lock):
        extras, version = pinned[requirement.name]
        assert requirement.extras <= extras, requirement
        assert requirement.specifier.contains(version, prereleases=True), requirement


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_have_hashes_and_no_address(lock: str) -> None:
    """Each package has hashes, and no registry is named: the machine's own settings decide."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(?m)^-", text)
    entries = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert len(entries) == len(locked(lock))
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_development_lock_contains_the_other() -> None:
    """What is tested is what is shipped: both locks agree on every shared package."""
    runtime, dev = (
        set(re.findall(r"(?m)^[a-z0-9-]+(?:\[[^\]]*\])?==\S+", (ROOT / lock).read_text("utf-8")))
        for lock in LOCKS
    )
    assert runtime <= dev


def imports(path: Path) -> set[str]:
    """Top-level names of the absolute imports of one file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_only_declared_packages_are_imported() -> None:
    """No module of the product leans on a package that is installed by chance."""
    own = {"app", "loop_guards"}
    files = [path for package in own for path in (ROOT / package).rglob("*.py")]
    strangers = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imports(path) - own - sys.stdlib_module_names - MODULES - COMPANIONS
    }
    assert strangers == set()


def test_companions_are_documented() -> None:
    """Modules that come with another package are named on the page."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [name for name in sorted(COMPANIONS) if f"`{name}`" not in page] == []
