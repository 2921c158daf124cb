"""How much a checkout of a commit would write, counted without writing anything.

Mostly one listing says it all. But a few objects can name each other into millions of files: where
the listing has no end, each distinct tree is read once, one level of directories at a time, so
counting costs what the repository holds and not what it would become.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from app.errors import GitError
from app.git.mirror import Repository
from app.git.objects import LISTING_OUTPUT
from app.git.process import HERE_ONLY, git

_MAX_DEPTH = 50
_LISTING_TIMEOUT_S = 3.0
_TREE = b"40000"
_SUBMODULE = b"160000"


class CheckoutTooLarge(GitError):
    """The commit is over a limit; trying again changes nothing."""

    retry_after = None  # type: ignore[assignment]  # the root of the tree allows it


@dataclass(frozen=True, slots=True)
class CheckoutLimits:
    """What a checkout may hold at most."""

    files: int = 200_000
    megabytes: int = 2_048


@dataclass(frozen=True, slots=True)
class _Weight:
    """Files (submodules count as one), the deepest number of folders, and bytes."""

    files: int
    depth: int
    size: int


@dataclass(frozen=True, slots=True)
class _Folder:
    """One tree: its files and folders by object id, as often as it names them."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    submodules: int


async def check_size(repository: Repository, commit: str, limits: CheckoutLimits) -> None:
    """Raises CheckoutTooLarge for a commit whose files are too many, too deep or too big.

    Contents that a partial copy lacks are here afterwards.
    """
    weight = await _listed(repository, commit)
    if weight is None:
        await _check_by_trees(repository, commit, limits)
        return
    _check_depth(weight.depth)
    _check_files(weight.files, limits)
    _check_bytes(weight.size, limits)


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise CheckoutTooLarge(
            f"No checkout, repository too large: over {_MAX_DEPTH} folders deep."
        )


def _check_files(count: int, limits: CheckoutLimits, what: str = "files") -> None:
    if count > limits.files:
        raise CheckoutTooLarge(
            f"No checkout, repository too large: {count:,} {what}, {limits.files:,} at most."
        )


def _check_bytes(size: int, limits: CheckoutLimits) -> None:
    if size > limits.megabytes * 1_000_000:
        raise CheckoutTooLarge(
            f"No checkout, repository too large: {size // 1_000_000:,} MB, "
            f"{limits.megabytes:,} at most."
        )


async def _listed(repository: Repository, commit: str) -> _Weight | None:
    """What a plain listing says; None when it has no end, or contents are not here yet."""
    try:
        out = await git(
            ("ls-tree", "-r", "-l", "-z", "--full-tree", commit),
            cwd=repository.git_dir,
            environment=HERE_ONLY,
            timeout_s=_LISTING_TIMEOUT_S,
            enough=LISTING_OUTPUT,
        )
    except GitError:
        return None
    if len(out) >= LISTING_OUTPUT:
        return None
    files = depth = size = 0
    for line in out.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        number = head.rpartition(b" ")[2]
        files += 1
        depth = max(depth, path.count(b"/"))
        size += int(number) if number != b"-" else 0
    return _Weight(files, depth, size)


async def _check_by_trees(repository: Repository, commit: str, limits: CheckoutLimits) -> None:
    root, folders = await _folders(repository, commit, limits)
    times = _appearances(root, folders)
    _check_files(
        sum(
            (len(folders[name].files) + folders[name].submodules) * number
            for name, number in times.items()
        ),
        limits,
    )
    _check_files(sum(times.values()), limits, "folders")
    await repository.tree(commit).fetch_contents()
    sizes = await _sizes(repository, {blob for name in times for blob in folders[name].files})
    total = sum(
        sizes.get(blob, 0) * number
        for name, number in times.items()
        for blob in folders[name].files
    )
    _check_bytes(total, limits)


async def _folders(
    repository: Repository, commit: str, limits: CheckoutLimits
) -> tuple[str, dict[str, _Folder]]:
    """The id of the top tree and all distinct trees below it."""
    out = await git(
        ("rev-parse", "--verify", f"{commit}^{{tree}}"),
        cwd=repository.git_dir,
        remote=repository.remote,
    )
    root = out.decode().strip()
    known: dict[str, _Folder] = {}
    wanted = [root]
    for _ in range(_MAX_DEPTH + 1):
        known |= {name: folder async for name, folder in _read(repository, wanted)}
        below = {name for folder in wanted for name in known[folder].folders}
        wanted = sorted(below - known.keys())
        if not wanted:
            return root, known
        _check_files(len(known) + len(wanted), limits, "folders")
    raise CheckoutTooLarge(f"No checkout, repository too large: over {_MAX_DEPTH} folders deep.")


async def _read(repository: Repository, names: Iterable[str]) -> AsyncIterator[tuple[str, _Folder]]:
    out = await _batch(repository, "--batch", names)
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, kind, size = out[at:end].split(b" ")
        if kind != b"tree":
            raise GitError(f"{name.decode()} is no tree.")
        body = out[end + 1 : end + 1 + int(size)]
        yield name.decode(), _parse(body, len(name) // 2)
        at = end + 2 + int(size)


def _parse(body: bytes, id_bytes: int) -> _Folder:
    files, folders, submodules, at = [], [], 0, 0
    while at < len(body):
        end = body.index(b"\0", at)
        mode = body[at:end].partition(b" ")[0]
        name = body[end + 1 : end + 1 + id_bytes].hex()
        if mode.lstrip(b"0") == _TREE:
            folders.append(name)
        elif mode == _SUBMODULE:
            submodules += 1
        else:
            files.append(name)
        at = end + 1 + id_bytes
    return _Folder(tuple(files), tuple(folders), submodules)


def _appearances(root: str, folders: Mapping[str, _Folder]) -> dict[str, int]:
    """How often each tree appears below the top; parents before their children."""
    order: list[str] = []
    done: set[str] = set()
    stack = [(root, False)]
    while stack:
        name, is_left = stack.pop()
        if is_left:
            order.append(name)
        elif name not in done:
            done.add(name)
            stack.append((name, True))
            stack += [(child, False) for child in folders[name].folders]
    times = dict.fromkeys(order, 0)
    times[root] = 1
    for name in reversed(order):
        for child in folders[name].folders:
            times[child] += times[name]
    return times


async def _sizes(repository: Repository, blobs: Iterable[str]) -> dict[str, int]:
    out = await _batch(repository, "--batch-check=%(objectname) %(objectsize)", blobs)
    lines = (line.split(b" ") for line in out.splitlines())
    return {name.decode(): int(size) for name, size in lines if size.isdigit()}


async def _batch(repository: Repository, how: str, names: Iterable[str]) -> bytes:
    stdin = "".join(f"{name}\n" for name in names).encode()
    return await git(
        ("cat-file", "--buffer", how),
        cwd=repository.git_dir,
        remote=repository.remote,
        stdin=stdin,
    )
