from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.databases import available, drop_schema, new_schema


@pytest.fixture(params=available())
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table, on each kind that is available."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'new folder' / '100%.db'}"
        return
    url, schema = new_schema()
    yield url.render_as_string(hide_password=False)
    drop_schema(schema)
