"""One case as its file says it, and comparisons that several kinds share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    file: Path
    id: int
    kind: str
    input: Mapping[str, Any]
    expect: Mapping[str, Any]


KNOWN = {"must_match", "must_not_match", "must_contain", "never_contains", "must_contain_one_of"}


def compare_text(text: str, expect: Mapping[str, Any]) -> None:
    """The expectations about one text that `expect` names."""
    for pattern in expect.get("must_match", ()):
        assert re.search(pattern, text), (pattern, text)
    for pattern in expect.get("must_not_match", ()):
        assert not re.search(pattern, text), (pattern, text)
    for words in expect.get("must_contain", ()):
        assert words in text, (words, text)
    for words in expect.get("never_contains", ()):
        assert words not in text, (words, text)
    if one_of := expect.get("must_contain_one_of"):
        assert any(words in text for words in one_of), (one_of, text)


def only_knows(expect: Mapping[str, Any], *keys: str) -> None:
    """An expectation that an adapter does not read is no pass."""
    assert set(expect) <= set(keys), f"not read by the adapter: {set(expect) - set(keys)}"
