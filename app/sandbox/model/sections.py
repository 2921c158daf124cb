"""The tagged parts of a prompt, and of what the reviewers answered, as values."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from defusedxml.ElementTree import ParseError, fromstring

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # the type alone: defusedxml parses

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedFinding:
    """A finding that a prompt names: an open one of the pull request, or one of a fix task."""

    id: str
    path: str
    line: str
    severity: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ReviewerFinding:
    """A finding in the reviewers' results: its fields by element name, `also` apart."""

    ref: str
    fields: Mapping[str, str]
    also: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What makes two findings the same: path and title."""
        return self.fields.get("path", ""), self.fields.get("title", "")


@dataclass(frozen=True, slots=True)
class ReviewerResult:
    """What one reviewer gave back. `status` is `ok`, `partial` or `failed`."""

    name: str
    status: str
    findings: tuple[ReviewerFinding, ...]


def changed_paths(text: str) -> tuple[str, ...]:
    """Paths of the files to review in `<changed_files>`, each once, in the prompt's order."""
    roots = _sections(text, "changed_files")
    paths = (file.get("path", "") for root in roots for file in root.findall("file"))
    return tuple(dict.fromkeys(path for path in paths if path))


def existing_findings(text: str) -> tuple[NamedFinding, ...]:
    """The open findings of `<existing_inline_findings>`, each id once."""
    return _named(text, "existing_inline_findings")


def task_findings(text: str) -> tuple[NamedFinding, ...]:
    """The findings of `<fix_task>`, each id once."""
    return _named(text, "fix_task")


def reviewer_results(text: str) -> tuple[ReviewerResult, ...]:
    """Every reviewer's part of `<reviewer_results>`."""
    return tuple(
        ReviewerResult(
            name=reviewer.get("name", ""),
            status=reviewer.get("status", ""),
            findings=tuple(_reviewer_finding(item) for item in reviewer.iter("finding")),
        )
        for root in _sections(text, "reviewer_results")
        for reviewer in root.iter("reviewer")
    )


def _reviewer_finding(element: Element) -> ReviewerFinding:
    fields = {child.tag: _text(child) for child in element if child.tag != "also"}
    suggestion = element.find("suggestion")
    if suggestion is not None:  # replacement code: its indentation counts
        fields["suggestion"] = "".join(suggestion.itertext())
    also = tuple(_text(path) for path in element.iterfind("also/path"))
    return ReviewerFinding(element.get("ref", ""), fields, also)


def _named(text: str, tag: str) -> tuple[NamedFinding, ...]:
    found = (item for root in _sections(text, tag) for item in root.iter("finding"))
    by_id: dict[str, NamedFinding] = {}
    for item in found:
        finding = NamedFinding(
            id=item.get("id", ""),
            path=item.get("path", ""),
            line=item.get("line", ""),
            severity=item.get("severity", ""),
            title=_text(item.find("title")),
            body=_text(item.find("body")),
        )
        by_id.setdefault(finding.id, finding)
    return tuple(by_id.values())


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _sections(text: str, tag: str) -> Iterator[Element]:
    """Every well-formed `<tag>…</tag>`. A mention of the tag in prose is not a section."""
    opening = re.compile(rf"<{tag}(?:\s[^<>]*)?>")
    start = 0
    for closing in re.finditer(rf"</{tag}\s*>", text):
        opened = list(opening.finditer(text, start, closing.start()))
        start = closing.end()
        if not opened:
            continue
        try:
            yield fromstring(text[opened[-1].start() : closing.end()])
        except (ParseError, ValueError) as error:
            # Left out, not guessed: the agent then has nothing to say about it, which is seen.
            _log.warning("the <%s> of a prompt is not well-formed XML: %s", tag, error)
