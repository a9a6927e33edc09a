"""A real Prometheus on this machine, with samples that a test wrote."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

READY_S = 60.0


def needs_prometheus() -> None:
    """Skip where Debian's package `prometheus` is missing."""
    for tool in ("prometheus", "promtool"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (apt-get install prometheus)")


def with_time(page: str, at_s: float) -> Iterator[str]:
    """The samples of an exposition, each with its time."""
    yield from (f"{line} {at_s:.3f}" for line in page.splitlines() if line and not line.startswith("#"))


@contextmanager
def prometheus(folder: Path, samples: Iterable[str]) -> Iterator[str]:
    """The address of a server that has exactly these samples; each line has its time in seconds."""
    needs_prometheus()
    families: dict[str, list[str]] = defaultdict(list)
    for line in samples:
        families[line.partition("{")[0]].append(line)
    text = folder / "samples.txt"
    text.write_text("\n".join((*(line for rows in families.values() for line in rows), "# EOF", "")))
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    with _server(folder) as address:
        yield address


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    (folder / "prometheus.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.retention.time=100y",  # tests live at instants of their own
        "--log.level=error",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(address, server)
            yield address
        finally:
            server.terminate()


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + READY_S
    while True:
        try:
            urllib.request.urlopen(f"{address}/-/ready", timeout=1).close()
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, "prometheus ended"
            assert time.monotonic() < ends, "prometheus is not ready"
            time.sleep(0.05)
        else:
            return
