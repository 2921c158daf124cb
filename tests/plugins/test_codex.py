"""The codex, and what becomes of findings that name no rule of it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.prompt_context import AddedContext
from app.domain.runs import AgentName
from app.errors import PluginError
from app.plugins.builtin.compliance import REPOSITORY_FILE, CompliancePlugin
from app.plugins.codex import MOST_RULES, Codex, Rule, merged, parse_codex
from app.plugins.configuration import RunConfiguration
from app.plugins.fetch import Fetcher
from app.plugins.lifecycle import PluginHost
from tests.plugins.factories import FACTS, Made, base

DOCUMENT = b"""
rules:
  - id: ENG-001
    title: Handlers are thin
    text: A handler calls one function of the domain and no database.
    paths: ["app/api/*"]
  - id: SEC-TLS-2
    title: No plain HTTP
"""


def test_rules_are_read_with_their_ids() -> None:
    """As agents read them: id first, then where it holds."""
    codex = parse_codex(DOCUMENT)
    assert codex.ids == {"ENG-001", "SEC-TLS-2"}
    assert codex.text == (
        "ENG-001: Handlers are thin (for app/api/*)\n"
        "A handler calls one function of the domain and no database.\n\n"
        "SEC-TLS-2: No plain HTTP"
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(b"rules: 3", "rules", id="no-list"),
        pytest.param(b"- id: ENG-1", "dictionary", id="no-mapping"),
        pytest.param(b"rules: [{id: eng-1, title: x}]", "rules.0.id", id="lower-case"),
        pytest.param(b"rules: [{id: ENG, title: x}]", "rules.0.id", id="a-word"),
        pytest.param(b"rules: [{id: ENG-1, title: ''}]", "rules.0.title", id="no-title"),
        pytest.param(b"rules: [{id: ENG-1, titel: x}]", "rules.0", id="unknown-key"),
        pytest.param(
            b"rules: [{id: ENG-1, title: x}, {id: ENG-1, title: y}]", "ENG-1 is there twice",
            id="twice",
        ),
        pytest.param(b"rules: &a [*a]", "references", id="endless"),
        pytest.param(b"rules: !!python/object/apply:os.system [x]", "no YAML", id="code"),
        pytest.param(b"\xff\xfe", "no YAML", id="bytes"),
        pytest.param(b"x" * 200_000, "larger than", id="large"),
        pytest.param(b"[" * 5_000, "no YAML", id="deep"),
        pytest.param(
            b"rules:\n" + b"".join(b"- {id: E-%d, title: x}\n" % n for n in range(MOST_RULES + 1)),
            "rules",
            id="too-many",
        ),
    ],
)  # fmt: skip
def test_what_is_no_codex(document: bytes, words: str) -> None:
    """The message says what is wrong; nothing of the document is run, and none of it is endless."""
    with pytest.raises(ValueError, match=words):
        parse_codex(document)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("ENG-001: a database call", True, id="first"),
        pytest.param("breaks [eng-001].", True, id="any-case"),
        pytest.param("(see ENG-001)", True, id="in-brackets"),
        pytest.param("- ENG-001- a call", True, id="hyphens-around"),
        pytest.param("ENG-0011 is not ours", False, id="longer"),
        pytest.param("XENG-001", False, id="within"),
        pytest.param("ENG-999 is invented", False, id="invented"),
        pytest.param("rule ENG 001", False, id="apart"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_rule_is_named_by_its_whole_id(text: str, named: bool) -> None:
    """A number that merely begins alike names nothing."""
    assert bool(parse_codex(DOCUMENT).named_in("compliance", text)) == named


@given(st.text())
def test_only_known_rules_are_ever_found(text: str) -> None:
    """Whatever a model writes."""
    codex = parse_codex(DOCUMENT)
    assert codex.named_in(text) <= codex.ids


async def compliance(
    source: str | None, file: bytes | None, fetcher: Fetcher | None = None
) -> RunConfiguration:
    async def read(path: str) -> bytes | None:
        return file if path == REPOSITORY_FILE else None

    plugin = CompliancePlugin(source, fetcher or Fetcher())
    return await PluginHost((base(), plugin)).configured(FACTS, read)


async def test_the_codex_of_a_file_and_of_the_repository(tmp_path: Path) -> None:
    """The repository adds rules; the words of the organisation's own cannot be changed there."""
    ours = tmp_path / "codex.yml"
    ours.write_bytes(DOCUMENT)
    theirs = b"rules: [{id: ENG-001, title: Handlers may be fat}, {id: SHOP-1, title: In cents}]"
    made = await compliance(str(ours), theirs)
    assert made.codex.ids == {"ENG-001", "SEC-TLS-2", "SHOP-1"}
    assert "fat" not in made.codex.text
    [section] = made.context.added
    assert section == AddedContext(
        "compliance",
        "Codex",
        made.codex.text,
        frozenset({AgentName.COMPLIANCE, AgentName.COORDINATOR}),
    )


async def test_the_codex_of_an_address() -> None:
    """Fetched like every document of an operator's."""

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return ("93.184.216.34",)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=DOCUMENT))
    fetcher = Fetcher(resolve=resolve, transport=transport)
    made = await compliance("https://codex.acme.test/rules.yml", None, fetcher)
    assert made.codex.ids == {"ENG-001", "SEC-TLS-2"}


@pytest.mark.parametrize(
    ("source", "file"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("/nowhere/codex.yml", None, id="no-file"),
        pytest.param(None, b"rules: 3", id="a-bad-file-of-the-repository"),
    ],
)
async def test_a_codex_that_cannot_be_read_ends_no_run(
    source: str | None, file: bytes | None
) -> None:
    """The review goes on without it: a repository can't switch off its reviews by a bad file."""
    made = await compliance(source, file)
    assert not made.codex.rules
    assert made.context.added == ()


async def test_one_plugin_gives_the_codex() -> None:
    """Two would contradict each other."""
    codex = parse_codex(DOCUMENT)
    with pytest.raises(PluginError, match="both give the codex"):
        await PluginHost(
            (base(), *(Made(name, lambda c: c.codex(codex)) for name in ("a", "b")))
        ).configured(FACTS, _nothing)


def test_merging_keeps_each_id_once() -> None:
    """The first one's words count."""
    one, two = Codex((Rule(id="A-1", title="x"),)), Codex((Rule(id="A-1", title="y"),))
    assert merged(one, two) == one


async def _nothing(_: str) -> bytes | None:
    return None
