"""A prompt's version names one text: findings are traced to it (`prompts/*.md`).

After a wanted change: raise the file's `version`, run `MERGEWARD_WRITE_GOLDEN=1 pytest
tests/prompts`, and commit `versions.json` with it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from app.agents.prompts import load_prompt, prompts_directory

RECORD = Path(__file__).with_name("versions.json")
NAMES = sorted(path.stem for path in prompts_directory().glob("*.md"))


def problem(version: int, digest: str, known: dict[str, object] | None) -> str | None:
    """What is wrong with a text of this version, if its last recorded one was `known`."""
    if known is None or (version, digest) == (known["version"], known["sha256"]):
        return None
    if digest != known["sha256"] and version == known["version"]:
        return "its text changed: raise `version` in its front matter"
    if version < int(str(known["version"])):
        return f"its version went back from {known['version']}"
    return "not recorded: MERGEWARD_WRITE_GOLDEN=1 pytest tests/prompts"


@pytest.mark.parametrize(
    ("version", "digest", "words"),
    [
        pytest.param(2, "a", None, id="as-recorded"),
        pytest.param(2, "b", "raise", id="changed-text"),
        pytest.param(3, "b", "not recorded", id="raised"),
        pytest.param(1, "a", "went back", id="lowered"),
    ],
)
def test_what_is_noticed(version: int, digest: str, words: str | None) -> None:
    """A changed text with an unchanged version is the one thing nobody can repair later."""
    said = problem(version, digest, {"version": 2, "sha256": "a"})
    assert (said is None) if words is None else (said is not None and words in said)


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_text_has_a_new_version(name: str) -> None:
    """Of every prompt there is, notes and tool texts included."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    prompt = load_prompt(name)
    digest = hashlib.sha256(prompt.text.encode()).hexdigest()
    known = record.get(name)
    said = problem(prompt.version, digest, known)
    if os.environ.get("MERGEWARD_WRITE_GOLDEN") and (said is None or said.startswith("not")):
        record[name] = {"version": prompt.version, "sha256": digest}
        RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n", "utf-8")
        return
    assert known is not None, f"prompts/{name}.md: not recorded"
    assert said is None, f"prompts/{name}.md: {said}"


def test_no_record_is_left_over() -> None:
    """Of prompts that are gone."""
    assert set(json.loads(RECORD.read_text(encoding="utf-8"))) == set(NAMES)
