"""The user's half of each prompt, built from facts. Every value goes through the sanitiser here.

What the model is told in words is in `prompts/`; this file supplies the data between the tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.agents.prompts import note, render_template
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.sanitise import attribute, code, enclose, label, untrusted, wrap
from app.domain.runs import AgentName

MOST_COMMENTS = 50
COMMENT_CHARS = 4_000
BODY_CHARS = 20_000
_CUT = "\n[cut here]"


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One reviewed file. `patch` is the name of its patch (`diff/…`) in the run's directory."""

    path: str
    status: str
    additions: int
    deletions: int
    patch: str
    previous_path: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person wrote. `role` says what they may do (`write`, `read`), "" if unknown."""

    author: str
    body: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class AddedContext:
    """What a plugin tells agents beside the change: `source` is the plugin, `agents` who reads it
    (None: everybody)."""

    source: str
    title: str
    text: str
    agents: frozenset[AgentName] | None = None


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding of an earlier round, by its stable short id, with the replies in its thread."""

    id: str
    status: str
    origin: str
    path: str | None
    line: int | None
    severity: str
    title: str
    body: str
    replies: tuple[Remark, ...] = ()


TEMPLATE_READERS = frozenset({AgentName.AGENTS_MD, AgentName.COORDINATOR})
"""Who judges instruction files, and so is told how they should look."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The facts a review's prompts are built from. All texts are untrusted as they come.

    `part` says which of how many parts of the change `changed_files` are; None: they are all.
    `seen_files` were read in an earlier round and have not changed since.
    """

    repository: str
    number: int | None
    title: str
    body: str
    author: str
    base_ref: str
    base_sha: str
    head_ref: str
    head_sha: str
    changed_files: tuple[ChangedFile, ...] = ()
    seen_files: tuple[ChangedFile, ...] = ()
    comments: tuple[Remark, ...] = ()
    findings: tuple[KnownFinding, ...] = ()
    previous_review: str = ""
    custom_instructions: tuple[str, ...] = ()
    agents_md_template: str = ""
    round_number: int = 1
    is_fix: bool = False
    part: tuple[int, int] | None = None
    added: tuple[AddedContext, ...] = ()

    def for_agent(self, agent: AgentName) -> PromptContext:
        """The same without what is meant for others."""
        mine = tuple(one for one in self.added if one.agents is None or agent in one.agents)
        template = self.agents_md_template if agent in TEMPLATE_READERS else ""
        if len(mine) == len(self.added) and template == self.agents_md_template:
            return self
        return replace(self, added=mine, agents_md_template=template)


@dataclass(frozen=True, slots=True)
class FixFinding:
    """A finding to fix."""

    id: str
    path: str
    line: int | None
    severity: str
    title: str
    body: str
    suggestion: str | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FixContext:
    """The facts a fixer's prompt is built from.

    `remarks` is what the last review of the fix said, or what a failed verify command printed.
    """

    repository: str
    findings: tuple[FixFinding, ...]
    remarks: tuple[Remark, ...] = ()
    custom_instructions: tuple[str, ...] = ()


def reviewer_prompt(context: PromptContext, *, problem: str = "") -> str:
    """A reviewer's task: the same for all reviewers of a round, so that it can be cached.

    `problem` says what was wrong with the answer before, when the reviewer is asked again.
    """
    return _again(render_template("reviewer.user", _review_values(context)), problem)


def coordinator_prompt(
    context: PromptContext,
    *,
    problem: str = "",
    results: Sequence[ReviewerOutcome] = (),
    unread: Sequence[str] = (),
) -> str:
    """The coordinator's task. `results` are handed over when the reviewers have run already;
    `unread` are the references that it kept in doubt before, without a look at their files."""
    prompt = render_template("coordinator.user", _review_values(context))
    if results:
        prompt = f"{prompt}\n{note('results_here')}\n\n{render_reviewer_results(results)}\n"
    if unread:
        refs = untrusted(", ".join(unread))
        prompt = f"{prompt}\n{note('unread', refs=refs)}\n"
    return _again(prompt, problem)


def fixer_prompt(context: FixContext, *, problem: str = "") -> str:
    """The fixer's task."""
    values = {
        "fix_task": enclose("fix_task", "\n".join(map(_fix_finding, context.findings))),
        "review_remarks": _remarks("review_remarks", context.remarks),
        "custom_review_instructions": _instructions(context.custom_instructions),
    }
    return _again(render_template("fixer.user", values), problem)


def shared_context(context: PromptContext) -> str:
    """The content of `shared-pr-context.txt`: what people wrote, once for all reviewers."""
    return render_template("shared_context", _review_values(context))


def _again(prompt: str, problem: str) -> str:
    if not problem:
        return prompt
    return f"{prompt}\n{note('malformed', problem=untrusted(problem))}\n"


def _review_values(context: PromptContext) -> dict[str, str]:
    return {
        "pr_details": enclose("pr_details", _details(context)),
        "pr_body": wrap("pr_body", _clip(context.body, BODY_CHARS)),
        "pr_comments": _remarks("pr_comments", context.comments),
        "changed_files": enclose(
            "changed_files",
            "\n".join((*map(_file, context.changed_files), *map(_seen, context.seen_files))),
        ),
        "existing_inline_findings": enclose(
            "existing_inline_findings", "\n".join(map(_finding, context.findings))
        ),
        "previous_review": wrap("previous_review", _clip(context.previous_review, BODY_CHARS)),
        "custom_review_instructions": _instructions(context.custom_instructions),
        "agents_md_template_instructions": wrap(
            "agents_md_template_instructions", _clip(context.agents_md_template, BODY_CHARS)
        ),
        "added_context": enclose("added_context", "\n".join(map(_added, context.added))),
        "round": _round(context),
    }


def _details(context: PromptContext) -> str:
    number = f"{context.repository}#{context.number}" if context.number else context.repository
    lines = [
        f"change: {untrusted(number)}",
        f"title: {untrusted(_one_line(context.title))}",
        f"author: {untrusted(_one_line(context.author))}",
        f"base: {untrusted(_one_line(context.base_ref))} at {untrusted(context.base_sha)}",
        f"head: {untrusted(_one_line(context.head_ref))} at {untrusted(context.head_sha)}",
    ]
    return "\n".join(lines)


def _round(context: PromptContext) -> str:
    parts = [note("fix_change")] if context.is_fix else []
    if context.round_number > 1:
        parts.append(note("later_round", number=str(context.round_number)))
    if context.seen_files:
        parts.append(note("seen"))
    if context.part is not None:
        number, total = context.part
        parts.append(note("part", number=str(number), total=str(total)))
    return "\n".join(parts)


def _file(file: ChangedFile) -> str:
    before = (
        f' previous_path="{attribute(file.previous_path)}"'
        if file.previous_path and file.previous_path != file.path
        else ""
    )
    return (
        f'<file path="{attribute(file.path)}"{before} status="{label(file.status)}"'
        f' additions="{file.additions}" deletions="{file.deletions}"'
        f' patch="{attribute(file.patch)}"/>'
    )


def _seen(file: ChangedFile) -> str:
    return f'<seen path="{attribute(file.path)}" patch="{attribute(file.patch)}"/>'


def _finding(finding: KnownFinding) -> str:
    place = f' path="{attribute(finding.path)}"' if finding.path else ""
    line = f' line="{finding.line}"' if finding.path and finding.line else ""
    replies = "".join(f"\n{_remark('reply', reply)}" for reply in finding.replies)
    return (
        f'<finding id="{label(finding.id)}" status="{label(finding.status)}"'
        f' origin="{label(finding.origin)}"{place}{line}'
        f' severity="{label(finding.severity)}">'
        f"<title>{untrusted(finding.title)}</title><body>{untrusted(finding.body)}</body>"
        f"{replies}</finding>"
    )


def _added(item: AddedContext) -> str:
    return (
        f'<section source="{label(item.source)}" title="{label(item.title)}">\n'
        f"{untrusted(item.text).strip()}\n</section>"
    )


def _fix_finding(finding: FixFinding) -> str:
    line = f' line="{finding.line}"' if finding.line else ""
    suggestion = (
        f"<suggestion>{code(finding.suggestion)}</suggestion>" if finding.suggestion else ""
    )
    also = "".join(f"<also><path>{untrusted(path)}</path></also>" for path in finding.also)
    return (
        f'<finding id="{label(finding.id)}" path="{attribute(finding.path)}"{line}'
        f' severity="{label(finding.severity)}">'
        f"<title>{untrusted(finding.title)}</title><body>{untrusted(finding.body)}</body>"
        f"{suggestion}{also}</finding>"
    )


def _remarks(tag: str, remarks: Sequence[Remark]) -> str:
    shown = remarks[-MOST_COMMENTS:]
    rendered = [_remark("comment", remark) for remark in shown]
    if len(shown) < len(remarks):
        rendered.insert(0, f"[{len(remarks) - len(shown)} earlier ones are left out]")
    return enclose(tag, "\n".join(rendered))


def _remark(tag: str, remark: Remark) -> str:
    role = f' role="{label(remark.role)}"' if remark.role else ""
    body = untrusted(_clip(remark.body, COMMENT_CHARS))
    return f'<{tag} author="{label(remark.author)}"{role}>{body}</{tag}>'


def _instructions(instructions: Iterable[str]) -> str:
    return wrap("custom_review_instructions", _clip("\n\n".join(instructions), BODY_CHARS))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _CUT
