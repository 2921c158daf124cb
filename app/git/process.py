"""The one way git is run: arguments as a list, an environment made from nothing, output bounded.

Configuration of the machine and of the user is ignored, hooks and filters are off, no command asks
for anything. A token lives in the environment of the one process that needs it, never in arguments
(other users can read those), never in a file.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import resource
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import GitError

TIMEOUT_S = 120.0
MAX_OUTPUT = 512 * 1024 * 1024
"""More than any diff we read; a runaway command ends here."""

READ_MEMORY = 1 << 30
"""For `memory`: more than any question about an ordinary repository takes, also a large one. A few
objects can be a million million changed files, and git remembers each."""

HERE_ONLY = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""For `environment`: a partial clone goes and fetches what it lacks, unless it can't speak.

The first is obeyed by git 2.44 and later, the second by all.
"""

_CHUNK = 1 << 20
_MAX_WORDS = 64 * 1024
_MOST_SAID = 2_000
_LAST_WORDS_S = 1.0
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_URL_CREDENTIALS = re.compile(r"https?://[^/]*@", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_DAMAGE = re.compile(
    r"corrupt|truncated|inflate|garbage|bad (?:tree|signature|index|pack)|packfile|loose object|"
    r"unable to (?:unpack|parse|load|open) object|not a git repository|bad config|broken ref|"
    r"reference broken|too.short tree|invalid sha1 pointer|did not send all",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(r"out of memory|memory exhausted|cannot allocate memory", re.IGNORECASE)
_BRANCH = re.compile(r"(?!/)[^\x00-\x20\x7f~^:?*\[\\]+")
_SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.autocrlf=false",
    "core.attributesFile=/dev/null",
    # A repository's own attributes shape neither a diff nor a checkout (git 2.43 and later; for
    # older ones a bare repository reads none, and mirrors say so in `info/attributes`).
    f"attr.tree={_EMPTY_TREE}",
    "diff.suppressBlankEmpty=false",
    "diff.renameLimit=1000",
    "log.showSignature=false",
    "core.quotePath=true",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
)


class GitTimeout(GitError):
    """Git did not end in its time; that says nothing of the repository."""


class GitTooLarge(GitError):
    """Git wanted more memory than it was given; trying again changes nothing."""

    retry_after = None  # type: ignore[assignment]  # the root of the tree allows it


class GitDamaged(GitError):
    """Git's words are those it has for a repository on disk that is broken.

    A commit can be made so that git says so too: this is a suspicion.
    """


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a repository is fetched from and pushed to. The token never shows in a repr.

    Raises GitError for an address that holds credentials or blanks, or reads like an option.
    """

    url: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        odd = self.url.startswith("-") or _CONTROL.search(self.url) or not is_storable(self.url)
        if odd or _URL_CREDENTIALS.match(self.url):
            raise GitError("A remote's address may hold no credentials and be no option.")

    def environment(self) -> dict[str, str]:
        """Variables that name this address `origin`, and send the token there and nowhere else.

        So no file holds the address: two workers may know one repository by two names.
        """
        settings = {"remote.origin.url": self.url}
        if self.token:
            header = {f"http.{self.url}.extraHeader": f"Authorization: Basic {self._basic}"}
            settings = header | settings
        numbered = list(enumerate(settings.items()))
        return (
            {"GIT_CONFIG_COUNT": str(len(numbered))}
            | {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in numbered}
            | {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered}
        )

    def without_secrets(self, text: str) -> str:
        """`text` with the token in any form we send it taken out."""
        if not self.token:
            return text
        return text.replace(self.token, "[redacted]").replace(self._basic, "[redacted]")

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()


async def git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    remote: Remote | None = None,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    accept: Sequence[int] = (0,),
    timeout_s: float = TIMEOUT_S,
    enough: int | None = None,
    memory: int | None = None,
) -> bytes:
    """Run git in `cwd` and return what it printed.

    With `enough`, git is ended once it printed that many bytes, and those are returned. With
    `memory`, it fails when it wants more bytes than that (on Linux). Raises GitError for an exit
    code that is not in `accept`, a timeout, more than MAX_OUTPUT, arguments
    that no process can be given, or a folder that is not there; the message holds git's own words
    without the token. Nothing that git started outlives the call, also when it is cancelled.
    """
    process = await _started(arguments, cwd, _environment(remote, environment or {}), stdin)
    whole = False
    try:
        _limit_memory(process, memory)
        async with asyncio.timeout(timeout_s):
            out, err, was_cut = await _talk(process, stdin, enough or MAX_OUTPUT)
        whole = not was_cut
    except TimeoutError:
        raise GitTimeout(f"git {arguments[0]} took longer than {timeout_s:.0f} s.") from None
    finally:
        if not whole:
            await _end_wholly(process)
    if was_cut and enough is None:
        raise GitError(f"git {arguments[0]} printed over {MAX_OUTPUT:,} bytes.")
    if not was_cut and process.returncode not in accept:
        # Masked before it is cut: half a token is still one, and the mask would not know it.
        words = _safe(err.decode("utf-8", "replace"), remote).strip()[-_MOST_SAID:]
        raise _failure(words)(f"git {arguments[0]} failed: {words or 'no message'}")
    return out


def _failure(words: str) -> type[GitError]:
    if _NO_MEMORY.search(words):
        return GitTooLarge
    return GitDamaged if _DAMAGE.search(words) else GitError


async def _started(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: bytes | None
) -> asyncio.subprocess.Process:
    starting = asyncio.create_task(_start(arguments, cwd, environment, stdin))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # It runs already, or is about to; asyncio itself would end git and leave its children.
        with suppress(GitError):
            await _end_wholly(await starting)
        raise


async def _start(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: bytes | None
) -> asyncio.subprocess.Process:
    command = ["git"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            cwd=cwd,
            env=environment,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_CHUNK,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        # NUL, half a character, or text longer than a command line; or no git, or no such folder.
        why = error.strerror if isinstance(error, OSError) else "text that can't be an argument"
        raise GitError(f"git {arguments[0]} could not be run: {why}.") from None


async def _talk(
    process: asyncio.subprocess.Process, stdin: bytes | None, most: int
) -> tuple[bytes, bytes, bool]:
    """Output, last words, and whether the output was cut at `most` bytes and the process ended."""

    async def feed() -> None:
        if process.stdin is not None:
            with suppress(ConnectionError):
                process.stdin.write(stdin or b"")
                await process.stdin.drain()
            process.stdin.close()

    async def read() -> tuple[bytes, bool]:
        kept = bytearray()
        async for chunk in _chunks(process.stdout):
            kept += chunk
            if len(kept) > most:
                _end(process)
                return bytes(kept[:most]), True
        return bytes(kept), False

    async def listen() -> bytes:
        kept = b""
        async for chunk in _chunks(process.stderr):
            kept = (kept + chunk)[-_MAX_WORDS:]
        return kept

    (out, was_cut), err, _ = await asyncio.gather(read(), listen(), feed())
    await process.wait()
    return out, err, was_cut


async def _chunks(stream: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        yield chunk


async def _end_wholly(process: asyncio.subprocess.Process) -> None:
    """End git, and hear of it: asyncio lets go of a process whose pipes were read to their ends."""
    _end(process)
    await process.wait()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_S):
            for stream in (process.stdout, process.stderr):
                async for _ in _chunks(stream):
                    pass


def _limit_memory(process: asyncio.subprocess.Process, most: int | None) -> None:
    """What it allocates, not what it maps: packs may be as large as they are."""
    if most is not None and hasattr(resource, "prlimit"):
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (most, most))


def _end(process: asyncio.subprocess.Process) -> None:
    """End git and what it started (it runs in a session of its own)."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _safe(text: str, remote: Remote | None) -> str:
    return remote.without_secrets(text) if remote else text


def _environment(remote: Remote | None, more: Mapping[str, str]) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "http:https:file",
        **_network(),
        **(remote.environment() if remote else {}),
        **more,
    }


def _network() -> dict[str, str]:
    """The proxies and certificates of our own environment, by the names that git listens to.

    It goes the same way as our requests to the API: libcurl knows `http_proxy` in lower case only
    and does not read `SSL_CERT_FILE`.
    """
    found = {
        name: os.environ.get(name) or os.environ.get(name.upper())
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    }
    found["GIT_SSL_CAINFO"] = os.environ.get("GIT_SSL_CAINFO") or os.environ.get("SSL_CERT_FILE")
    found["GIT_SSL_CAPATH"] = os.environ.get("GIT_SSL_CAPATH") or os.environ.get("SSL_CERT_DIR")
    return {name: value for name, value in found.items() if value}


def checked_sha(text: str) -> str:
    """`text` if it is a whole object name, so that it can't be an option. Raises GitError."""
    if not _SHA.fullmatch(text):
        raise GitError(f"{text[:80]!r} is not a commit id.")
    return text


def checked_branch(text: str) -> str:
    """`text` if git could have a branch of that name. Raises GitError."""
    bad = (
        not _BRANCH.fullmatch(text)
        or text.startswith("-")
        or ".." in text
        or "@{" in text
        or "//" in text
        or text.endswith(("/", "."))
        or any(part.startswith(".") or part.endswith(".lock") for part in text.split("/"))
        or not is_storable(text)
    )
    if bad:
        raise GitError(f"{text[:80]!r} is not a branch name.")
    return text


def is_storable(text: str) -> bool:
    """Whether the text is bytes to the operating system; half a character is not."""
    try:
        return bool(os.fsencode(text))
    except UnicodeEncodeError:
        return False
