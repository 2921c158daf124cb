"""The contracts in pyproject.toml hold for the code, and would notice if they did not."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUARDS = sorted((ROOT / "loop_guards").rglob("*.py"))
IMPURE = {
    "asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random",
    "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib", "uuid",
}  # fmt: skip


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts over the packages in `folder`."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(program), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_code_keeps_every_contract() -> None:
    """No import of the product points upwards or sideways."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 broken" in result.stdout


BAD = [
    pytest.param("app.domain.bad", "app.review", id="domain imports a story"),
    pytest.param("app.agents.bad", "app.forges", id="agents reach the forge and its tokens"),
    pytest.param("app.forges.bad", "app.agents", id="the forge imports agents"),
    pytest.param("app.webhooks.bad", "app.api", id="one edge imports another"),
    pytest.param("app.review.bad", "app.handoff", id="one story imports another"),
    pytest.param("app.fixer.bad", "app.commands", id="a story imports the commands"),
    pytest.param("app.jobs.bad", "app.review", id="the ledger imports a story"),
    pytest.param("app.store.bad", "app.jobs", id="tables import the ledger"),
    pytest.param("app.sandbox.bad", "app.domain", id="the sandbox imports the product"),
    pytest.param("app.webhooks.worse", "app.sandbox", id="an edge imports the sandbox"),
    pytest.param("app.review.worse", "githubkit", id="a story imports githubkit"),
    pytest.param("loop_guards.bad", "app.domain", id="the guards import the product"),
]
FINE = [
    pytest.param("app.cli.fine", "app.sandbox", id="the command line starts the sandbox"),
    pytest.param("app.review.fine", "app.agents", id="a story uses agents"),
    pytest.param("app.forges.github.fine", "githubkit", id="the GitHub forge uses githubkit"),
    pytest.param("app.domain.fine", "loop_guards", id="the words use the guards' words"),
]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts say about a hollow product that makes every import of BAD and FINE."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", folder)
    packages = [
        "domain",
        "review",
        "handoff",
        "fixer",
        "commands",
        "agents",
        "forges/github",
        "webhooks",
    ]
    for package in [*packages, "api", "jobs", "store", "policy", "git", "cli", "sandbox"]:
        (folder / "app" / package).mkdir(parents=True)
    (folder / "loop_guards").mkdir()
    for directory in [folder / "app", *(folder / "app").rglob("*"), folder / "loop_guards"]:
        (directory / "__init__.py").touch()
    for case in [*BAD, *FINE]:
        importer, imported = case.values
        place = folder.joinpath(*str(importer).split(".")).with_suffix(".py")
        place.write_text(f"import {imported}\n", encoding="utf-8")
    result = lint(folder)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize(("importer", "imported"), BAD)
def test_a_forbidden_import_is_reported(complaints: str, importer: str, imported: str) -> None:
    """Each arrow that the architecture forbids breaks a contract once it is drawn."""
    assert f"{importer} -> {imported}" in complaints


@pytest.mark.parametrize(("importer", "imported"), FINE)
def test_an_allowed_import_is_not(complaints: str, importer: str, imported: str) -> None:
    """The contracts do not stand in the way of what the architecture wants."""
    assert f"{importer} -> {imported}" not in complaints


def test_a_package_without_a_layer_is_refused(tmp_path: Path) -> None:
    """A new package of `app` is placed by a decision, not by omission."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("app", "app/cli", "app/sandbox", "app/brand_new", "loop_guards"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    result = lint(tmp_path)
    assert result.returncode == 1
    assert "brand_new" in result.stdout


def _imports(path: Path) -> set[str]:
    """The top-level names that the file imports, relative imports left out."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_there_are_guards_to_look_at() -> None:
    """The tests below look at something."""
    assert GUARDS


@pytest.mark.parametrize("path", GUARDS, ids=lambda path: path.name)
def test_guards_are_pure(path: Path) -> None:
    """The guards import the standard library alone, and none of it that reads the world."""
    imported = _imports(path) - {"loop_guards"}
    assert imported <= sys.stdlib_module_names
    assert not imported & IMPURE
