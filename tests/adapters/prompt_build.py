"""`prompt-build`: a person's comment in every place of prompts and files where words can be."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from app.agents.prompt_context import (
    FixContext,
    FixFinding,
    KnownFinding,
    PromptContext,
    Remark,
    coordinator_prompt,
    fixer_prompt,
    reviewer_prompt,
)
from app.commands.grammar import parse
from app.review.context import write_run_files
from tests.adapters.case import Case, only_knows


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "nothing_sent_or_written_matches")
    said: str = case.input["comment"]
    context = _context(said)
    await write_run_files(tmp_path / "run", (), {}, context)
    sent = [
        reviewer_prompt(context, problem=said),
        coordinator_prompt(context, problem=said),
        fixer_prompt(_fix(said), problem=said),
        *(file.read_text("utf-8") for file in (tmp_path / "run").rglob("*") if file.is_file()),
    ]
    for text in [*sent, *(repr(command) for command in parse(said))]:
        for pattern in case.expect["nothing_sent_or_written_matches"]:
            assert not re.search(pattern, text), (pattern, text)


def _context(said: str) -> PromptContext:
    remark = Remark(said, said, said)
    finding = KnownFinding("F1", said, said, "a.py", 1, said, said, said, (remark,))
    return replace(
        PromptContext("acme/shop", 7, said, said, said, said, said, said, said, ()),
        comments=(remark,),
        findings=(finding,),
        previous_review=said,
        custom_instructions=(said,),
        agents_md_template=said,
    )


def _fix(said: str) -> FixContext:
    finding = FixFinding("F1", "a.py", 1, said, said, said)
    return FixContext("acme/shop", (finding,), (Remark(said, said, said),), (said,))
