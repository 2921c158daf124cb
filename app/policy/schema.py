"""The policy's published forms, made from its model: the JSON Schema and the reference in words.

`make docs` writes them (`python -m app.policy.schema docs`); a test fails while they are stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from app.domain.policy import NEVER_SEND, Policy

SCHEMA_FILE = "schema/mergeward.schema.json"
REFERENCE_FILE = "policy.md"

_TITLE = "Mergeward policy"
_BEGIN = "<!-- begin: made by `make docs` from app/domain/policy.py -->\n"
_END = "<!-- end -->"
_HEAD = "| key | value | default | meaning |\n| --- | --- | --- | --- |"


def policy_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the policy file, every key with its description."""
    schema = _tidy(Policy.model_json_schema(mode="validation"))
    assert isinstance(schema, dict)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": _TITLE, **schema}


def schema_text() -> str:
    """`policy_schema` as the published file has it."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def with_reference(page: str) -> str:
    """`page` with the lines between its two markers replaced by a table of all keys."""
    schema = policy_schema()
    table = "\n".join([_HEAD, *_rows(schema, schema["properties"], "")])
    withheld = ", ".join(f"`{glob}`" for glob in NEVER_SEND)
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table}\n\nWithheld without being asked: {withheld}\n\n{_END}{after}"


def _tidy(node: object) -> object:
    """Descriptions on one line, and no titles that only repeat a key's name."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items()}
    description = tidy.get("description")
    if isinstance(description, str):
        tidy["description"] = " ".join(description.split())
    if isinstance(tidy.get("title"), str):
        del tidy["title"]
    if "patternProperties" in tidy:  # pydantic allows other names beside them, the policy does not
        tidy["additionalProperties"] = False
    return tidy


def _rows(schema: dict[str, Any], properties: dict[str, Any], prefix: str) -> list[str]:
    rows = []
    for key, node in properties.items():
        target = _resolve(schema, node)
        name = f"{prefix}{key}"
        meaning = node.get("description", "").replace("|", "\\|")
        rows.append(f"| `{name}` | {_type(schema, node)} | {_default(node)} | {meaning} |")
        if "properties" in target:
            rows += _rows(schema, target["properties"], f"{name}.")
        for suffix, inner in (("[].", target.get("items")), (".NAME.", _named(target))):
            item = _resolve(schema, inner) if inner else {}
            rows += _rows(schema, item.get("properties", {}), f"{name}{suffix}")
    return rows


def _named(target: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of the values of a mapping from names; None for other mappings."""
    values = [target.get("additionalProperties"), *target.get("patternProperties", {}).values()]
    return next((value for value in values if isinstance(value, dict)), None)


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """What `node` refers to; of "this or null", this."""
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    if options:
        return _resolve(schema, options[0])
    if "$ref" in node:
        found: dict[str, Any] = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return found
    return node


def _type(schema: dict[str, Any], node: dict[str, Any]) -> str:
    target = _resolve(schema, node)
    if words := node.get("enum") or target.get("enum"):
        return " \\| ".join(f"`{word}`" for word in words)
    match target.get("type"):
        case "array":
            return f"list of {_type(schema, target['items'])}"
        case "object":
            return "names" if _named(target) else "keys"
        case "integer":
            return f"{target['minimum']} … {target['maximum']}"
        case "boolean":
            return "`true` \\| `false`"
        case "string":
            return "text"
        case _:
            return "number"


def _default(node: dict[str, Any]) -> str:
    default = node.get("default")
    if isinstance(default, dict) or default is None:
        return ""
    return f"`{json.dumps(default) if not isinstance(default, str) else default}`"


def write_files(folder: Path) -> None:
    """Bring the published forms in `folder`, the repository's `docs`, up to date."""
    (folder / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    page = folder / REFERENCE_FILE
    page.write_text(with_reference(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
