"""The `mergeward` command. This module stays light: each command imports what it needs when run.

Exit codes: 0 done (or clean), 1 findings at or above the threshold or a failed check, 2 the
command could not be carried out; the last line on standard error says why and what to do.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    from app.cli.commands import cli
    from app.errors import MergewardError

    try:
        cli()
    except MergewardError as error:
        print(f"mergeward: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
