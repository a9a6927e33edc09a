"""The server beside the loops, over real sockets: hooks, metrics, probes, and those who mean harm."""

from __future__ import annotations

import hmac
import http.client
import json
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from reconciler.bounded_http import address
from reconciler.processes.http_server import BOUNDS, MOST_BODY, Server, Service
from reconciler.processes.probes import Health
from schemas.errors import UserError

SECRET = "a secret of ours"
BODY = b'{"ref": "refs/heads/main"}'


class Rig:
    """A server whose loops only count how often they are woken."""

    def __init__(self, secrets: Path | None) -> None:
        self.woken: list[str] = []
        self.answers: list[str] = []
        self.ok = True
        wake = {name: lambda name=name: self.woken.append(name) for name in ("fleet", "lab")}
        self.server = Server(
            "127.0.0.1:0",
            Service(wake, self.health, self.health, self.page, self.answers.append, secrets),  # type: ignore[arg-type]
        )
        self.server.start()

    def health(self) -> Health:
        return Health(self.ok, {"fleet": ("Leading" if self.ok else "CycleHangs", "a sentence")})

    def page(self, accept: str) -> tuple[bytes, str]:
        return b"egs_leading 1\n", f"text/plain; asked={accept}"

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Status and document."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(text) if is_json else text.decode()

    def push(self, path: str = "/hooks/push", body: bytes = BODY) -> tuple[int, Any]:
        """A hook as GitHub sends it."""
        digest = hmac.new(SECRET.encode(), body, sha256).hexdigest()
        return self.ask("POST", path, body, X_Hub_Signature_256=f"sha256={digest}")

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=60)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    file = tmp_path / "secrets"
    file.write_text(SECRET + "\n")
    return file


@pytest.fixture
def rig(secrets: Path) -> Iterator[Rig]:
    made = Rig(secrets)
    yield made
    made.server.stop()


# -- hooks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "woken"),
    [
        pytest.param("/hooks/push", ["fleet", "lab"], id="all"),
        pytest.param("/hooks/push/", ["fleet", "lab"], id="all, with a slash"),
        pytest.param("/hooks/push/lab", ["lab"], id="one by its name"),
        pytest.param("/hooks/push/lab?from=forge", ["lab"], id="a query says nothing"),
    ],
)
def test_a_hook_wakes_the_loops_it_names(rig, path, woken):
    assert rig.push(path) == (202, {"woken": woken})
    assert rig.woken == woken
    assert rig.answers == ["Accepted"]


def test_gitlab_and_gitea_are_understood_too(rig):
    digest = hmac.new(SECRET.encode(), BODY, sha256).hexdigest()
    assert rig.ask("POST", "/hooks/push/lab", BODY, X_Gitea_Signature=digest)[0] == 202
    assert rig.ask("POST", "/hooks/push/lab", BODY, X_Gitlab_Token=SECRET)[0] == 202


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        pytest.param({}, "SignatureMissing", id="unsigned"),
        pytest.param(
            {"X_Hub_Signature_256": "sha256=" + 64 * "0"}, "SignatureWrong", id="signed by somebody else"
        ),
    ],
)
def test_a_hook_without_our_secret_wakes_nobody(rig, headers, reason):
    status, document = rig.ask("POST", "/hooks/push/no-such", BODY, **headers)
    assert (status, document["reason"]) == (401, reason)
    assert rig.woken == []
    assert rig.answers == [reason]


def test_a_hook_for_a_repository_that_is_not_ours_is_told_so_once_it_is_believed(rig):
    status, document = rig.push("/hooks/push/elsewhere")
    assert (status, document["reason"]) == (404, "NoSuchRepository")


def test_a_secret_is_changed_without_a_restart(rig, secrets):
    secrets.write_text("the next one\n")
    assert rig.push()[0] == 401
    secrets.write_text(f"the next one\n{SECRET}\n")
    assert rig.push()[0] == 202


def test_a_file_of_secrets_that_is_empty_or_gone_believes_nobody(rig, secrets):
    secrets.write_text("\n")
    empty = hmac.new(b"", BODY, sha256).hexdigest()
    assert rig.ask("POST", "/hooks/push", BODY, X_Gitea_Signature=empty)[0] == 503
    secrets.unlink()
    status, document = rig.push()
    assert (status, document["reason"]) == (503, "HookSecretMissing")
    assert rig.woken == []


def test_without_secrets_hooks_are_off():
    rig = Rig(None)
    try:
        status, document = rig.ask("POST", "/hooks/push", BODY, X_Gitlab_Token="")
        assert (status, document["reason"]) == (404, "HooksOff")
    finally:
        rig.server.stop()


@pytest.mark.parametrize(
    ("length", "status"),
    [
        pytest.param(str(MOST_BODY + 1), 413, id="one byte too many"),
        pytest.param("0" * 20 + "9" * 9, 411, id="a length behind zeros"),
        pytest.param("-1", 411, id="a negative length"),
        pytest.param("1e3", 411, id="no number"),
        pytest.param("\u00b2", 411, id="a digit that is none"),
    ],
)
def test_a_body_is_bounded_before_it_is_read(rig, length, status):
    connection = rig.open()
    connection.sendall(f"POST /hooks/push HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
    assert connection.recv(100).split()[1] == str(status).encode()
    connection.close()
    assert rig.woken == []


def test_a_body_of_the_largest_size_is_read(rig):
    assert rig.push(body=b"x" * MOST_BODY)[0] == 202


# -- metrics and probes --------------------------------------------------------------------------------------


def test_metrics_come_in_the_format_asked_for(rig):
    assert rig.ask("GET", "/metrics", Accept="text/plain") == (200, "egs_leading 1\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_say_why(rig, path):
    assert rig.ask("GET", path) == (
        200,
        {"ok": True, "repositories": {"fleet": {"reason": "Leading", "message": "a sentence"}}},
    )
    rig.ok = False
    status, document = rig.ask("GET", path)
    assert (status, document["ok"]) == (503, False)
    assert document["repositories"]["fleet"]["reason"] == "CycleHangs"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/hooks/push", 404),
        ("GET", "/%00", 404),
        ("POST", "/metrics", 404),
        ("POST", "/hooks/pushed", 404),
        ("DELETE", "/metrics", 501),
    ],
)
def test_anything_else_is_refused(rig, method, path, status):
    assert rig.ask(method, path)[0] == status


# -- those who mean harm -------------------------------------------------------------------------------------


def test_a_flood_of_silent_clients_locks_nobody_out(rig):
    """The oldest is cut off for the newest, so a probe is answered all the same."""
    silent = [rig.open() for _ in range(BOUNDS.connections + 10)]
    assert rig.ask("GET", "/healthz")[0] == 200
    silent[0].settimeout(BOUNDS.idle_s / 2)
    assert silent[0].recv(1) == b"", "the oldest was cut off"
    for connection in silent:
        connection.close()


def test_a_client_that_dribbles_is_cut_off(rig, monkeypatch):
    """Each byte comes in time, the request never ends."""
    monkeypatch.setattr(rig.server, "bounds", BOUNDS._replace(whole_s=0.2))
    connection = rig.open()
    connection.settimeout(0.05)
    assert any(gone(connection) for _ in range(int(BOUNDS.idle_s / 0.05)))
    connection.close()


def gone(connection: socket.socket) -> bool:
    """Sends one byte more; True when the other side has hung up."""
    try:
        connection.sendall(b"G")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_what_breaks_costs_one_request(rig, monkeypatch, caplog):
    monkeypatch.setattr(rig, "health", lambda: 1 / 0)
    rig.server.service = rig.server.service._replace(alive=rig.health)
    with pytest.raises(http.client.RemoteDisconnected):
        rig.ask("GET", "/healthz")
    assert rig.ask("GET", "/readyz")[0] == 200
    assert "request broke" in caplog.text


# -- the address ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        (":8080", ("", 8080)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_an_address_is_host_and_port(text, want):
    assert address(text) == want


@pytest.mark.parametrize("text", ["8080", "localhost", "localhost:", "localhost:http", ":99999", ":\u00b2"])
def test_an_address_that_is_none_is_wrong_use(text):
    with pytest.raises(UserError) as caught:
        address(text)
    assert caught.value.reason == "WrongUse"


def test_a_port_that_is_taken_is_one_sentence(rig):
    with pytest.raises(UserError) as caught:
        Server(f"127.0.0.1:{rig.server.port}", rig.server.service)
    assert caught.value.reason == "ListenFailed"
    assert "Address already in use" in str(caught.value)
