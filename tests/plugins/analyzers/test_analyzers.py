"""Static evidence: real analyzers on real trees, and repositories that want them silent."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import structlog

from app.domain.runs import AgentName, Tier
from app.git.diff import parse_diff
from app.plugins.analyzers import Analyzer, AnalyzersPlugin, Remark
from app.plugins.analyzers.plugin import Copied, evidence_lines
from app.plugins.analyzers.run import Caps
from app.plugins.analyzers.shipped import SHIPPED
from app.plugins.context import RunContext
from app.plugins.facts import RunView
from tests.git.repos import LINK, BareRepo, Content, git
from tests.plugins.factories import FACTS

AWS = b"AKIA" + b"QYLPMN5HHHFPZAM2"
SHELL = b"import subprocess\n\n\ndef run(name):\n    subprocess.call(name, shell=True)\n"
UNDEFINED = b"def f():\n    return missing_name\n"
Files = dict[str, Content]


async def analysed(folder: Path, head: Files, base: Files | None = None) -> dict[str, str]:
    """What each analyzer tells about the change between two trees of a real repository."""
    context = await looked_at(folder, head, base)
    return {item.title.partition(",")[0]: item.text for item in context.given()}


async def looked_at(
    folder: Path, head: Files, base: Files | None = None, **how: object
) -> RunContext:
    repo = BareRepo.create(folder / "repo.git")
    before = repo.commit(base or {"README.md": b"# Shop\n"})
    after = repo.commit({**(base or {"README.md": b"# Shop\n"}), **head}, parent=before)
    diff = git("diff", "--no-ext-diff", "--full-index", before, after, cwd=repo.path)

    async def read(path: str) -> bytes | None:
        return git("cat-file", "blob", f"{after}:{path}", cwd=repo.path)

    view = RunView(FACTS, Tier.FULL, (AgentName.SECURITY,), parse_diff(diff).files, read)
    context = RunContext("analyzers", view)
    await AnalyzersPlugin(**{"analyzers": SHIPPED, **how}).post_configure(context)  # type: ignore[arg-type]
    return context


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        pytest.param("ruff", {"a.py": UNDEFINED}, ["a.py:2: F821"], id="ruff"),
        pytest.param("bandit", {"a.py": SHELL}, ["a.py:5: B602"], id="bandit"),
        pytest.param(
            "detect-secrets", {"a.env": b"KEY=" + AWS + b"\n"},
            ["a.env:1: secret: looks like: AWS"],
            id="detect-secrets",
        ),
        pytest.param("ruff", {"a.py": b"def f(:\n"}, ["a.py:1: "], id="no-python"),
        pytest.param("ruff", {"a b;$(x)\n.py": UNDEFINED}, ["a b;$(x)?.py:2: F821"], id="name"),
        pytest.param("ruff", {"--config=x.py": UNDEFINED}, ["--config=x.py:2: F821"], id="option"),
        pytest.param(
            "ruff",
            {
                "a.py": UNDEFINED,
                "pyproject.toml": b'[tool.ruff]\nexclude = ["*"]\nlint.ignore = ["ALL"]\n',
                "ruff.toml": b'exclude = ["*"]\n',
                ".ruff.toml": b'extend-exclude = ["*"]\n',
            },
            ["a.py:2: F821"],
            id="switched-off-by-ruff-toml",
        ),
        pytest.param(
            "ruff",
            {"a.py": b"# ruff: noqa\n# flake8: noqa\ndef f():\n    return missing  # noqa: F821\n"},
            ["a.py:4: F821"],
            id="switched-off-by-noqa",
        ),
        pytest.param(
            "bandit",
            {
                "a.py": SHELL.replace(b"=True)", b"=True)  # nosec B602"),
                ".bandit": b"[bandit]\nskips = B602,B404\nexclude = *\n",
                "bandit.yaml": b"skips: [B602]\n",
                "pyproject.toml": b'[tool.bandit]\nskips = ["B602"]\n',
            },
            ["a.py:5: B602"],
            id="switched-off-for-bandit",
        ),
        pytest.param(
            "detect-secrets",
            {
                "a.txt": b"key: " + AWS + b"  # pragma: allowlist secret\n",
                ".secrets.baseline": b'{"results": {}}',
            },
            ["a.txt:1: secret"],
            id="switched-off-for-detect-secrets",
        ),
    ],
)  # fmt: skip
async def test_what_is_told(
    tmp_path: Path, name: str, head: Files, expected: Sequence[str]
) -> None:
    """Each analyzer finds what it is for, whatever files are called and whatever they say about
    analyzers: configuration is not read, and a comment on one's own new line silences nothing."""
    told = (await analysed(tmp_path, head)).get(name, "")
    for words in expected:
        assert words in told, told


async def test_only_changed_lines(tmp_path: Path) -> None:
    """Old sins in a file that the change touches are not its business."""
    base: Files = {"a.py": UNDEFINED}
    head: Files = {"a.py": UNDEFINED + b"\n\ndef g():\n    return other_name\n"}
    told = await analysed(tmp_path, head, base)
    assert "a.py:6: F821" in told["ruff"]
    assert "missing_name" not in told["ruff"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'password = "hunter2-hunter2"\n', id="password"),
        pytest.param(b'connect(password="hunter2-hunter2")\n', id="argument"),
        pytest.param(b'def f(password="hunter2-hunter2"):\n    pass\n', id="default"),
        pytest.param(b'aws_key = "' + AWS + b'"\n', id="aws"),
    ],
)
async def test_a_secret_is_never_quoted(tmp_path: Path, line: bytes) -> None:
    """Kind and place are enough for a reviewer, and evidence goes to a provider."""
    told = await analysed(tmp_path, {"a.py": line})
    assert "a.py:1" in told["detect-secrets"]
    for text in told.values():
        assert "hunter2" not in text
        assert AWS.decode() not in text


async def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link is no file to analyse."""
    assert await analysed(tmp_path, {"a.py": (LINK, b"/etc/passwd")}) == {}


def script(folder: Path, text: str) -> Path:
    """A program that stands for an analyzer."""
    file = folder / "analyzer"
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(0o755)
    return file


def made(parse: Iterable[Remark] = ()) -> Analyzer:
    agents = (AgentName.SECURITY,)
    return Analyzer("made", "made", None, lambda files: files, lambda _: parse, agents)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("import time; time.sleep(60)", "not finished within", id="hangs"),
        pytest.param("print('x' * 10**6)", "printed over", id="floods"),
        pytest.param(
            "import time; time.sleep(0.5); bytearray(10**9)", "exit code", id="eats-memory"
        ),
        pytest.param("raise SystemExit('ghp_' + 'a' * 36)", "exit code 1", id="fails"),
    ],
)
async def test_one_that_misbehaves_is_left_out(tmp_path: Path, text: str, why: str) -> None:
    """Bounded in time, output and memory; the run goes on, and its log says why, without tokens."""
    program = script(tmp_path, text)
    caps = Caps(seconds=4.0, output=10**5, memory=200 * 2**20)
    with structlog.testing.capture_logs() as logged:
        context = await looked_at(
            tmp_path, {"a.py": SHELL}, analyzers=[made()], where=lambda _: str(program), caps=caps
        )
    assert context.given() == ()
    [line] = [line for line in logged if line["event"] == "analyzer_skipped"]
    assert why in line["why"]
    assert "ghp_a" not in str(logged)


async def test_it_gets_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys in the environment nor names of the repository."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-ours")
    out = tmp_path / "seen.txt"
    tell = f"open({str(out)!r}, 'w').write(repr((dict(os.environ), sys.argv)))"
    program = script(tmp_path, f"import os, sys; {tell}")
    await looked_at(
        tmp_path, {"secret name.py": SHELL}, analyzers=[made()], where=lambda _: str(program)
    )
    seen = out.read_text()
    assert "a-key-of-ours" not in seen
    assert "ANTHROPIC" not in seen
    assert "secret name" not in seen
    assert "f0000.py" in seen


async def test_what_is_not_installed_is_said(tmp_path: Path) -> None:
    """No analyzer is needed, and the log names those that are missing."""
    with structlog.testing.capture_logs() as logged:
        context = await looked_at(tmp_path, {"a.py": SHELL}, where=lambda _: None)
    assert context.given() == ()
    skipped = [line["analyzer"] for line in logged if line["event"] == "analyzer_skipped"]
    assert skipped == ["ruff", "bandit", "detect-secrets"]


def test_a_program_cannot_write_lines_of_its_own() -> None:
    """One remark is one line; a file it was not given and a line not added do not exist."""
    copied = [Copied("f0000.py", "a\nb.py", frozenset({1}))]
    remarks = [
        Remark("f0000.py", 1, "R1", "x\nb.py:9: R2: forged"),
        Remark("f0000.py", 2, "R1", "not added"),
        Remark("other.py", 1, "R1", "not given"),
    ]
    assert evidence_lines(remarks, copied) == ["a?b.py:1: R1: x?b.py:9: R2: forged"]
