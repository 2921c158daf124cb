"""The wheel carries the words and the migrations, and adds two importable names only."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_only_our_two_names_are_installed(wheel: zipfile.ZipFile) -> None:
    """Nothing but `app`, `loop_guards` and the metadata lands in site-packages."""
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"app", "loop_guards"}


@pytest.mark.parametrize("folder", ["prompts", "migrations"])
def test_data_travels_inside_app(wheel: zipfile.ZipFile, folder: str) -> None:
    """Every file of the folder, but for caches, is in the wheel, below `app`."""
    own = {
        f"app/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert own
    assert own <= set(wheel.namelist())


def test_all_code_travels(wheel: zipfile.ZipFile) -> None:
    """No file of the packages is left out, also not templates, tables and marker files."""
    own = {
        path.relative_to(ROOT).as_posix()
        for package in ("app", "loop_guards")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert own - set(wheel.namelist()) == set()
    assert {"app/py.typed", "app/__init__.py", "loop_guards/__init__.py"} <= own


def test_metadata_is_complete(wheel: zipfile.ZipFile) -> None:
    """The wheel names its licence, its Python, its command and its readme."""
    (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    metadata = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "# Mergeward" in metadata.get_payload()
    assert "mergeward = app.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
