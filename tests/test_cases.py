"""Small inputs for failures seen in real review apps: every YAML file of a folder, by its kind.

`MERGEWARD_CASES_DIR` names another folder than `tests/cases`, relative to the repository's root.
A kind is read by `tests/adapters/<kind>.py`, which only translates: it feeds the input to what the
product runs and compares with what the case expects. A kind without one fails here.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.adapters.case import Case

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / os.environ.get("MERGEWARD_CASES_DIR", "tests/cases")


def load(folder: Path) -> list[Case]:
    """All cases below the folder, in the order of their files."""
    return [
        Case(file=path, **{key: data[key] for key in ("id", "kind", "input", "expect")})
        for path in sorted(folder.rglob("*.yaml"))
        if (data := yaml.safe_load(path.read_text(encoding="utf-8")))
    ]


def adapter_of(case: Case) -> Callable[[Case, Path], Awaitable[None]]:
    name = f"tests.adapters.{case.kind.replace('-', '_')}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        pytest.fail(f"{case.file}: the kind {case.kind!r} has no adapter ({name})", pytrace=False)
    return cast("Callable[[Case, Path], Awaitable[None]]", module.check)


@pytest.mark.parametrize("case", load(FOLDER), ids=lambda case: f"{case.kind}-{case.file.stem}")
async def test_case(case: Case, tmp_path: Path) -> None:
    """The product does what the case expects."""
    await adapter_of(case)(case, tmp_path)


def test_the_folder_holds_cases() -> None:
    """A wrong folder is not a pass."""
    assert load(FOLDER), f"there are no cases below {FOLDER}"


def test_an_unknown_kind_fails(tmp_path: Path) -> None:
    """The message names the kind and the file."""
    case = Case(tmp_path / "1.yaml", 1, "telepathy", {}, {})
    with pytest.raises(pytest.fail.Exception, match=r"1\.yaml.*'telepathy'"):
        adapter_of(case)
