"""The pages people start from name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import AliasChoices

from app.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def variables() -> list[str]:
    """The environment variables that settings are read from."""
    found: list[str] = []
    for name, info in Settings.model_fields.items():
        alias = info.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [f"{PREFIX}{name}".upper()]
        found += [str(choice) for choice in choices if str(choice).isupper()]
    return found


def test_readme_names_every_setting_and_no_other() -> None:
    """The settings table is complete, and holds nothing that is not read."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## Settings")[1].split("\n## ")[0]
    assert set(re.findall(r"`([A-Z][A-Z_]+)`", table)) == set(variables())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link of a page points at a file or folder of the repository."""
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_make_targets_on_the_pages_exist() -> None:
    """Every `make …` that a page tells people to run is a target."""
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    told = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert told
    assert told <= targets
