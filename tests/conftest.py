"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A busy machine is not a failing rule: no deadlines. In continuous integration the same examples
# each time; on a developer's machine new ones.
settings.register_profile(
    "steady",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("steady")
