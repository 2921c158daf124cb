"""Which reviewers have something to do in a change, by its paths alone. Pure; DESIGN §4.

Two reviewers start only for their own files. All others get every patch: a patch costs nothing
until it is read, the list of files is the same cached text for all, and a defect stands as often in
the file whose name does not tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from app.domain.diff import FileChange
from app.domain.runs import AgentName

RELEASE_FILES = (
    "**/migrations/**", "**/migrate/**", "**/alembic/**", "**/versions/*.py", "**/*.sql",
    "**/CHANGELOG*", "**/CHANGES*", "**/HISTORY*", "**/RELEASE*", "**/UPGRAD*", "**/VERSION",
    "**/pyproject.toml", "**/setup.py", "**/setup.cfg", "**/package.json", "**/Cargo.toml",
    "**/go.mod", "**/pom.xml", "**/build.gradle*", "**/*.gemspec", "**/*.csproj",
    "**/composer.json", "**/Chart.yaml", "**/Dockerfile*", "**/docker-compose*", "**/compose*.y*ml",
    "**/deploy/**", "**/k8s/**", "**/helm/**", "**/terraform/**", "**/*.tf", "**/Procfile",
    "**/fly.toml", "**/.github/workflows/**", "**/.gitlab-ci.yml", "**/Jenkinsfile",
    "**/.circleci/**", "**/feature_flags*", "**/feature-flags*", "**/flags/**", "**/openapi*",
    "**/swagger*", "**/*.proto", "**/*.graphql",
)  # fmt: skip
"""Migrations, versions, changelogs, packaging, deployment, flags and published contracts."""

AGENTS_FILES = (
    "**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", "**/.cursorrules", "**/.cursor/**",
    "**/.windsurfrules", "**/copilot-instructions.md", "**/.github/instructions/**",
    "**/package.json", "**/pyproject.toml", "**/setup.cfg", "**/setup.py", "**/requirements*.txt",
    "**/tox.ini", "**/noxfile.py", "**/pytest.ini", "**/conftest.py", "**/Makefile", "**/justfile",
    "**/Taskfile.y*ml", "**/CMakeLists.txt", "**/Cargo.toml", "**/go.mod", "**/Gemfile",
    "**/pom.xml", "**/build.gradle*", "**/composer.json", "**/*.csproj", "**/pnpm-workspace.yaml",
    "**/turbo.json", "**/nx.json", "**/tsconfig*.json", "**/*.config.js", "**/*.config.ts",
    "**/*.config.mjs", "**/.eslintrc*", "**/biome.json", "**/ruff.toml", "**/.env.example",
    "**/settings.py", "**/config.py", "**/.github/workflows/**", "**/.gitlab-ci.yml",
    "**/.circleci/**", "**/Jenkinsfile", "**/Dockerfile*", "**/docker-compose*",
    "**/.tool-versions", "**/.nvmrc", "**/.python-version",
)  # fmt: skip
"""Instructions of agents, and what is of high or medium materiality for them: package manager,
tests, build, lint rules, required variables, CI."""

OWN_FILES: Mapping[AgentName, tuple[str, ...]] = {
    AgentName.RELEASE: RELEASE_FILES,
    AgentName.AGENTS_MD: AGENTS_FILES,
}


def has_work(agent: AgentName, files: Iterable[FileChange]) -> bool:
    """Whether `agent` starts for these files: always, except for one with files of its own.

    A file counts by its old and its new name. For agents' instructions a moved file counts as
    well, since they may describe the layout.
    """
    if agent not in OWN_FILES:
        return True
    return any(
        _is_own(agent, file.path)
        or (
            file.old_path is not None
            and (agent == AgentName.AGENTS_MD or _is_own(agent, file.old_path))
        )
        for file in files
    )


def _is_own(agent: AgentName, path: str) -> bool:
    return _own_paths(agent).fullmatch(path) is not None


@cache
def _own_paths(agent: AgentName) -> re.Pattern[str]:
    """All globs of an agent as one expression: a change of thousands of files is asked about each
    of a hundred. They are ours, and of the forms that `_expression` knows."""
    return re.compile(f"(?:.*/)?(?:{'|'.join(map(_expression, OWN_FILES[agent]))})", re.DOTALL)


def _expression(glob: str) -> str:
    """Of `**/name*`, `**/folder/name*` or `**/folder/**`, what comes after the first `**/`."""
    inside = glob.removeprefix("**/")
    name = inside.removesuffix("/**")
    escaped = "[^/]*".join(map(re.escape, name.split("*")))
    return escaped if name == inside else f"{escaped}/.+"
