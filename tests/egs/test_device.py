"""`egs login` with a browser (K1, B7): what each answer of the provider means, and all of it with a real one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from egs.commands.errors import Said
from egs.remote import device
from egs.remote.device import Wait, next_step
from portal.settings import ProviderSettings
from tests.egs.remote import Shell
from tests.support.openid import CLI, CLIENT, SECRET, OpenId, openid
from tests.support.portal import Site

SCOPES = "openid profile email groups"


@pytest.mark.parametrize(
    ("status", "body", "want"),
    [
        pytest.param(200, {"id_token": "t"}, "t", id="it is done"),
        pytest.param(400, {"error": "authorization_pending"}, Wait(5), id="nobody has typed the code yet"),
        pytest.param(400, {"error": "slow_down"}, Wait(10), id="asked too often"),
        pytest.param(401, {"error": "slow_down"}, Wait(10), id="whatever the status"),
    ],
)
def test_what_the_provider_means(status: int, body: dict[str, str], want: str | Wait) -> None:
    assert next_step(status, body, 5) == want


@pytest.mark.parametrize(
    ("status", "body", "sentence", "code"),
    [
        pytest.param(400, {"error": "access_denied"}, "refused in the browser", 1, id="somebody said no"),
        pytest.param(400, {"error": "expired_token"}, "the login took too long", 1, id="too late"),
        pytest.param(200, {"access_token": "x"}, "gave no ID token", 3, id="no ID token"),
        pytest.param(500, {}, "answered 500: no reason", 3, id="it broke"),
    ],
)
def test_when_it_is_over(status: int, body: dict[str, str], sentence: str, code: int) -> None:
    with pytest.raises(Said, match=sentence) as caught:
        next_step(status, body, 5)
    assert caught.value.exit_code == code


def test_a_provider_over_plain_http_is_not_asked() -> None:
    with pytest.raises(Said, match=r"login\.example\.com is not reached over https"):
        device.id_token("http://login.example.com", CLI, SCOPES)


def test_a_provider_that_is_away() -> None:
    with pytest.raises(Said, match=r"127\.0\.0\.1 does not answer") as caught:
        device.id_token("http://127.0.0.1:1", CLI, SCOPES)
    assert caught.value.exit_code == 3


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenId]:
    with openid(tmp_path_factory.mktemp("provider"), "http://testserver/api/v1/auth/callback") as found:
        yield found


def test_somebody_logs_in_with_a_browser(
    provider: OpenId, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "client"
    secret.write_text(f"{SECRET}\n")
    settings = ProviderSettings(
        issuer=provider.issuer, client_id=CLIENT, client_secret=secret, cli_client_id=CLI
    )
    site = Site(tmp_path, portal={"provider": settings})
    site.settle()
    said: list[str] = []

    def browse(_: float) -> None:
        said.append(capsys.readouterr().err)
        address, code = re.findall(r"open (\S+) and enter the code (\S+)", "".join(said))[0]
        provider.confirm(address.partition("?")[0], code, "bo")

    monkeypatch.setattr(device, "id_token", partial(device.id_token, pause=browse))
    monkeypatch.setenv("EGS_CONFIG", str(tmp_path / "config.yaml"))
    with site.server() as url:
        shell = Shell(site, url, tmp_path, capsys)
        done = shell("login", url)
        assert done.code == 0, done.err
        assert "bo@example.com is logged in" in done.err
        me = shell("whoami", "-o", "json").data
        assert (me["email"], me["via"], me["server"]) == ("bo@example.com", "login", url)
        assert shell("get", "slices", "-o", "json").data[0]["name"] == "vision"
    site.close()


class _Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks on to a place that says what it likes."""

    def do_GET(self) -> None:
        issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        ends = {"device_authorization_endpoint": f"{issuer}/code", "token_endpoint": f"{issuer}/token"}
        body = json.dumps({"issuer": issuer, **ends}).encode()
        self.send_response(200 if self.path == "/elsewhere" else 302)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_a_provider_that_sends_one_elsewhere_is_not_believed() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(Said, match="does not say how people log in"):
        device.id_token(f"http://127.0.0.1:{server.server_address[1]}", CLI, SCOPES)
    server.shutdown()
    server.server_close()
