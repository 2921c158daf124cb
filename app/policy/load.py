"""From the text of a policy file to the policy that holds, pure.

An error message is for the person who wrote the file: origin, line, key, what is wrong, what is
allowed. It quotes the file, so whoever publishes it neutralises it like any other untrusted text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from app.domain.policy import PATTERN_WORDS, POLICY_PATH, Policy
from app.errors import PolicyError
from app.policy.document import Document, JsonValue, Path, read_document

_MOST_PROBLEMS = 5


class PolicySource(StrEnum):
    """Which policy holds: the file's, the last one that could be read, or the built-in one."""

    FILE = "file"
    LAST_VALID = "last_valid"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy that holds, and what is wrong with the file if it is not the file's.

    `problem` is None when there is no file, or when it is valid.
    """

    policy: Policy
    source: PolicySource
    problem: str | None = None


def effective_policy(text: str | bytes | None, last_valid: str | bytes | None) -> EffectivePolicy:
    """The policy that holds for a repository whose file on the default branch is `text`.

    `text` is None when there is no file: then the defaults hold, whatever was valid before.
    `last_valid` is the text of the last file that could be read, None if there was none; it is
    used only when `text` can't be. Never raises for what the file says.
    """
    if text is None:
        return EffectivePolicy(Policy(), PolicySource.DEFAULT)
    try:
        return EffectivePolicy(parse_policy(text), PolicySource.FILE)
    except PolicyError as error:
        problem = str(error)
    if last_valid is not None:
        try:
            return EffectivePolicy(parse_policy(last_valid), PolicySource.LAST_VALID, problem)
        except PolicyError:  # valid for an earlier version of the product only
            pass
    return EffectivePolicy(Policy(), PolicySource.DEFAULT, problem)


def parse_policy(text: str | bytes, origin: str = POLICY_PATH) -> Policy:
    """Parse and check one policy file. An empty file is the default policy.

    Raises PolicyError naming `origin`, and line and key of up to five problems, one a line.
    """
    document = read_document(text, origin)
    if document.value is None:
        return Policy()
    if not isinstance(document.value, dict):
        raise PolicyError(f"{origin} line 1: a policy is a mapping of keys, such as `mode: live`.")
    try:
        # Through JSON: there, strict mode takes words for enums and lists for tuples, no more.
        return Policy.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True, include_input=False)
        raise PolicyError(_message(origin, document, problems)) from error


def _message(origin: str, document: Document, problems: list[ErrorDetails]) -> str:
    located = sorted(
        (
            (document.line_of(path), path, problem)
            for problem in problems
            for path in [_path(problem)]
        ),
        key=lambda item: item[0],
    )
    lines = [
        f"{origin} line {line}: {_key(path)}: {_what(path, problem, document.value)}"
        for line, path, problem in located[:_MOST_PROBLEMS]
    ]
    if (more := len(located) - _MOST_PROBLEMS) > 0:
        lines.append(f"{origin}: and {more} more.")
    return "\n".join(lines)


def _path(problem: ErrorDetails) -> Path:
    # A wrong key of a mapping is located as (key, "[key]").
    return tuple(part for part in problem["loc"] if part != "[key]")


def _key(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return _quotable(text)


_SHAPES = {
    "bool_type": "true or false",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "tuple_type": "a list",
    "model_type": "a mapping of keys",
    "dict_type": "a mapping of names",
    "mapping_type": "a mapping of names",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} character long",
    "string_too_long": "at most {max_length} characters long",
    "too_short": "at least {min_length} long",
    "too_long": "at most {max_length} long",
}
"""pydantic's kinds of error → what the value must be, in the words of someone who writes YAML."""


def _what(path: Path, problem: ErrorDetails, value: JsonValue) -> str:
    """One sentence: what is wrong with the value at `path`, and what is allowed there."""
    kind, context = problem["type"], problem.get("ctx", {})
    given = _quotable(json.dumps(_at(value, path), ensure_ascii=False))
    match kind:
        case "extra_forbidden":
            return _unknown_key(path, _at(value, path))
        case "missing":
            return "this key is required."
        case "value_error":
            return f"{context['error']}."
        case "enum":
            return f"{given} is not allowed; use one of: {_allowed(str(context['expected']))}."
        case "string_pattern_mismatch":
            wanted = PATTERN_WORDS[str(context["pattern"])]
            named = "the name" if problem["loc"][-1] == "[key]" else given
            return f"{named} is not allowed; it must be {wanted}."
        case _:
            wanted = _SHAPES.get(kind, "").format(**context)
            return (
                f"{given} is not allowed; {f'it must be {wanted}' if wanted else problem['msg']}."
            )


def _allowed(expected: str) -> str:
    # pydantic writes "'a', 'b' or 'c'"
    return expected.replace(" or ", ", ").replace("'", "")


def _unknown_key(path: Path, value: JsonValue) -> str:
    known = _known_keys(path[:-1])
    close = get_close_matches(str(path[-1]), known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    inside = [_quotable(key) for key in value] if isinstance(value, dict) else []
    ignored = f" Nothing in it is used: {', '.join(inside[:_MOST_PROBLEMS])}." if inside else ""
    return f"there is no such key.{hint}{ignored} Known here: {', '.join(known)}."


def _known_keys(path: Path) -> list[str]:
    """The keys that the mapping at `path` of a policy may have, in their defined order."""
    model: type[BaseModel] = Policy
    for part in path:
        field = model.model_fields.get(str(part))
        if field is not None and (inner := _model_in(field.annotation)) is not None:
            model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _at(value: JsonValue, path: Path) -> JsonValue:
    for part in path:
        match value, part:
            case dict(), str():
                value = value.get(part)
            case list(), int():
                value = value[part]
            case _:
                return None
    return value


def _quotable(text: str) -> str:
    """`text` on one line, without characters that do not print, and not longer than 80."""
    shown = "".join(character if character.isprintable() else "�" for character in text)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
