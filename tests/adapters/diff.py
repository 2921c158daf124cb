"""`diff`: text of a diff, or one entry of the API's file list, to files with their lines."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.agents.numbered import numbered_patch
from app.agents.workspace import ANSWER_CHARS
from app.domain.diff import FileChange
from app.git.diff import parse_diff
from tests.adapters.case import Case, only_knows
from tests.adapters.diff_text import ranges, with_header

ENDS = {(True, False): "old", (False, True): "new", (True, True): "both", (False, False): None}


async def check(case: Case, _: Path) -> None:
    files = parse_diff(_raw(case.input)).files
    only_knows(case.expect, "files", "prompt_text_contains", "prompt_text_max_characters")
    assert len(files) == len(case.expect["files"])
    for file, wanted in zip(files, case.expect["files"], strict=True):
        assert {key: _value(file, key, value) for key, value in wanted.items()} == wanted
    prompt = "\n".join(numbered_patch(file.patch, ANSWER_CHARS).text for file in files)
    assert len(prompt) <= case.expect.get("prompt_text_max_characters", len(prompt))
    assert all(text in prompt for text in case.expect.get("prompt_text_contains", ()))


def _raw(given: Mapping[str, Any]) -> bytes:
    if "diff_base64" in given:
        return base64.b64decode(given["diff_base64"])
    if "list_files_entry" in given:
        return with_header(given["list_files_entry"])
    text: str = given["diff"] if "diff" in given else given["diff_template"]
    for key, what in given.get("replace", {}).items():
        text = text.replace(key, what["character"] * what["times"])
    return text.encode("utf-8", "surrogateescape")


def _value(file: FileChange, key: str, wanted: Any) -> Any:
    lines = [line for hunk in file.hunks for line in hunk.lines]
    match key:
        case "right_lines":
            return ranges(line.new for line in lines)
        case "added_lines":
            return ranges(line.new for line in lines if line.old is None)
        case "removed_lines":
            return ranges(line.old for line in lines if line.new is None)
        case "line_text":
            return {number: file.text_at(number) for number in wanted}
        case "no_newline_at_end":
            return ENDS[file.no_newline_at_end]
        case "status":
            return file.status.value
        case _:
            return getattr(file, key)
