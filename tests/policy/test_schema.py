"""The published schema and reference say what the parser does."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from app.domain.policy import Policy
from app.errors import PolicyError
from app.policy.document import read_document
from app.policy.load import parse_policy
from app.policy.schema import (
    REFERENCE_FILE,
    SCHEMA_FILE,
    policy_schema,
    schema_text,
    with_reference,
)

DOCS = Path(__file__).parents[2] / "docs"

VALID = [
    "mode: shadow",
    "handoff: {mode: off, targets: {red: {kind: builtin}}}",
    "limits: {budget: {usd: 2}}",
    "escalate_to: acme/team",
    "verify_command: [make, test]",
    "path_rules: [{paths: [a], instructions: b}]",
]
INVALID = [
    "mode: on",
    "mood: live",
    "handoff: {targets: {red: {kind: copilot}}}",
    "handoff: {targets: {Red: {kind: builtin}}}",
    "handoff: {targets: {}}",
    "limits: {max_fix_tasks: 101}",
    "limits: {budget: {usd: '2'}}",
    "escalate_to: '@acme'",
    "verify_command: make",
    "reviewers: {security: off}",
    "path_rules: [{paths: []}]",
]


def test_published_files_are_fresh() -> None:
    """`make docs` has been run since the policy last changed."""
    assert (DOCS / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text()
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    assert page == with_reference(page)


def test_the_reference_names_every_key() -> None:
    """No top-level key is missing from the page."""
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    assert [key for key in Policy.model_fields if f"| `{key}` |" not in page] == []


def test_the_example_of_the_page_is_valid() -> None:
    """The example that people copy is a valid policy and not the default one."""
    page = (DOCS / REFERENCE_FILE).read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    assert parse_policy(example) != Policy()


@pytest.mark.parametrize("text", VALID)
def test_schema_accepts_what_the_parser_accepts(text: str) -> None:
    """An editor does not underline a valid file."""
    assert isinstance(parse_policy(text), Policy)
    jsonschema.validate(read_document(text, "p").value, policy_schema())


@pytest.mark.parametrize("text", INVALID)
def test_schema_refuses_what_the_parser_refuses(text: str) -> None:
    """An editor underlines what the check run would complain about."""
    with pytest.raises(PolicyError):
        parse_policy(text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(read_document(text, "p").value, policy_schema())


def test_every_key_has_a_description() -> None:
    """Editors and the reference explain each key; a new key without words fails here."""
    schema = policy_schema()
    sections = {"Policy": schema, **schema["$defs"]}
    silent = [
        f"{section}.{key}"
        for section, node in sections.items()
        for key, value in node.get("properties", {}).items()
        if "description" not in value
    ]
    assert silent == []


def test_the_schema_is_itself_valid() -> None:
    """Editors can load it."""
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    assert yaml.safe_load(schema_text()) == policy_schema()
