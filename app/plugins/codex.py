"""The organisation's codex: rules that the compliance reviewer judges by, each with an id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.domain.policy import Glob

MOST_RULES = 200
MOST_BYTES = 128 * 1024

_ID = r"^[A-Z][A-Z0-9]{0,15}(?:-[A-Z0-9]{1,16}){1,4}$"
_WORD = re.compile(r"[A-Za-z0-9-]+")

RuleId = Annotated[str, StringConstraints(pattern=_ID)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Rule(_Document):
    """One rule. `id` is capital letters and digits with hyphens, such as ENG-001 or SEC-TLS-2;
    `paths` are globs as in `.gitignore`, none for a rule that holds everywhere."""

    id: RuleId
    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    text: Annotated[str, StringConstraints(max_length=2_000)] = ""
    paths: Annotated[list[Glob], Field(max_length=50)] = []


class _Rules(_Document):
    rules: Annotated[list[Rule], Field(max_length=MOST_RULES)]


@dataclass(frozen=True, slots=True)
class Codex:
    """All rules of a run, each id once."""

    rules: tuple[Rule, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(rule.id for rule in self.rules)

    @property
    def text(self) -> str:
        """The rules as agents read them."""
        return "\n\n".join(map(_rule, self.rules))

    def named_in(self, *texts: str) -> frozenset[str]:
        """The rules whose ids stand in the texts as words of their own, in any case of letters."""
        words = {word.upper().strip("-") for text in texts for word in _WORD.findall(text)}
        return self.ids & words


def parse_codex(document: bytes) -> Codex:
    """A codex from YAML (`rules:` with a list). Raises ValueError naming what is wrong."""
    if len(document) > MOST_BYTES:
        raise ValueError(f"the codex is larger than {MOST_BYTES:,} bytes")
    try:
        loaded = yaml.load(document.decode(), Loader=_NoAliases)  # noqa: S506 - a safe loader's child
        rules = _Rules.model_validate(loaded).rules
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"the codex is no YAML: {error}") from None
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise ValueError(f"the rule {rule.id} is there twice")
        seen.add(rule.id)
    return Codex(tuple(rules))


def merged(first: Codex, second: Codex) -> Codex:
    """Both, where the first one's words for an id count."""
    return Codex((*first.rules, *(rule for rule in second.rules if rule.id not in first.ids)))


class _NoAliases(yaml.SafeLoader):
    """References can make a small file endless."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("references (&, *) are not read")
        return super().compose_node(parent, index)


def _rule(rule: Rule) -> str:
    where = f" (for {', '.join(rule.paths)})" if rule.paths else ""
    lines: Iterable[str] = (f"{rule.id}: {rule.title}{where}", rule.text.strip())
    return "\n".join(line for line in lines if line)
