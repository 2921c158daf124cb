"""Write the migration from the newest revision to the tables as they are now.

    python migrations/generate.py "Why the tables change"

Read what it wrote before you commit it, set `HEAD` in `app/store/migrate.py` to its revision, and
run `pytest tests/migrations`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory

from app.store.migrate import alembic_config, migration_connection, upgrade


def generate(message: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'empty.db'}"
        upgrade(url)
        with migration_connection(url) as connection:
            config = alembic_config(connection)
            count = len(list(ScriptDirectory.from_config(config).walk_revisions()))
            command.revision(config, message=message, rev_id=f"{count + 1:04d}", autogenerate=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    generate(sys.argv[1])
