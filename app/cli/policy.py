"""`mergeward policy`: what a policy file says, before it is merged."""

from __future__ import annotations

import sys
from pathlib import Path

from app.cli.output import one_line, path_name, tolerate
from app.errors import UserError
from app.policy.document import MAX_BYTES
from app.policy.explain import explain as sentences_of
from app.policy.load import EffectivePolicy, PolicySource, parse_policy


def check(file: Path) -> None:
    """Print one line of what a valid file says. Raises PolicyError for one that can't be used."""
    said = _sentences(file)
    print(f"{path_name(str(file))} is valid. {' '.join(said[:2])}")


def explain(file: Path) -> None:
    """Print every sentence of what a valid file says. Raises PolicyError like `check`."""
    print("\n".join(_sentences(file)))


def _sentences(file: Path) -> list[str]:
    tolerate(sys.stdout, sys.stderr)
    policy = parse_policy(read_policy_file(file), path_name(str(file)))
    _, *said = sentences_of(EffectivePolicy(policy, PolicySource.FILE))
    return [one_line(sentence) for sentence in said]


def read_policy_file(file: Path) -> bytes:
    """The file's bytes, one more at most than a policy may have. Raises UserError."""
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(
            f"There is no file {path_name(str(file))}: without one, the default policy holds."
        ) from None
    except OSError as error:
        raise UserError(f"{path_name(str(file))} can't be read: {error.strerror}.") from None
