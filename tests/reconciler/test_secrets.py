"""A whole controller with every kind of secret: none of them gets into Git, a log, a comment or a page.

What single parts do with theirs is told in tests/reconciler/store/test_credentials.py,
tests/reconciler/forges/test_forge_http.py and tests/reconciler/trust/test_sshsig.py.
"""

from __future__ import annotations

import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.clock import SystemClock
from reconciler.credentials import Credentials
from reconciler.processes.http_server import Server, Service
from reconciler.processes.metrics import Metrics
from reconciler.processes.probes import Health
from reconciler.processes.repositories import Tending
from reconciler.settings import Settings, Trust
from tests.support import forge as fake
from tests.support import realkeys, repos, servers
from tests.support.world import cluster, gpr, gpr_path, project, slice_

FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a"),
}
PASSWORD, HOOK = "g1t-passw0rd-0123456789", "h00k-secret-0123456789"
PATIENCE_S = 60.0


class Rig:
    """A controller on a server that asks who is there, with a forge, a key of its own and webhooks."""

    def __init__(self, folder: Path, url: str, address: object, ca: Path) -> None:
        self.folder = folder
        self.key = realkeys.ssh_key(folder / "keys", "controller")
        trust, secret = folder / "trust", folder / "secret"
        for made in (trust, secret):
            made.mkdir()
        (trust / "allowed_signers").write_text(f"controller {self.key.public}\n")
        (secret / "username").write_text("egs")
        (secret / "password").write_text(PASSWORD)
        (secret / "ca.crt").write_bytes(ca.read_bytes())
        (folder / "hooks").write_text(HOOK + "\n")
        self.settings = Settings(
            f"{url}/fleet.git",
            folder / "state",
            credentials=Credentials(secret),
            trust=Trust("none", trust, self.key.private),
            forge=address,  # type: ignore[arg-type]
            pushes_per_minute=None,
        )
        self.metrics = Metrics(SystemClock())
        self.tending = Tending({"fleet": self.settings}, SystemClock(), self.metrics)
        fine = Health(True, {})
        self.server = Server(
            "127.0.0.1:0",
            Service(
                wake={"fleet": self.tending.wake},
                alive=lambda: fine,
                ready=lambda: fine,
                page=self.metrics.page,
                hooked=self.metrics.hooked,
                secrets=folder / "hooks",
            ),
        )

    def hook(self, token: str) -> int:
        """A webhook; the status of the answer."""
        where = f"http://127.0.0.1:{self.server.server_port}/hooks/push"
        request = urllib.request.Request(where, b"{}", {"X-Gitlab-Token": token})
        try:
            with urllib.request.urlopen(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def secrets(self) -> dict[str, bytes]:
        """Every secret, as it would be found."""
        body = self.key.private.read_text().splitlines()
        return {
            "the password of the repository": PASSWORD.encode(),
            "the same as the server is sent it": repos.basic(f"egs:{PASSWORD}").split()[1].encode(),
            "the token of the forge": fake.TOKEN.encode(),
            "the secret of the webhooks": HOOK.encode(),
            "the private key": body[len(body) // 2].encode(),
        }


@pytest.fixture
def there(tmp_path: Path) -> fake.Forge:
    there = fake.Forge(repos.bare(tmp_path / "fleet.git", FILES))
    there.push("ask", {gpr_path("a/llama"): gpr("a", "llama")}, "bo")
    there.open("ask", "bo")
    there.wrote = threading.Event()
    return there


@pytest.fixture
def rig(there: fake.Forge, tmp_path: Path) -> Iterator[Rig]:
    authority = servers.authority(tmp_path / "authority")
    with (
        repos.serve(tmp_path, f"egs:{PASSWORD}", authority.tls) as url,
        fake.served(there, tmp_path) as address,
    ):
        yield Rig(tmp_path, url, address, authority.ca)


def written(repo: Path) -> bytes:
    """Every object of a repository, as it reads."""
    listed = repos.git(repo, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    oids = [line.split()[0] for line in listed.splitlines() if not line.endswith(" tree")]
    question = "".join(f"{oid}\n" for oid in oids).encode()
    return repos.git(repo, "cat-file", "--batch", given=question).encode("utf-8", "surrogateescape")


def test_no_secret_is_in_what_a_controller_commits_logs_or_serves(
    rig: Rig, there: fake.Forge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        rig.server.start()
        rig.tending.start()
        try:
            assert there.wrote.wait(PATIENCE_S)
            assert rig.hook("wrong") == 401
            assert rig.hook(HOOK) in (200, 202, 204)
            # And trouble with each of them, which has to be told as well.
            (rig.folder / "secret" / "password").write_text(f"{PASSWORD}-wrong")
            (rig.folder / "forge-token").write_text(f"{fake.TOKEN}-wrong")
            there.down = 401
            rig.tending.wake()
            rig.hook(HOOK)
        finally:
            rig.tending.stop()
            rig.server.stop()
    status = repos.git(there.repo, "log", "--format=%B", "egs/status")
    assert status
    state = b"".join(path.read_bytes() for path in rig.settings.state.rglob("*") if path.is_file())
    told = {
        "Git": written(there.repo),
        "a log": caplog.text.encode(),
        "what is posted": repr((there.comments_of(1), there.statuses)).encode(),
        "the metrics": rig.metrics.page("")[0],
        "the controller's own folder": state,
        "the settings": repr(rig.settings).encode(),
    }
    found = [
        f"{secret} is in {where}"
        for where, text in told.items()
        for secret, value in rig.secrets().items()
        if value in text
    ]
    assert found == []
    assert b"egs-check" in told["what is posted"] or b"egs/check" in told["what is posted"]
    assert b"controller" in told["Git"]
