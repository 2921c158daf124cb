"""How git is run (app/git/process.py): bounded, alone, without secrets where others read."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import GitError
from app.git.process import GitDamaged, GitTooLarge, Remote, checked_branch, checked_sha, git
from tests.git.repos import ENVIRONMENT

TOKEN = "ghs_FAKEFAKEFAKEFAKEFAKEFAKEFAKE0001"
REMOTE = Remote("https://git.example/acme/shop.git", TOKEN)


@pytest.fixture
def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called `git` that does what a test writes into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "git"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return program


async def test_a_token_is_where_only_git_reads_it(fake_git: Path, tmp_path: Path) -> None:
    """Never in arguments, which every user of the machine can list, and never in an error."""
    fake_git.write_text(
        '#!/bin/sh\necho "$@" > args\nenv > env\n'
        "said=$(echo $GIT_CONFIG_VALUE_0 | cut -d' ' -f3)\n"
        'echo "fatal: $said, or https://$(echo $said | base64 -d)@h/x" >&2\nexit 1\n'
    )
    with pytest.raises(GitError) as failure:
        await git(("fetch", "origin"), cwd=tmp_path, remote=REMOTE)
    basic = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    assert basic in (tmp_path / "env").read_text()
    for secret in (TOKEN, basic):
        assert secret not in (tmp_path / "args").read_text()
        assert secret not in str(failure.value)
        assert secret not in repr(REMOTE)
    assert "[redacted], or https://x-access-token:[redacted]@h/x" in str(failure.value)


@pytest.mark.parametrize("length", range(1_960, 2_040, 7))
async def test_no_half_of_a_token_is_left(fake_git: Path, tmp_path: Path, length: int) -> None:
    """Words are masked before they are cut, wherever the cut falls."""
    (tmp_path / "words").write_text(f"https://x-access-token:{TOKEN}@git.example/" + "x" * length)
    fake_git.write_text("#!/bin/sh\ncat words >&2\nexit 1\n")
    with pytest.raises(GitError) as failure:
        await git(("fetch",), cwd=tmp_path, remote=REMOTE)
    assert TOKEN[-8:] not in str(failure.value)


NETWORK = (
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "gits"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"HTTP_PROXY": "http://p:1"}, {"http_proxy": "http://p:1"}, id="upper-case"),
        pytest.param({"https_proxy": "http://p:1"}, {"https_proxy": "http://p:1"}, id="lower-case"),
        pytest.param({"NO_PROXY": "a", "no_proxy": "b"}, {"no_proxy": "b"}, id="both"),
        pytest.param({"SSL_CERT_FILE": "/ca.pem"}, {"GIT_SSL_CAINFO": "/ca.pem"}, id="private-ca"),
        pytest.param(
            {"SSL_CERT_FILE": "/ca.pem", "GIT_SSL_CAINFO": "/git.pem"},
            {"GIT_SSL_CAINFO": "/git.pem"}, id="own-ca-of-git",
        ),
    ],
)  # fmt: skip
async def test_git_goes_the_way_of_our_own_requests(
    fake_git: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ours: dict[str, str],
    gits: dict[str, str],
) -> None:
    """Proxies and certificates of our environment reach git by the names that it listens to."""
    for name in NETWORK:
        monkeypatch.delenv(name, raising=False)
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    fake_git.write_text("#!/bin/sh\nenv\n")
    lines = (await git(("fetch",), cwd=tmp_path)).decode().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert {name: value for name, value in seen.items() if name in NETWORK} == gits


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://x-access-token:abc@git.example/a.git", id="credentials"),
        pytest.param("HTTP://abc@git.example/a.git", id="credentials-other-case"),
        pytest.param("--upload-pack=touch pwned", id="option"),
        pytest.param("https://git.example/a\n[core]", id="line-break"),
        pytest.param("https://git.example/\ud83d", id="half-a-character"),
    ],
)
def test_an_address_holds_no_credentials(url: str) -> None:
    """An address is written into a configuration file and shown in errors."""
    with pytest.raises(GitError):
        Remote(url)


async def test_the_environment_of_the_process_is_not_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_git: Path
) -> None:
    """Neither our own secrets nor settings of whoever started us reach git."""
    fake_git.write_text("#!/bin/sh\nenv\n")
    for name in ("DATABASE_URL", "GIT_DIR", "GIT_CONFIG_PARAMETERS", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "FAKE")
    out = (await git(("status",), cwd=tmp_path)).decode()
    assert "FAKE" not in out
    assert "GIT_TERMINAL_PROMPT=0" in out


@pytest.mark.parametrize("token", ["", TOKEN], ids=["open", "with-a-token"])
async def test_the_address_is_told_for_one_command(tmp_path: Path, token: str) -> None:
    """`origin` is where the command's own remote is, and the token goes to that address alone."""
    remote = Remote("https://git.example/a.git", token)
    out = await git(("config", "remote.origin.url"), cwd=tmp_path, remote=remote)
    assert out == b"https://git.example/a.git\n"
    for address, is_sent in ((remote.url, bool(token)), ("https://other.example/a.git", False)):
        ask = ("config", "--get-urlmatch", "http.extraHeader", address)
        assert bool(await git(ask, cwd=tmp_path, remote=remote, accept=(0, 1))) is is_sent


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        pytest.param("error: object file x is empty\nfatal: loose object x is corrupt", GitDamaged,
                     id="corrupt"),
        pytest.param("fatal: not a git repository: '.'", GitDamaged, id="no-repository"),
        pytest.param("fatal: bad config line 1 in file config", GitDamaged, id="settings"),
        pytest.param("fatal: Out of memory, malloc failed", GitTooLarge, id="memory"),
        pytest.param("fatal: couldn't find remote ref x", GitError, id="no-such-branch"),
        pytest.param("fatal: bad object ffff", GitError, id="no-such-commit"),
        pytest.param("fatal: could not read Username for 'https://x'", GitError, id="no-token"),
        pytest.param("fatal: Could not read from remote repository.", GitError, id="no-remote"),
        pytest.param("fatal: unable to access 'https://x': 503", GitError, id="down"),
        pytest.param("fatal: could not fetch 1111 from promisor remote", GitError, id="gone-there"),
    ],
)  # fmt: skip
async def test_what_is_broken_here_is_told_from_what_is_broken_there(
    fake_git: Path, tmp_path: Path, words: str, kind: type[GitError]
) -> None:
    """By git's words; only the first kind makes a mirror suspect."""
    (tmp_path / "words").write_text(words)
    fake_git.write_text("#!/bin/sh\ncat words >&2\nexit 128\n")
    with pytest.raises(GitError) as failure:
        await git(("fetch",), cwd=tmp_path)
    assert type(failure.value) is kind


async def test_memory_is_bounded(fake_git: Path, tmp_path: Path) -> None:
    """What wants more than it was given fails, and nothing else on the machine notices."""
    fake_git.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(.2)\nx = b'x' * (1 << 28)\n")
    await git(("grep",), cwd=tmp_path)
    with pytest.raises(GitError, match="MemoryError"):
        await git(("grep",), cwd=tmp_path, memory=1 << 27)


async def test_no_configuration_file_is_read(tmp_path: Path) -> None:
    """Every setting comes from our own command line."""
    out = await git(("config", "--list", "--show-scope"), cwd=tmp_path)
    assert {line.split(b"\t")[0] for line in out.splitlines()} == {b"command"}


def _is_gone(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


async def _soon_gone(pid: int) -> bool:
    for _ in range(100):
        if _is_gone(pid):
            return True
        await asyncio.sleep(0.02)
    return False


GRANDCHILD = "#!/bin/sh\nsleep 300 &\necho $! > child\nwait\n"


async def test_a_command_that_takes_too_long_ends_with_its_children(
    fake_git: Path, tmp_path: Path
) -> None:
    """Helpers that git started hold pipes and sockets; they end with it."""
    fake_git.write_text(GRANDCHILD)
    with pytest.raises(GitError, match="took longer"):
        await git(("fetch",), cwd=tmp_path, timeout_s=0.5)
    assert await _soon_gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(
    "steps", [pytest.param(n, id=f"after-{n}-steps") for n in (0, 1, 2, 4, 8, 16, 1000)]
)
async def test_a_cancelled_command_ends_with_its_children(
    fake_git: Path, tmp_path: Path, steps: int
) -> None:
    """A superseded run leaves nothing behind, at whatever moment it is cancelled."""
    fake_git.write_text(GRANDCHILD)
    running = asyncio.create_task(git(("fetch",), cwd=tmp_path))
    for _ in range(steps):
        await asyncio.sleep(0.001 if steps == 1000 else 0)
        if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
            break
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0.05)
    child = tmp_path / "child"
    assert not child.exists() or not child.read_text() or await _soon_gone(int(child.read_text()))


async def test_enough_output_is_enough(fake_git: Path, tmp_path: Path) -> None:
    """An endless answer is cut, and what gave it is ended without an error."""
    fake_git.write_text("#!/bin/sh\nyes\n")
    assert await git(("grep",), cwd=tmp_path, enough=10_000) == b"y\n" * 5_000


async def test_words_on_both_channels_do_not_block(fake_git: Path, tmp_path: Path) -> None:
    """A command that complains much and is told much while it answers does not hang."""
    fake_git.write_text("#!/bin/sh\nhead -c 3000000 /dev/zero >&2\ncat\n")
    data = b"x" * 3_000_000
    assert await git(("hash-object",), cwd=tmp_path, stdin=data, timeout_s=30) == data


@pytest.mark.parametrize(
    "argument",
    [
        pytest.param("a\0b", id="nul"),
        pytest.param("\ud83d", id="half-a-character"),
        pytest.param("x" * 3_000_000, id="longer-than-a-command-line"),
    ],
)
async def test_text_that_no_process_can_be_given_is_an_error_of_git(
    tmp_path: Path, argument: str
) -> None:
    """A model's words can't crash a run: callers expect GitError and nothing else."""
    with pytest.raises(GitError):
        await git(("grep", argument), cwd=tmp_path)


async def test_a_folder_that_is_not_there_is_an_error_of_git(tmp_path: Path) -> None:
    """The same for what was removed under us."""
    with pytest.raises(GitError, match="could not be run"):
        await git(("status",), cwd=tmp_path / "gone")


PIECES = st.sampled_from(
    ["a", "fix", "/", ".", "..", "-", "@", "@{", "{", "~", "^", ":", "*", "?", "[", "\\", " ", "\t",
     "\n", "\x7f", ".lock", "lock", "HEAD", "\u00e4", "\udcff", "x"]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=4).map("".join))
def test_branch_names_are_those_that_git_takes(name: str) -> None:
    """What we accept git accepts, and the other way round, but for names like options."""
    answer = subprocess.run(
        ["git", "check-ref-format", f"refs/heads/{name}"], env=ENVIRONMENT, check=False
    )
    try:
        accepted = checked_branch(name) == name
    except GitError:
        accepted = False
    assert accepted == (answer.returncode == 0 and not name.startswith("-"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("HEAD", id="name"),
        pytest.param("--output=x", id="option"),
        pytest.param("a" * 39, id="short"),
        pytest.param("A" * 40, id="capitals"),
        pytest.param("a" * 40 + "\n", id="line-end"),
        pytest.param("a" * 41, id="long"),
    ],
)
def test_only_whole_object_names_are_commit_ids(text: str) -> None:
    """Nothing but 40 or 64 small hexadecimal digits can stand where git would read options."""
    with pytest.raises(GitError):
        checked_sha(text)
