"""Is a finding still there in another tree? Pure.

A finding was seen on a head of the pull request; what was merged may differ (a last push, a squash,
a conflict resolved by hand). The question is asked with code, not with a model: the line it
pointed at must still stand in its file.
"""

from __future__ import annotations


def still_there(code: str, file: bytes | None) -> bool:
    """Whether the line `code` (as it was when last seen) stands anywhere in `file`.

    `file` is None when the path is not in that tree: then the finding is gone. A
    finding with no line of code (`code` is blank) concerns the whole file and is there while the
    file is. White space around the line is ignored, since a later re-indentation fixes nothing.
    """
    if file is None:
        return False
    wanted = code.strip().encode("utf-8", "surrogateescape")
    if not wanted:
        return True
    return any(line.strip() == wanted for line in file.split(b"\n"))
