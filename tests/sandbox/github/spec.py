"""Judging answers by GitHub's OpenAPI description."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

SOURCE = Path(__file__).parents[2] / "data" / "openapi" / "github.json"


def with_null(value: Any) -> Any:
    """OpenAPI 3.0's `nullable` in the words of JSON Schema."""
    if isinstance(value, list):
        return [with_null(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: with_null(item) for key, item in value.items() if key != "nullable"}
    if value.get("nullable") is not True:
        return inner
    return {"anyOf": [inner, {"type": "null"}]}


@cache
def document() -> Any:
    """The description, converted."""
    return with_null(json.loads(SOURCE.read_text(encoding="utf-8")))


@cache
def _registry() -> Registry[Any]:
    empty: Registry[Any] = Registry()
    filled: Registry[Any] = empty.with_resource(
        "urn:github", DRAFT202012.create_resource(document())
    )
    return filled


def violations(method: str, path: str, status: int, body: object) -> list[str]:
    """What the description says against an answer; undocumented answers are a violation too."""
    responses = document()["paths"].get(path, {}).get(method.lower(), {}).get("responses", {})
    if str(status) not in responses:
        return [f"{method} {path} does not document status {status}"]
    where = f"#/paths/{_escaped(path)}/{method.lower()}/responses/{status}"
    response = responses[str(status)]
    if "$ref" in response:
        where = response["$ref"]
        _, kind, name = where.removeprefix("#/").split("/")
        response = document()["components"][kind][name]
    if "content" not in response:
        return [] if body is None else ["a body where none is documented"]
    media = _escaped(next(iter(response["content"])))
    schema = {"$ref": f"urn:github{where}/content/{media}/schema"}
    validator = Draft202012Validator(schema, registry=_registry(), format_checker=FormatChecker())
    return [f"{e.json_path}: {e.message[:300]}" for e in validator.iter_errors(body)]


def _escaped(name: str) -> str:
    pointer = name.replace("~", "~0").replace("/", "~1")
    return pointer.replace("{", "%7B").replace("}", "%7D")
