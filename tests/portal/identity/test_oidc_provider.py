"""How often an identity provider is asked, and how long anybody waits for one that does not answer."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from portal.http.errors import ApiError
from portal.http.rate_limits import Rate, Rates
from portal.identity import oidc_provider as talking
from portal.identity.oidc_provider import PAUSE_S, Provider
from portal.settings import ProviderSettings
from tests.support.portal import GENEROUS, Site
from tests.support.world import START

AUTH = "/api/v1/auth"


class Loopback(ThreadingHTTPServer):
    """A provider that knows no code, counts what it is asked, and holds its breath where it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: Counter[str] = Counter()
        self.answers, self.is_asked = threading.Event(), threading.Event()
        self.answers.set()


class Answering(BaseHTTPRequestHandler):
    """Its answers."""

    server: Loopback

    def do_GET(self) -> None:
        self._answer(200, {
            "issuer": self.server.issuer, "authorization_endpoint": f"{self.server.issuer}/auth",
            "token_endpoint": f"{self.server.issuer}/token", "jwks_uri": f"{self.server.issuer}/keys",
        })  # fmt: skip

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(400, {"error": "invalid_grant"})

    def _answer(self, status: int, content: object) -> None:
        self.server.asked[self.path] += 1
        self.server.is_asked.set()
        self.server.answers.wait(30)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    made = Loopback()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.answers.set()
    made.shutdown()
    made.server_close()


def test_codes_that_somebody_makes_up_are_not_asked_about_for_ever(tmp_path: Path, loopback: Loopback):
    """Whoever guesses is refused before the provider hears of it, and begins no login either."""
    rates = Rates(GENEROUS.reads, GENEROUS.writes, Rate(0.1, 3))
    portal = {"provider": ProviderSettings(loopback.issuer, "egs"), "rates": rates}
    site = Site(tmp_path, portal=portal)
    with site.client(None) as browser:
        browser.follow_redirects = False
        begun = browser.get(f"{AUTH}/login")
        (state,) = parse_qs(urlsplit(begun.headers["Location"]).query)["state"]
        guesses = [browser.get(f"{AUTH}/callback?state={state}&code=guess{n}").status_code for n in range(9)]
        assert guesses == [401] * 3 + [429] * 6
        assert loopback.asked["/token"] == 3
        assert browser.get(f"{AUTH}/login").status_code == 429
        site.clock.set(START + timedelta(seconds=10))
        assert browser.get(f"{AUTH}/login").status_code == 302
    site.close()


def test_logins_that_only_begin_have_an_end(tmp_path: Path, loopback: Loopback):
    rates = Rates(Rate(1, 3), GENEROUS.writes, GENEROUS.failures)
    site = Site(tmp_path, portal={"provider": ProviderSettings(loopback.issuer, "egs"), "rates": rates})
    with site.client(None) as browser:
        browser.follow_redirects = False
        assert [browser.get(f"{AUTH}/login").status_code for _ in range(4)] == [302] * 3 + [429]
    site.close()


def test_after_a_silence_nobody_asks_for_a_while(loopback: Loopback, monkeypatch: pytest.MonkeyPatch):
    """The pause begins when the wait was over: else it would be over as it begins."""
    monkeypatch.setattr(talking, "_TIMEOUT_S", 0.05)
    waited_s = 0.0

    def monotonic() -> float:
        return waited_s

    provider = Provider(ProviderSettings(loopback.issuer, "egs"), monotonic)
    told = provider._silent

    def late(why: str) -> ApiError:
        nonlocal waited_s
        waited_s += 10
        return told(why)

    monkeypatch.setattr(provider, "_silent", late)
    loopback.answers.clear()
    for now_s in (0.0, 10.0, 9.9 + PAUSE_S):
        waited_s = now_s
        with pytest.raises(ApiError, match="does not answer"):
            provider.metadata(START)
    assert sum(loopback.asked.values()) == 1
    loopback.answers.set()
    waited_s = 10 + PAUSE_S
    assert provider.metadata(START).token == f"{loopback.issuer}/token"
    provider.close()


def test_while_one_waits_for_the_provider_nobody_waits_for_a_lock(loopback: Loopback):
    """What is known is told at once though something else is being asked; of those who need the same one asks."""
    provider = Provider(ProviderSettings(loopback.issuer, "egs"))
    provider.metadata(START)
    loopback.answers.clear()
    loopback.is_asked.clear()
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(provider.keys, START) for _ in range(4)]
        assert loopback.is_asked.wait(30)
        assert provider.asks_again("new", START) is False
        assert provider.metadata(START).keys == f"{loopback.issuer}/keys"
        loopback.answers.set()
        assert len({id(each.result(30)) for each in waiting}) == 1
    assert loopback.asked["/keys"] == 1
    provider.close()
