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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import GitError

TIMEOUT_S = 120.0
MAX_OUTPUT = 512 * 1024 * 1024
"""More than any diff we read; a runaway command ends here."""

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"(?!/)[^\x00-\x20\x7f~^:?*\[\\]+")
_SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.autocrlf=false",
    "core.attributesFile=/dev/null",
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


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a repository is fetched from and pushed to. The token never shows in a repr."""

    url: str
    token: str = field(default="", repr=False)

    def environment(self) -> dict[str, str]:
        """Variables that make git send the token with every request to this address alone."""
        if not self.token:
            return {}
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{self.url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        }


async def git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    remote: Remote | None = None,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    accept: Sequence[int] = (0,),
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """Run git in `cwd` and return what it printed.

    Raises GitError for an exit code that is not in `accept`, a timeout, or too much output; the
    message holds git's own words without the token.
    """
    command = ["git"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        cwd=cwd,
        env=_environment(remote, environment or {}),
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), timeout_s)
    except TimeoutError:
        raise GitError(f"git {arguments[0]} took longer than {timeout_s:.0f} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in accept:
        raise GitError(f"git {arguments[0]} failed: {_words(err, remote)}")
    if len(out) > MAX_OUTPUT:
        raise GitError(f"git {arguments[0]} printed over {MAX_OUTPUT:,} bytes.")
    return out


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
        **{
            name: value
            for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "GIT_SSL_CAINFO")
            if (value := os.environ.get(name))
        },
        **(remote.environment() if remote else {}),
        **more,
    }


def _words(err: bytes, remote: Remote | None) -> str:
    text = err.decode("utf-8", "replace").strip()[-2000:]
    if remote and remote.token:
        text = text.replace(remote.token, "[redacted]")
    return text or "no message"


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
        or text.endswith(("/", ".", ".lock"))
        or any(part.startswith(".") for part in text.split("/"))
    )
    if bad:
        raise GitError(f"{text[:80]!r} is not a branch name.")
    return text
