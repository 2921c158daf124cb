"""The Redis that tests run on: the one that answers, else one started for the run.

`MERGEWARD_TEST_REDIS_URL` names another server than the local one. Tests use models of their own
names, so that they share a server without meeting.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import time
from functools import cache

import pytest
from redis import Redis
from redis.exceptions import RedisError

_USUAL = os.environ.get("MERGEWARD_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
_START_S = 10.0


@cache
def redis_url() -> str:
    """Where a Redis answers. Fails the test that asks if there is none and none can be started."""
    if _answers(_USUAL):
        return _USUAL
    program = shutil.which("redis-server")
    if program is None:
        pytest.fail("no Redis answers: install the package redis-server (or redis)", pytrace=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    server = subprocess.Popen((program, *options), stdout=subprocess.DEVNULL)
    atexit.register(server.terminate)
    url = f"redis://127.0.0.1:{port}/0"
    ends = time.monotonic() + _START_S
    while not _answers(url):
        if time.monotonic() > ends or server.poll() is not None:
            pytest.fail(f"redis-server did not start on port {port}", pytrace=False)
        time.sleep(0.05)
    return url


def forget(model_name: str) -> None:
    """Delete what a test has left about its model."""
    with Redis.from_url(redis_url()) as client:
        for key in client.scan_iter(match=f"mergeward:*{model_name}*"):
            client.delete(key)


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
            return bool(client.ping())
    except (RedisError, OSError):
        return False
