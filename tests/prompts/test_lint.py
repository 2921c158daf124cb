"""Every prompt is held to the same sharpness, and the rule that holds it can fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.agents.prompt_context import shared_context
from app.agents.prompts import REVIEWERS, load_prompt, render_system
from app.agents.sanitise import BOUNDARY_TAGS
from app.agents.tasks import limits_for
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from tests.prompts.example import context, fixer_task, results, tasks
from tests.prompts.lint import Prompt, lint, lint_domains, lint_meanings

Edit = Callable[[str], str]


def written(text: str) -> set[str]:
    """The boundary tags that stand in a text."""
    return set(re.findall(rf"^<({'|'.join(BOUNDARY_TAGS)})>$", text, re.MULTILINE))


def handed() -> dict[AgentName, frozenset[str]]:
    """What each agent of the example is handed, by the tags around it: in its first message, in the
    file of the reviewers, and in the answer of the coordinator's tool."""
    found = {AgentName.FIXER: written(fixer_task().prompt)}
    file = written(shared_context(asyncio.run(context())))
    for tier in Tier:
        for agent, task in asyncio.run(tasks(tier)).items():
            beside = written(results()) if agent == AgentName.COORDINATOR else file
            found[agent] = written(task.prompt) | beside
    return {agent: frozenset(tags) for agent, tags in found.items()}


HANDED = handed()


def prompt_of(agent: AgentName) -> Prompt:
    own = load_prompt(agent.value)
    common = [load_prompt("REVIEWER_SHARED")] if agent in REVIEWERS else []
    inputs = frozenset(name for file in (own, *common) for name in file.inputs)
    shared = "".join(file.text for file in common)
    return Prompt(agent.value, own.text, shared, HANDED[agent], inputs)


@pytest.mark.parametrize("agent", SHIPPED_AGENTS)
def test_a_prompt_has_no_fault(agent: AgentName) -> None:
    """Lists, severities, evidence, tags and form."""
    assert lint(prompt_of(agent)) == []


def test_each_category_has_one_owner() -> None:
    """Reviewers and coordinator are told the same of it."""
    owned = {agent.value: load_prompt(agent.value).text for agent in sorted(REVIEWERS)}
    assert lint_domains(owned, load_prompt("coordinator").text) == []


def test_a_severity_means_one_thing() -> None:
    """To reviewers and coordinator alike; where it does not, it is told which."""
    shared, judge = load_prompt("REVIEWER_SHARED").text, load_prompt("coordinator").text
    assert lint_meanings(shared, judge) == []
    [fault] = lint_meanings(shared, judge.replace("a failure under plausible load, ", ""))
    assert fault.startswith("coordinator: warning does not mean")


@pytest.mark.parametrize("agent", sorted({*REVIEWERS, AgentName.COORDINATOR}))
def test_a_session_ends_when_it_is_said_to(agent: AgentName) -> None:
    """The number of messages that a prompt names is the one that the runtime holds."""
    most = limits_for(agent).model_calls
    assert f"After {most} messages of yours the session is over" in render_system(agent).text


def test_every_tag_is_handed_to_somebody() -> None:
    """The example leaves no boundary tag out, so that what it shows is all there is."""
    assert frozenset().union(*HANDED.values()) == set(BOUNDARY_TAGS)


def without(heading: str, kept: int) -> Edit:
    """Leaves `kept` items of a list."""

    def edit(text: str) -> str:
        head, rest = text.split(f"### {heading}\n", 1)
        items = re.findall(r"^- .+\n", rest.split("\n###", 1)[0], re.MULTILINE)
        for item in items[kept:]:
            rest = rest.replace(item, "", 1)
        return f"{head}### {heading}\n{rest}"

    return edit


def swapped(pattern: str, new: str) -> Edit:
    """Replaces every match, of which there must be one at least."""

    def edit(text: str) -> str:
        changed, count = re.subn(pattern, new, text, flags=re.MULTILINE | re.DOTALL)
        assert count, pattern
        return changed

    return edit


@pytest.mark.parametrize(
    ("part", "edit", "words"),
    [
        pytest.param("own", without("What to flag", 4), "'What to flag' has 4", id="four-to-flag"),
        pytest.param(
            "own", without("What not to flag", 4), "'What not to flag' has 4", id="four-not-to-flag"
        ),
        pytest.param(
            "own", swapped("^### What not to flag$", "### Silence"), "no list", id="no-list"
        ),
        pytest.param(
            "own",
            swapped(r"^(### What not to flag\n\n)(- [^\n]+\n)", r"\1\2\2"),
            "an item stands twice",
            id="twice",
        ),
        pytest.param(
            "own", swapped("^### Severity here$", "### Rank"), "no section 'Sev", id="no-severity"
        ),
        pytest.param(
            "own",
            swapped(r"^- `suggestion`: [^\n]+\n?", ""),
            "no example of a finding that is suggestion",
            id="no-example",
        ),
        pytest.param(
            "own",
            swapped(r"^- `critical`: [^\n]+$", '- `critical`: "SQL injection at `a.py:3`."'),
            "an example of critical names no failure",
            id="example-without-failure",
        ),
        pytest.param(
            "own",
            swapped(r":\d+`", "`"),
            "no example of critical says where",
            id="example-without-place",
        ),
        pytest.param(
            "own",
            swapped(r'^- `warning`: "', '- `warning`: "It could perhaps be that '),
            "an example of warning is itself in doubt",
            id="example-in-doubt",
        ),
        pytest.param(
            "shared",
            swapped(r"^\| `warning` \|[^\n]+\n", ""),
            "the severity warning is not defined",
            id="no-definition",
        ),
        pytest.param(
            "shared",
            swapped(r"^\| `critical` \|[^|]+\|", "| `critical` | Something bad. |"),
            "the severity critical names no failure",
            id="vague-definition",
        ),
        pytest.param(
            "shared",
            swapped(r"^(\| `critical` \|[^|]+)\|[^|]+\|$", r"\1|  |"),
            "the severity critical does not say what must be shown",
            id="no-demand",
        ),
        pytest.param(
            "shared", swapped(r"^- `evidence`: [^\n]+\n", ""), "no evidence rule", id="no-evidence"
        ),
        pytest.param(
            "shared",
            swapped("letter by letter", "roughly"),
            "does not ask for the code letter by letter",
            id="loose-evidence",
        ),
        pytest.param(
            "shared",
            swapped("`<added_context>`", "what else there is"),
            "<added_context> stands around",
            id="tag-unexplained",
        ),
        pytest.param(
            "own",
            swapped("^### What to flag$", "Read `<pr_files>`.\n\n### What to flag"),
            "<pr_files> is named",
            id="tag-unknown",
        ),
        pytest.param(
            "shared",
            swapped("^- `also` names", "- Others are"),
            "the field also is not explained",
            id="field-unexplained",
        ),
        pytest.param(
            "shared",
            swapped(r"^<also>[^\n]+\n", ""),
            "does not show <also>",
            id="field-not-shown",
        ),
        pytest.param(
            "shared",
            swapped(r"^<evidence>", "<proof>x</proof>\n<evidence>"),
            "shows <proof>, which nobody reads",
            id="field-unread",
        ),
        pytest.param(
            "shared", swapped("^<findings>\n", "<report>\n"), "can't be read", id="unreadable"
        ),
        pytest.param(
            "shared",
            swapped("<severity>warning<", "<severity>grave<"),
            "severity 'grave' is unknown",
            id="unknown-severity",
        ),
    ],
)
def test_what_a_reviewer_s_prompt_must_not_lack(part: str, edit: Edit, words: str) -> None:
    """Each break of a good prompt is told, with the agent's name."""
    for agent in (AgentName.SECURITY, AgentName.RELEASE):
        good = prompt_of(agent)
        changed = {part: edit(getattr(good, part))}
        faults = lint(replace(good, **changed))  # type: ignore[arg-type]  # one of its texts
        assert any(fault.startswith(f"{agent}: ") and words in fault for fault in faults), faults


@pytest.mark.parametrize(
    ("agent", "edit", "words"),
    [
        pytest.param(
            AgentName.COORDINATOR,
            swapped("^<trivial>true</trivial>\n", ""),
            "does not show <trivial>",
            id="no-mark",
        ),
        pytest.param(
            AgentName.COORDINATOR,
            swapped(' source="[^"]+"', ""),
            "no finding with source",
            id="no-source",
        ),
        pytest.param(
            AgentName.COORDINATOR, swapped(' id="F2">\n<path>', ">\n<path>"), "with id=", id="no-id"
        ),
        pytest.param(
            AgentName.COORDINATOR,
            swapped("^<dropped>.*</dropped>\n", ""),
            "drops nothing",
            id="no-dropped",
        ),
        pytest.param(
            AgentName.COORDINATOR,
            swapped("^- `hedged`: ", "- "),
            "the reason hedged is not explained",
            id="no-reason",
        ),
        pytest.param(
            AgentName.COORDINATOR,
            swapped("^- `acknowledged`: ", "- "),
            "state acknowledged is not explained",
            id="no-state",
        ),
        pytest.param(
            AgentName.FIXER, swapped("^<fix_report>", "<report>"), "can't be read", id="fix-report"
        ),
        pytest.param(
            AgentName.FIXER, swapped("^<declined.*</declined>\n", ""), "lacks one of", id="declined"
        ),
    ],
)
def test_what_the_others_must_not_lack(agent: AgentName, edit: Edit, words: str) -> None:
    """The same for those who have their own form."""
    good = prompt_of(agent)
    faults = lint(replace(good, own=edit(good.own)))
    assert any(fault.startswith(f"{agent}: ") and words in fault for fault in faults), faults


def test_inputs_are_what_is_handed() -> None:
    """A front matter that forgets a tag, or has one too many, is told."""
    good = prompt_of(AgentName.SECURITY)
    [fault] = lint(replace(good, inputs=good.inputs ^ {"pr_body", "fix_task"}))
    assert fault.endswith("not what it is handed: fix_task, pr_body")


@pytest.mark.parametrize(
    ("agent", "edit", "words"),
    [
        pytest.param("security", swapped("`ssrf`, ", ""), "security: the coordinator's", id="less"),
        pytest.param(
            "security", swapped("`ssrf`, ", "`ssrf`, `hops`, "), "does not give hops", id="more"
        ),
        pytest.param(
            "performance", swapped("`query`, ", "`query`, `data`, "), "code_quality's", id="shared"
        ),
        pytest.param("general", swapped("`query`, ", "`speed`, "), "speed is nobody's", id="none"),
        pytest.param("release", swapped("Categories: ", "Kinds: "), "no line 'Cat", id="no-line"),
    ],
)
def test_domains_that_disagree(agent: str, edit: Edit, words: str) -> None:
    """What two prompts say of one category is the same, or it is told whose is wrong."""
    owned = {name.value: load_prompt(name.value).text for name in sorted(REVIEWERS)}
    owned[agent] = edit(owned[agent])
    faults = lint_domains(owned, load_prompt("coordinator").text)
    assert any(words in fault for fault in faults), faults
