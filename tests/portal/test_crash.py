"""What is killed, hangs or goes away between a push and its answer (K1): an answered write is on the remote, once."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from portal.writes import writer
from tests.support import repos
from tests.support.kube import eventually
from tests.support.portal import KEYS, Site
from tests.support.wishes import landed, refused, request_ids, submit, wish

ASK = {
    "gprName": "train",
    "name": "train",
    "sliceName": "vision",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 1,
    "exitDuration": "0d1h0m",
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    (made.repo / "hooks" / "hang").unlink(missing_ok=True)
    made.close()


def hook(site: Site, name: str, text: str) -> Path:
    """A hook of the server; gives its folder."""
    folder = site.repo / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


def test_killed_between_push_and_answer(site: Site, tmp_path: Path) -> None:
    """The process dies when the server has the commit and the caller no answer; asking again gives the first one."""
    pid = tmp_path / "pid"
    hook(site, "post-receive", f"kill -9 $(cat {pid})")
    site.settle()
    command = [sys.executable, "-c", "from portal.main import main; main()", "--repo", str(site.repo)]
    command += ["--state", str(tmp_path / "killed"), "--listen", "127.0.0.1:0"]
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stderr=out, env=dict(os.environ))
    pid.write_text(str(process.pid))
    port = eventually(lambda: _port_in(log), "the port in the log", 60)
    headers = {"Authorization": f"Bearer {KEYS['bo-editor']}", "Idempotency-Key": "once"}
    url = f"http://127.0.0.1:{port}"
    eventually(lambda: httpx.get(f"{url}/readyz", timeout=60).status_code == 200, "ready", 60)
    with pytest.raises(httpx.TransportError):
        httpx.post(f"{url}/api/v1/gpr", json=ASK, headers=headers, timeout=30)
    assert process.wait(30) == -9
    hook(site, "post-receive", "exit 0")
    assert len(request_ids(site)) == 1, "the server had it"
    with site.replica().client("bo-editor") as client:
        again = client.post("/api/v1/gpr", json=ASK, headers={"Idempotency-Key": "once"})
    assert again.status_code == 200, again.text
    assert again.json()["data"]["change"]["commit"] == repos.tip(site.repo)
    assert len(request_ids(site)) == 1


def _port_in(log: Path) -> int | None:
    """The port that uvicorn tells."""
    _, found, rest = log.read_text().partition("http://127.0.0.1:")
    return int(rest.split(" ")[0]) if found else None


def test_a_server_that_hangs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows yet: the caller hears so and how to follow it, and asking again makes nothing twice."""
    monkeypatch.setattr(writer, "ANSWER_S", 0.3)
    folder = hook(site, "pre-receive", 'while [ -e "hooks/hang" ]; do sleep 0.02; done')
    (folder / "hang").touch()
    mine = wish(site, "bo-editor", "vision/train", "k")
    (found,) = submit(site.portal, mine)
    assert (refused(found).status, refused(found).reason) == (503, "OutcomeUnknown")
    data = refused(found).data
    assert data is not None
    (folder / "hang").unlink()
    caller = site.portal.caller("bo-editor")
    first = eventually(lambda: site.portal.writer.follow(data["id"], caller), "the change", 60)
    monkeypatch.setattr(writer, "ANSWER_S", 20.0)
    assert landed(submit(site.portal, mine)[0]).commit == first.commit
    assert len(request_ids(site)) == 1


def test_a_server_that_goes_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a remote nothing is answered as done; when it is back, the same asked again is done."""
    monkeypatch.setattr(writer, "SETTLE_S", (0.01, 0.01))
    away = site.repo.with_name("away")
    shutil.move(site.repo, away)
    mine = wish(site, "bo-editor", "vision/train", "k")
    (found,) = submit(site.portal, mine)
    assert refused(found).status == 503
    site.refresh()
    site.silent_s = 4 * site.settings.poll.total_seconds()
    assert not site.portal.reader.ready().ok
    with site.client(None) as client:
        assert client.get("/readyz").status_code == 503
    shutil.move(away, site.repo)
    site.refresh()
    assert site.portal.reader.ready().ok
    assert landed(submit(site.portal, mine)[0]).commit == repos.tip(site.repo)


def test_a_caller_who_goes_away(site: Site) -> None:
    """A change whose caller hangs up is carried all the same, and nobody else is held up."""

    async def impatient() -> None:
        asked = asyncio.create_task(site.portal.writer.submit(wish(site, "bo-editor", "vision/gone")))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    asyncio.run(impatient())
    landed(submit(site.portal, wish(site, "bo-editor", "vision/train"))[0])
    assert site.main("slices/vision/gprs/train.yaml")


def test_what_waits_is_carried_before_the_end(site: Site) -> None:
    """SIGTERM ends nothing that was taken; what comes after it is sent to another replica."""

    async def ending() -> list[object]:
        wishes = [wish(site, "bo-editor", f"vision/t{n}") for n in range(5)]
        asked = [asyncio.create_task(site.portal.writer.submit(each)) for each in wishes]
        await asyncio.sleep(0)
        await asyncio.to_thread(site.portal.writer.stop)
        return list(await asyncio.gather(*asked, return_exceptions=True))

    for each in asyncio.run(ending()):
        landed(each)  # type: ignore[arg-type]
    assert len(request_ids(site)) == 5
    assert refused(submit(site.portal, wish(site, "bo-editor", "vision/late"))[0]).status == 503
