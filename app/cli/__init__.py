"""The `mergeward` command. This module stays light: each command imports what it needs when run.

Exit codes: 0 done (or clean), 1 findings at or above the threshold or a failed check, 2 the
command could not be carried out; the last line on standard error says why and what to do.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the console script."""
    # pydantic would read what every installed package says of itself, looking for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from app.cli.commands import cli

    try:
        cli()
    except Exception as error:
        sys.exit(_failed(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _failed(error: Exception) -> int:
    """Say why. Never 1, Python's own code for a crash: here that means that findings were made."""
    from app.cli.output import plain
    from app.errors import MergewardError

    if isinstance(error, MergewardError):
        print(f"mergeward: {plain(str(error))}", file=sys.stderr)
    else:
        import traceback

        print(plain("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        print(
            "mergeward: this is a defect of Mergeward; please report the lines above.",
            file=sys.stderr,
        )
    return 2
