"""`egs-portal` as a process: wrong use is told, SIGTERM ends it in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.kube import eventually
from tests.support.portal import KEYS, Site
from tests.support.ready_python import ready_python


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.settle()
    yield made
    made.close()


def portal(site: Site, log: Path, *options: str, python: str = sys.executable) -> subprocess.Popen[bytes]:
    """The process, on a port of its own choice."""
    command = [python, "-c", "from portal.main import main; main()", "--repo", str(site.repo)]
    command += ["--state", str(log.parent / "state"), "--listen", "127.0.0.1:0", *options]
    with log.open("wb") as out:
        return subprocess.Popen(command, stderr=out, env=dict(os.environ))


def port_in(log: Path) -> int | None:
    """The port that it tells."""
    _, found, rest = log.read_text().partition("http://127.0.0.1:")
    return int(rest.split(" ")[0]) if found else None


def test_sigterm(site: Site, tmp_path: Path) -> None:
    """A stream that is open is ended and not waited for; the process ends well."""
    log = tmp_path / "log"
    process = portal(site, log)
    port = eventually(lambda: port_in(log), "the port in the log", 60)
    url = f"http://127.0.0.1:{port}"
    eventually(lambda: httpx.get(f"{url}/readyz", timeout=60).status_code == 200, "ready", 60)
    headers = {"Authorization": f"Bearer {KEYS['bo-editor']}"}
    with httpx.stream("GET", f"{url}/api/v1/watch?sliceName=vision", headers=headers, timeout=60) as stream:
        assert stream.status_code == 200
        parts = stream.iter_bytes()
        assert next(parts)
        process.send_signal(signal.SIGTERM)
        assert b"the server ends" in b"".join(parts)
    assert process.wait(30) in (0, -signal.SIGTERM), (
        log.read_text()
    )  # uvicorn raises the signal again at its end
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "nonsense"), "WrongUse"),
        (("--hook-secrets", "/nonexistent"), "HookSecretMissing"),
        (("--session-secret", "/nonexistent"), "NoSecret"),
    ],
)
def test_what_an_operator_has_to_mend(
    site: Site, tmp_path: Path, options: tuple[str, str], words: str
) -> None:
    """Told in one sentence, before anything is served."""
    log = tmp_path / "log"
    assert portal(site, log, *options, python=ready_python("portal.main")).wait(60) in (1, 2)
    assert words in log.read_text()
    assert "Traceback" not in log.read_text()
