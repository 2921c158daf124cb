"""How long Mergeward takes to start, measured on real processes.

    .venv/bin/python bench/startup.py [--runs 5] [--python PATH]

Prints one row per scenario: wall seconds from starting the process to the answer 202 to a signed
ping (posted again every 10 ms until then), and to the end of `mergeward --help`; and the CPU
seconds that took, which say more on a busy machine. Exit code 1 if a median is over its bound.
"""

# ruff: noqa: S603, T201 - a program that starts programs and prints
from __future__ import annotations

import argparse
import hashlib
import hmac
import http.client
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECRET = "a-secret-of-the-benchmark"  # noqa: S105 - protects nothing
BODY = b'{"zen": "Keep it logically awesome.", "hook_id": 1, "hook": {"type": "App"}}'
POLL_S = 0.01
GIVE_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One start: seconds on the clock, and seconds of CPU of the process."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that starts. `bound` is the promise in seconds; None: measured only."""

    name: str
    bound: float | None
    measure: Callable[[], Sample]


class Bench:
    """Starts Mergeward by one interpreter, in a data folder of its own."""

    def __init__(self, python: str, folder: Path) -> None:
        self._command = (python, "-m", "app.cli")
        self._folder = folder
        key = folder / "key.pem"
        key.write_bytes(_private_key())
        self._environment = {
            **{name: value for name, value in os.environ.items() if _is_neutral(name)},
            "MERGEWARD_REVIEWER_WEBHOOK_SECRET": SECRET,
            "MERGEWARD_REVIEWER_APP_ID": "1",
            "MERGEWARD_REVIEWER_SLUG": "mergeward",
            "MERGEWARD_REVIEWER_PRIVATE_KEY_FILE": str(key),
            "MERGEWARD_MODEL_BASE_URL": "http://127.0.0.1:9",
            "MERGEWARD_LOG_LEVEL": "error",
        }

    def scenarios(self) -> tuple[Scenario, ...]:
        """Everything that is measured."""
        return (
            Scenario("mergeward --help", 0.5, self.show_help),
            Scenario("first webhook, web only", 1.0, lambda: self.serve("--web-only")),
            Scenario("first webhook, embedded", 2.0, self.serve),
            Scenario("first webhook, new database", None, self.serve_anew),
        )

    def show_help(self) -> Sample:
        started, before = time.perf_counter(), _cpu_of_children()
        subprocess.run(
            (*self._command, "--help"),
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return Sample(time.perf_counter() - started, _cpu_of_children() - before)

    def serve(self, *options: str, data: str = "data") -> Sample:
        """From start to 202 on a database that has its tables (or gets them, the first time)."""
        port = _free_port()
        environment: Mapping[str, str] = {
            **self._environment,
            "MERGEWARD_DATA_DIR": str(self._folder / data),
        }
        started = time.perf_counter()
        process = subprocess.Popen(
            (*self._command, "serve", "--port", str(port), *options),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            _ping_until_stored(port, process)
            sample = Sample(time.perf_counter() - started, _cpu_of(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=GIVE_UP_S)
        return sample

    def serve_anew(self) -> Sample:
        return self.serve("--web-only", data=uuid.uuid4().hex)


def main() -> int:
    """Measure, print the table, and say by the exit code whether the promises hold."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="mergeward-bench-") as folder:
        bench = Bench(arguments.python, Path(folder))
        bench.serve("--web-only")  # makes the tables, and the byte code
        kept = True
        print(f"{'':30}{'bound':>7}{'median':>8}{'best':>8}{'worst':>8}{'CPU':>8}   (seconds)")
        for scenario in bench.scenarios():
            samples = [scenario.measure() for _ in range(arguments.runs)]
            kept &= _row(scenario, samples)
    return 0 if kept else 1


def _row(scenario: Scenario, samples: list[Sample]) -> bool:
    walls = [sample.wall for sample in samples]
    median = statistics.median(walls)
    cpu = statistics.median(sample.cpu for sample in samples)
    held = scenario.bound is None or median <= scenario.bound
    bound = "-" if scenario.bound is None else f"{scenario.bound:.1f}"
    print(
        f"{scenario.name:30}{bound:>7}{median:8.2f}{min(walls):8.2f}{max(walls):8.2f}{cpu:8.2f}"
        f"   {'' if held else 'over its bound'}",
        flush=True,
    )
    return held


def _ping_until_stored(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.perf_counter() + GIVE_UP_S
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with code {process.returncode}")
        if _ping(port) == 202:
            return
        time.sleep(POLL_S)
    raise SystemExit("the server did not answer in time")


def _ping(port: int) -> int | None:
    signature = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GIVE_UP_S)
    try:
        connection.request(
            "POST",
            "/webhooks/github",
            BODY,
            {
                "Content-Type": "application/json",
                "X-GitHub-Event": "ping",
                "X-GitHub-Delivery": str(uuid.uuid4()),
                "X-Hub-Signature-256": f"sha256={signature}",
            },
        )
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _cpu_of(pid: int) -> float:
    """CPU seconds of a running process; 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _private_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _is_neutral(name: str) -> bool:
    """Settings of the caller, and a caller that forbids byte code, would measure something else."""
    return not name.startswith(("MERGEWARD_", "PYTHONDONTWRITE")) and not name.endswith("_API_KEY")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5, help="starts per scenario")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to start")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
