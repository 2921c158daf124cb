"""What a prompt must hold to be one of ours. Functions of text: each fault names agent and lack.

A prompt that passes says what to flag and what not, gives a worked example of each severity, tells
what proves a finding, explains every tag that it is handed, and shows a form that our own parser
reads without a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from app.agents.finding_fields import FIELDS
from app.agents.findings_xml import (
    ParsedFindings,
    ParsedReview,
    ParseOutcome,
    parse_findings,
    parse_fix_report,
    parse_review,
)
from app.agents.hedging import is_hedged
from app.agents.sanitise import BOUNDARY_TAGS
from app.domain.findings import (
    CarriedState,
    DropReason,
    Location,
    ReportedFinding,
)
from loop_guards import Severity

LEAST_ITEMS = 5
LEAST_WORDS = 8
"""Of a definition or an example: fewer name no failure."""

FOR_COORDINATOR = frozenset({"trivial", "production_risk"})
"""Fields that a reviewer does not write."""

_DOUBT = re.compile(
    r"\b(?:could|might|may|possibly|potentially|perhaps|in theory)\b", re.IGNORECASE
)
_PLACE = re.compile(r"`[\w./-]+:\d+`")
_FIELD_TAG = re.compile(r"<([a-z_]+)>")
_CATEGORY = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")


@dataclass(frozen=True, slots=True)
class Prompt:
    """An agent's prompt: its own text, the part it shares (""), the boundary tags that the code
    writes around what it is handed, and those that its front matter names as its inputs."""

    agent: str
    own: str
    shared: str
    tags: frozenset[str]
    inputs: frozenset[str]

    @property
    def text(self) -> str:
        return f"{self.shared}\n{self.own}"

    @property
    def is_reviewer(self) -> bool:
        return bool(self.shared)


def lint(prompt: Prompt) -> list[str]:
    """Every fault of one prompt, in words that begin with its agent."""
    rules: tuple[Callable[[Prompt], Iterator[str]], ...] = (_lists, _severities, _tags)
    if prompt.agent != "fixer":
        rules += (_evidence,)
    rules += (_form_of(prompt),)
    return [f"{prompt.agent}: {fault}" for rule in rules for fault in rule(prompt)]


def lint_domains(owned: Mapping[str, str], coordinator: str) -> list[str]:
    """Faults between prompts: who owns which category, as reviewers and coordinator are told.

    `owned` are the reviewers' texts by agent; `general` has no domain of its own and uses what the
    others own.
    """
    table = {
        name.strip().lower().replace(".", "_").replace(" ", "_"): set(_CATEGORY.findall(cell))
        for name, cell in re.findall(
            r"^\| ([\w. ]+?) \|[^|\n]*\|([^|\n]*)\|$",
            section(coordinator, "Whose finding it is") or "",
            re.MULTILINE,
        )
    }
    faults = []
    owners: dict[str, str] = {}
    for agent, text in owned.items():
        told = categories(text)
        if not told:
            faults.append(f"{agent}: no line 'Categories: `…`' (or 'category … is `…`')")
        if agent == "general":
            foreign = told - set().union(*table.values())
            faults += [f"general: the category {name} is nobody's" for name in sorted(foreign)]
            continue
        known = table.get(agent, set())
        faults += [
            f"coordinator: its table does not give {name} to {agent}"
            for name in sorted(told - known)
        ]
        faults += [
            f"{agent}: the coordinator's table gives it {name}, of which it knows nothing"
            for name in sorted(known - told)
        ]
        for name in sorted(told):
            if (owner := owners.setdefault(name, agent)) != agent:
                faults.append(f"{agent}: the category {name} is {owner}'s already")
    return faults


def lint_meanings(shared: str, coordinator: str) -> list[str]:
    """A severity means the same to those who give it and to the one who judges it."""
    return [
        f"coordinator: {severity.value} does not mean what it means to reviewers"
        for severity in Severity
        if _meaning(severity, shared) != _meaning(severity, coordinator)
    ]


def _meaning(severity: Severity, text: str) -> str | None:
    row = re.search(rf"^\| `{severity.value}` \|([^|\n]+)\|", text, re.MULTILINE)
    return row.group(1).strip() if row else None


def categories(text: str) -> set[str]:
    """The categories that a reviewer is told to use."""
    line = re.search(r"Categories: ((?:`[a-z_]+`(?:, )?)+)", text)
    single = re.search(r"`category` of each finding is `([a-z_]+)`", text)
    return {
        *(_CATEGORY.findall(line.group(1)) if line else ()),
        *((single.group(1),) if single else ()),
    }


def section(text: str, heading: str) -> str | None:
    """The text below a heading (a pattern), up to the next one; None when there is none."""
    found = re.search(rf"^##+ (?:{heading})\n(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else None


def _lists(prompt: Prompt) -> Iterator[str]:
    seen: set[str] = set()
    for heading in ("What to flag", "What not to flag"):
        inside = section(prompt.own, heading)
        if inside is None:
            yield f"there is no list '{heading}'"
            continue
        items = re.findall(r"^- (.+)$", inside, re.MULTILINE)
        if len(items) < LEAST_ITEMS:
            yield f"'{heading}' has {len(items)} items, of at least {LEAST_ITEMS}"
        for item in items:
            if item in seen:
                yield f"an item stands twice: {item[:60]!r}"
            seen.add(item)


def _severities(prompt: Prompt) -> Iterator[str]:
    own = section(prompt.own, "Severity(?: here)?")
    if own is None:
        yield "there is no section 'Severity'"
        return
    defined = section(prompt.shared, "Severity") if prompt.is_reviewer else own
    for severity in Severity:
        if prompt.agent != "fixer":
            yield from _definition(severity, defined or "", prompt)
        yield from _examples(severity, own, prompt)


def _definition(severity: Severity, text: str, prompt: Prompt) -> Iterator[str]:
    """A row of a table: what it means and, for reviewers, what one must be able to say."""
    row = re.search(rf"^\| `{severity.value}` \|(.+)\|$", text, re.MULTILINE)
    if row is None:
        yield f"the severity {severity.value} is not defined"
        return
    meaning, *demand = (cell.strip() for cell in row.group(1).split("|"))
    if len(meaning.split()) < LEAST_WORDS:
        yield f"the severity {severity.value} names no failure: {meaning!r}"
    if prompt.is_reviewer and not (demand and len(demand[0].split()) >= LEAST_ITEMS):
        yield f"the severity {severity.value} does not say what must be shown for it"


def _examples(severity: Severity, text: str, prompt: Prompt) -> Iterator[str]:
    """Lines "- `critical`: "…"", at least one of them with the place of the failure."""
    found = re.findall(rf'^- `{severity.value}`: (".+)$', text, re.MULTILINE)
    if not found:
        yield f"there is no example of a finding that is {severity.value}"
        return
    for example in found:
        if len(example.split()) < LEAST_WORDS:
            yield f"an example of {severity.value} names no failure: {example!r}"
        if _DOUBT.search(re.sub(r"`[^`]*`", "", example)) or is_hedged(_as_finding(example)):
            yield f"an example of {severity.value} is itself in doubt: {example[:60]!r}"
    if prompt.agent != "fixer" and not any(_PLACE.search(example) for example in found):
        yield f"no example of {severity.value} says where it is (`path:line`)"


def _as_finding(text: str) -> ReportedFinding:
    return ReportedFinding("", "", Location(None), Severity.WARNING, "", "", text)


def _evidence(prompt: Prompt) -> Iterator[str]:
    """The rule may stand in any part of the prompt, but in one line and with both halves."""
    rule = re.search(r"^- `<?evidence>?`:? .*`path:line`.*$", prompt.text, re.MULTILINE)
    if rule is None:
        yield "there is no evidence rule (a line '- `evidence`: … `path:line` …')"
    elif "letter by letter" not in rule.group(0):
        yield "the evidence rule does not ask for the code letter by letter"


def _tags(prompt: Prompt) -> Iterator[str]:
    """The tags that a prompt names are those that stand around what strangers wrote."""
    named = {
        name
        for name in re.findall(r"`<([a-z_]+)>`", prompt.text)
        if name in BOUNDARY_TAGS or not _is_of_an_answer(name)
    }
    for name in sorted(prompt.tags - named):
        yield f"<{name}> stands around what it is handed, and no word explains it"
    for name in sorted(named - prompt.tags):
        yield f"<{name}> is named, and nothing it is handed has that tag"
    if prompt.inputs != prompt.tags:
        wrong = ", ".join(sorted(prompt.inputs ^ prompt.tags))
        yield f"the inputs of its front matter are not what it is handed: {wrong}"


_ANSWER_TAGS = FIELDS | {"review", "findings", "finding", "summary", "carried", "dropped", "item"}
_FIX_TAGS = {"fix_report", "fixed", "declined", "summary"}


def _is_of_an_answer(name: str) -> bool:
    return name in _ANSWER_TAGS or name in _FIX_TAGS


def _form_of(prompt: Prompt) -> Callable[[Prompt], Iterator[str]]:
    return {"coordinator": _review_form, "fixer": _fix_form}.get(prompt.agent, _findings_form)


def example_of(text: str, root: str) -> str:
    """The example of an answer that the prompt shows; "" when it shows none."""
    found = re.search(rf"^<{root}>\n.*?^</{root}>$", text, re.MULTILINE | re.DOTALL)
    return found.group(0) if found else ""


def _findings_form(prompt: Prompt) -> Iterator[str]:
    example = example_of(prompt.text, "findings")
    wanted = FIELDS - FOR_COORDINATOR
    yield from _described(prompt.text.replace(example, ""), wanted)
    parsed = parse_findings(example, prompt.agent, paths_in(example))
    yield from _read_well(parsed)
    yield from _arrived(example, parsed.findings, wanted)


def _review_form(prompt: Prompt) -> Iterator[str]:
    example = example_of(prompt.text, "review")
    yield from _described(prompt.text.replace(example, ""), FOR_COORDINATOR | {"also", "evidence"})
    parsed = parse_review(example, paths_in(example))
    yield from _read_well(parsed)
    yield from _arrived(example, [one.finding for one in parsed.judged], FIELDS)
    if not any(one.refs for one in parsed.judged):
        yield "its example has no finding with source=…"
    if not any(one.short_id for one in parsed.judged):
        yield "its example has no finding with id=…"
    if not parsed.carried or not parsed.dropped:
        yield "its example carries nothing over, or drops nothing"
    yield from _words(prompt.text, CarriedState, "an earlier finding's state")
    yield from _words(prompt.text, DropReason, "the reason")


def _fix_form(prompt: Prompt) -> Iterator[str]:
    parsed = parse_fix_report(example_of(prompt.text, "fix_report"))
    if parsed.outcome is not ParseOutcome.OK or parsed.problems:
        yield f"its example of an answer can't be read: {parsed.outcome} {parsed.problems}"
    elif not (parsed.fixed and parsed.declined and parsed.summary):
        yield "its example lacks one of <fixed>, <declined> and <summary>"


def paths_in(example: str) -> frozenset[str]:
    """Every path that an example names, as the change it is about would have them."""
    return frozenset(re.findall(r"<(?:path|also)>([^<]+)</", example))


def _read_well(parsed: ParsedFindings | ParsedReview) -> Iterator[str]:
    if parsed.outcome is not ParseOutcome.OK or parsed.problems:
        yield f"its example of an answer can't be read: {parsed.outcome} {parsed.problems}"
    if parsed.other_language:
        yield "its example of an answer is not in English"


def _described(text: str, fields: Collection[str]) -> Iterator[str]:
    for name in sorted(fields):
        if not re.search(rf"`<?{name}>?(?:>true</{name}>)?`", text):
            yield f"the field {name} is not explained"


def _arrived(
    example: str, findings: Collection[ReportedFinding], fields: Collection[str]
) -> Iterator[str]:
    """What the example shows is what the parser reads, field for field."""
    shown = set(
        _FIELD_TAG.findall(
            re.sub(r"<(body|evidence|suggestion)>.*?</\1>", r"<\1>", example, flags=re.DOTALL)
        )
    )
    for name in sorted(shown - _ANSWER_TAGS):
        yield f"its example shows <{name}>, which nobody reads"
    for name in sorted(fields):
        if name not in shown:
            yield f"its example does not show <{name}>"
        elif not any(_has(finding, name) for finding in findings):
            yield f"<{name}> of its example does not arrive"


_BLANK = ReportedFinding("", "", Location(None), Severity.WARNING, "general", "", "")


def _has(finding: ReportedFinding, name: str) -> bool:
    at = finding.location
    match name:
        case "path":
            return at.path is not None
        case "line":
            return at.start_line is not None and at.start_line == at.end_line
        case "start_line" | "end_line":
            return at.start_line != at.end_line
        case "severity":
            return True
        case _:
            return bool(getattr(finding, name) != getattr(replace(_BLANK), name))


def _words(text: str, kind: type[CarriedState] | type[DropReason], what: str) -> Iterator[str]:
    for member in kind:
        if not re.search(rf"^- `{member.value}`: ", text, re.MULTILINE):
            yield f"{what} {member.value} is not explained"
