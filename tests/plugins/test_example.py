"""The example of docs/examples is installed for real, found by its entry point, and tested."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.cli_stage import HARMLESS, KEY, Checkout, scripted_model

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "migrations-reviewer"

FOUND = """
import asyncio
from app.domain.runs import AgentName, Tier
from app.plugins.configured import plugins_of
from app.plugins.facts import RunFacts, RunKind, no_file
from app.settings import load_settings

host = plugins_of(load_settings(anthropic_api_key="a" * 20))
made = asyncio.run(host.configured(RunFacts(RunKind.PULL_REQUEST, "acme/shop"), no_file))
agent = AgentName("acme_migrations")
print(",".join(plugin.name for plugin in host.plugins))
print(made.system_of(agent).version)
print(made.routing.chain_for(agent, Tier.LITE).models[0])
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's wheel, built and unpacked into a folder of its own by pip, offline."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--no-compile")
    run(
        ("-m", "pip", "install", *options, "--target", str(folder / "site"), str(folder / "source"))
    )
    return folder


def run(
    arguments: Sequence[str],
    *paths: Path,
    cwd: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> str:
    """A Python process that sees the repository and `paths`, and no key of anybody's."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    env = {**kept, "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT))), **(more or {})}
    done = subprocess.run(
        (sys.executable, *arguments), cwd=cwd, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_found_by_its_entry_point(installed: Path) -> None:
    """Nothing but its installation makes its reviewer a part of each run's configuration."""
    names, version, model = run(("-c", FOUND), installed / "site").splitlines()
    assert names.split(",")[-1] == "migrations"
    assert version.startswith("acme_migrations@1+reviewer_shared@")
    assert model.startswith("claude-")


def test_without_it_there_is_none() -> None:
    """The same process without the package knows no such plugin."""
    with pytest.raises(AssertionError, match=r"AttributeError|acme_migrations"):
        run(("-c", FOUND))


def test_its_own_tests_pass(installed: Path) -> None:
    """As its author would run them."""
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib")
    said = run(
        ("-m", "pytest", *options, str(installed / "source" / "tests")),
        installed / "site",
        cwd=installed / "source",
    )
    assert "3 passed" in said


def test_its_reviewer_takes_part_in_a_review(installed: Path, tmp_path: Path) -> None:
    """The command as a person runs it, on a change with a migration and on one without."""
    checkout = Checkout.create(tmp_path / "shop")
    with scripted_model("review") as url:
        told = []
        for files in ({"a.py": HARMLESS}, {"migrations/7.sql": "DROP TABLE users;\n"}):
            checkout.commit(files)
            base = ("--base", "HEAD~1", "--format", "json")
            arguments = ("-m", "app.cli", "review", *base, str(checkout.path))
            variables = {"MERGEWARD_MODEL_BASE_URL": url, "MERGEWARD_MODEL_API_KEY": KEY}
            document = json.loads(run(arguments, installed / "site", more=variables))
            told.append("acme_migrations" in json.dumps(document))
            assert document["coverage"]["full"]
    assert told == [False, True]
