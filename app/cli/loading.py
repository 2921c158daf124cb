"""Loading much code fast."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Imports inside the block run without the collector of cycles, which would look through all
    that was loaded again and again: an eighth of the time. What they leave is never looked at."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
