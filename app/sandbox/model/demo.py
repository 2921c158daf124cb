"""The demo's repository and the changes of its stories, as data.

Each file is kept under its own path with `.txt` behind it, so that nobody's linter, test runner or
import takes it for ours; a file whose name ends in `.deleted` is one that the change removes.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

_KEPT = ".txt"
_DELETED = ".deleted"

STORIES: tuple[str, ...] = ("story1", "story2", "story3", "story4")
"""Names for `load_story_files`, in the order the demo tells them."""


def load_demo_repository() -> dict[str, str]:
    """The default branch before any story: file contents by path."""
    return {path: text for path, text in _tree("base").items() if text is not None}


def load_story_files(story: str) -> dict[str, str | None]:
    """What a story's pull request changes: new contents by path, None for a removed file.

    Raises `KeyError` for a name that is not in `STORIES`.
    """
    if story not in STORIES:
        raise KeyError(f"no story {story!r}; there are {', '.join(STORIES)}")
    return _tree(story)


def _tree(name: str) -> dict[str, str | None]:
    root = files("app.sandbox.model").joinpath("scenarios", "demo", name)
    return dict(sorted(_walk(root, "")))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str | None]]:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, f"{path}/")
        elif path.endswith(_KEPT):
            yield path.removesuffix(_KEPT), entry.read_text(encoding="utf-8")
        elif path.endswith(_DELETED):
            yield path.removesuffix(_DELETED), None
