"""ruff, bandit and detect-secrets, with our rules and nobody else's.

Comments that silence (`noqa`, `nosec`, `pragma: allowlist secret`) count for nothing here: only
lines that the change adds are reported, so such a comment is the author's own word on their own
line. The reviewer sees the line with its comment, and weighs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from app.domain.runs import AgentName
from app.plugins.analyzers.port import Analyzer, Remark

RULES = "E9,F,B,S,PLE,ASYNC,DTZ,RUF006"
"""ruff's rules about what goes wrong; those about style are a repository's own business."""

_TESTS_ONLY = "S101"
"""`assert` is what tests are made of."""

_QUOTING = re.compile(r"S10[567]|B10[567]")
"""Rules about passwords in the code, whose texts quote them."""

_PASSWORD = "a password stands in the code"  # noqa: S105  # says so, and is none

_PYTHON = frozenset({".py", ".pyi"})


def _ruff_arguments(files: Sequence[str]) -> Sequence[str]:
    ours = ("--isolated", "--no-cache", "--ignore-noqa", "--no-fix", "--exit-zero", "--quiet")
    rules = ("--select", RULES, "--ignore", _TESTS_ONLY, "--target-version", "py313")
    return ("check", *ours, *rules, "--output-format", "json", "--", *files)


def _ruff_remarks(output: bytes) -> Iterator[Remark]:
    for item in json.loads(output):
        rule = str(item["code"] or "syntax")
        yield Remark(
            _base(item["filename"]),
            int(item["location"]["row"]),
            rule,
            _unquoted(rule, str(item["message"])),
        )


def _bandit_arguments(files: Sequence[str]) -> Sequence[str]:
    # Tests assert, so B101 stays out as with ruff.
    ours = ("--ignore-nosec", "--exit-zero", "--quiet", "--skip", "B101")
    return (*ours, "--format", "json", *files)


def _bandit_remarks(output: bytes) -> Iterator[Remark]:
    for item in json.loads(output)["results"]:
        rule = str(item["test_id"])
        how = f"{item['issue_severity']} severity, {item['issue_confidence']} confidence".lower()
        said = _unquoted(rule, str(item["issue_text"]))
        yield Remark(_base(item["filename"]), int(item["line_number"]), rule, f"{said} ({how})")


def _secrets_arguments(files: Sequence[str]) -> Sequence[str]:
    # Without verification: nothing that was found is ever tried out anywhere.
    silencing = "detect_secrets.filters.allowlist.is_line_allowlisted"
    ours = ("--all-files", "--no-verify", "--disable-filter", silencing)
    return ("-c", "1", "scan", *ours, *files)


def _secrets_remarks(output: bytes) -> Iterator[Remark]:
    for name, found in json.loads(output)["results"].items():
        for item in found:
            kind = str(item["type"])
            yield Remark(_base(name), int(item["line_number"]), "secret", f"looks like: {kind}")


def _unquoted(rule: str, message: str) -> str:
    return _PASSWORD if _QUOTING.fullmatch(rule) else message


def _base(name: object) -> str:
    return str(name).replace("\\", "/").rsplit("/", 1)[-1]


SHIPPED: tuple[Analyzer, ...] = (
    Analyzer(
        "ruff", "ruff", _PYTHON, _ruff_arguments, _ruff_remarks,
        (AgentName.CODE_QUALITY, AgentName.GENERAL),
    ),
    Analyzer(
        "bandit", "bandit", _PYTHON, _bandit_arguments, _bandit_remarks,
        (AgentName.SECURITY, AgentName.GENERAL),
    ),
    Analyzer(
        "detect-secrets", "detect-secrets", None, _secrets_arguments, _secrets_remarks,
        (AgentName.SECURITY, AgentName.GENERAL),
    ),
)  # fmt: skip
