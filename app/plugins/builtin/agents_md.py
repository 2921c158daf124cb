"""`agents-md`: which files of a repository instruct machines, and how such a file should look."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from app.agents.prompt_context import TEMPLATE_READERS
from app.errors import ConfigurationError
from app.plugins.context import BootstrapContext, ConfigureContext
from app.plugins.port import ReviewPlugin

INSTRUCTION_FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
    ".windsurfrules",
)
"""What is looked for at the root, by the names that today's tools read."""

LONG_LINES = 200
"""Lines beyond which such a file is said to be long (DESIGN §4)."""

REPOSITORY_TEMPLATE = ".github/agents-md-template.md"
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Found:
    files: tuple[tuple[str, int], ...]
    template: str | None


class AgentsMdPlugin(ReviewPlugin):
    """Tells the AGENTS.md reviewer what there was before the change, and the template to go by: the
    operator's, or else the repository's own."""

    name = "agents-md"

    def __init__(self, template: str | None = None) -> None:
        self._template = template

    async def bootstrap(self, context: BootstrapContext) -> object:
        texts = await asyncio.gather(*map(context.read, INSTRUCTION_FILES))
        template = await context.read(REPOSITORY_TEMPLATE) if self._template is None else None
        return _Found(
            tuple(
                (path, len(text.splitlines()))
                for path, text in zip(INSTRUCTION_FILES, texts, strict=True)
                if text is not None
            ),
            None if template is None else template[:MOST_BYTES].decode("utf-8", "replace"),
        )

    def configure(self, context: ConfigureContext) -> None:
        found = context.prepared if isinstance(context.prepared, _Found) else None
        template = self._template or (found.template if found else None)
        if template:
            context.agents_md_template(template)
        if found is not None:
            listed = _listed(found.files)
            context.prompt_section("Instruction files", listed, agents=TEMPLATE_READERS)


def _listed(files: tuple[tuple[str, int], ...]) -> str:
    if not files:
        return "before this change: none at the root"
    lines = (
        f"{path}: {count} lines" + (f", over {LONG_LINES}" if count > LONG_LINES else "")
        for path, count in files
    )
    return "before this change:\n" + "\n".join(lines)


def read_template(file: Path) -> str:
    """The operator's template. Raises ConfigurationError naming the file."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES or not content.strip():
            raise ConfigurationError(
                f"MERGEWARD_AGENTS_MD_TEMPLATE: {file} is empty or over {MOST_BYTES:,} bytes."
            )
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"MERGEWARD_AGENTS_MD_TEMPLATE: {file}: {error}.") from None
