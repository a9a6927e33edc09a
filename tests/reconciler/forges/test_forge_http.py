"""How a forge is spoken with: the token stays with one host, answers are bounded, refusals are sentences."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from reconciler.clock import ManualClock, SystemClock, steady_s
from reconciler.forges import forge_http
from reconciler.forges.forge_http import Api
from reconciler.forges.forge_port import RateLimited
from reconciler.model import backoff
from reconciler.model.clock_reading import Heard
from schemas.errors import Fault, UserError
from tests.support.forge import START

TOKEN = "very-secret-token"
PATIENCE_S = 60.0
Respond = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def server(respond: Respond) -> Iterator[str]:
    """An HTTP server whose every answer is `respond`'s."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                respond(self)

        def do_POST(self) -> None:
            self.do_GET()

    one = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{one.server_port}"
    finally:
        one.shutdown()
        one.server_close()
        thread.join()


def answer(status: int = 200, body: bytes = b"{}", **headers: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def api(base: str, token: Path | None = None) -> Api:
    return Api(base, token, ManualClock(START))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.mark.parametrize(
    "base",
    [
        pytest.param("http://forge.example.com/api/v1", id="a token in the clear"),
        pytest.param("http://127.0.0.1.evil.example/api", id="a name that looks like loopback"),
        pytest.param("https://ada:hunter2@forge.example.com/api", id="a password in the address"),
        pytest.param("https://forge.example.com/api?token=hunter2", id="a token in the address"),
        pytest.param("ftp://forge.example.com/", id="another protocol"),
        pytest.param("forge.example.com", id="no protocol"),
        pytest.param("https://", id="no host"),
        pytest.param("https://forge.example.com:port/", id="no port"),
    ],
)
def test_an_address_that_gives_the_token_away_is_refused(base: str) -> None:
    with pytest.raises(UserError) as caught:
        api(base)
    assert caught.value.reason == "BadForge"
    assert "hunter2" not in str(caught.value)


def test_the_token_is_read_anew_and_sent_as_a_bearer(token: Path) -> None:
    met: list[str] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.headers["Authorization"])
        answer()(handler)

    with server(respond) as base:
        one = api(base, token)
        one.get("/a")
        token.write_text("another-token")
        one.get("/a")
    assert met == [f"Bearer {TOKEN}", "Bearer another-token"]


@pytest.mark.parametrize("text", ["", "two\nlines", "with space", "nül", "x" * 5000])
def test_a_file_without_a_token_is_a_fault_that_does_not_show_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    with server(answer()) as base, pytest.raises(Fault) as caught:
        api(base, path).get("/a")
    assert caught.value.reason == "ForgeRefused"
    assert not text or text not in str(caught.value)


def test_a_missing_token_file_is_a_fault(tmp_path: Path) -> None:
    with server(answer()) as base, pytest.raises(Fault):
        api(base, tmp_path / "nowhere").get("/a")


def test_a_redirect_within_the_host_is_followed(token: Path) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        moved = handler.path == "/repos/old"
        (answer(301, b"", Location="/repositories/7") if moved else answer(body=b'{"id": 7}'))(handler)

    with server(respond) as base:
        assert api(base, token).get("/repos/old") == {"id": 7}


def test_a_redirect_to_another_host_is_not_followed_and_gets_no_token(token: Path) -> None:
    met: list[str] = []

    def other(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.headers.get("Authorization", ""))
        answer()(handler)

    with (
        server(other) as elsewhere,
        server(answer(302, b"", Location=f"{elsewhere}/x")) as base,
        pytest.raises(Fault) as caught,
    ):
        api(base, token).get("/a")
    assert met == []
    assert caught.value.reason == "ForgeRefused"


def test_redirects_in_circles_end() -> None:
    with server(answer(302, b"", Location="/again")) as base, pytest.raises(Fault, match="circles"):
        api(base).get("/a")


def test_a_write_is_never_redirected() -> None:
    with server(answer(307, b"", Location="/b")) as base, pytest.raises(Fault):
        api(base).send("POST", "/a", {})


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forge_http, "MOST_ANSWER", 100_000)
    with server(answer(body=b'"' + b"x" * 300_000 + b'"')) as base, pytest.raises(Fault, match="more than"):
        api(base).get("/a")


def test_a_compressed_answer_is_refused() -> None:
    with server(answer(body=b"\x1f\x8b", Content_Encoding="gzip")) as base, pytest.raises(Fault):
        api(base).get("/a")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"[" * 200_000, id="brackets without end"),
        pytest.param(b'{"id": NaN}', id="no number"),
        pytest.param(b'{"id": ' + b"9" * 10_000 + b"}", id="a number without end"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
    ],
)
def test_what_is_no_json_is_a_fault(body: bytes) -> None:
    with server(answer(body=body)) as base, pytest.raises(Fault) as caught:
        api(base).the_row("/a")
    assert caught.value.reason == "ForgeRefused"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "ForgeRefused"),
        (403, "ForgeRefused"),
        (422, "ForgeRefused"),
        (500, "ForgeUnreachable"),
        (503, "ForgeUnreachable"),
    ],
)
def test_refusals_and_trouble_are_told_apart(status: int, reason: str, token: Path) -> None:
    body = b'{"message": "no \\u001b[31m @everyone"}'
    with server(answer(status, body)) as base, pytest.raises(Fault) as caught:
        api(base, token).get("/a")
    assert caught.value.reason == reason
    assert TOKEN not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_read_is_tried_twice_and_a_write_once() -> None:
    met: list[str] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.command)
        answer(503)(handler)

    with server(respond) as base:
        for call in (lambda: api(base).get("/a"), lambda: api(base).send("POST", "/a", {})):
            with pytest.raises(Fault):
                call()
    assert met == ["GET", "GET", "POST"]


@pytest.mark.parametrize(
    ("status", "headers", "pause_s"),
    [
        pytest.param(429, {"Retry-After": "120"}, 120, id="as long as it asks for"),
        pytest.param(429, {}, 30, id="a while, where it does not say"),
        pytest.param(429, {"Retry-After": "999999999"}, 3600, id="an hour at most"),
        pytest.param(
            403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1795248300"}, 300, id="GitHub"
        ),
        pytest.param(403, {"Retry-After": "60"}, 60, id="GitHub's second limit"),
    ],
)
def test_a_forge_is_left_alone_when_it_says_so(status: int, headers: dict[str, str], pause_s: int) -> None:
    met: list[str] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.path)
        answer(status, **{name.replace("-", "_"): value for name, value in headers.items()})(handler)

    with server(respond) as base:
        one = api(base)
        with pytest.raises(RateLimited) as caught:
            one.get("/a")
        with pytest.raises(RateLimited):
            one.get("/b")
    assert met == ["/a"]
    assert (caught.value.until - START).total_seconds() == pause_s


def conditional(body: bytes, met: list[str]) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        known = handler.headers.get("If-None-Match") == '"one"'
        met.append("304" if known else "200")
        (answer(304, b"", ETag='"one"') if known else answer(body=body, ETag='"one"'))(handler)

    return respond


@pytest.mark.parametrize(
    "items", [pytest.param(1, id="a small answer"), pytest.param(1_500_000, id="a page of pull requests")]
)
def test_what_did_not_change_is_not_sent_again(items: int) -> None:
    met: list[str] = []
    with server(conditional(json.dumps([1] * items).encode(), met)) as base:
        one = api(base)
        assert one.get("/a") == one.get("/a") == [1] * items
    assert met == ["200", "304"]


def test_of_kept_answers_those_that_were_not_asked_for_longest_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forge_http, "KEPT_BYTES", 10)
    met: list[str] = []
    with server(conditional(b"[1,2]", met)) as base:
        one = api(base)
        for path in ("/a", "/b", "/a", "/c", "/a", "/b"):
            one.get(path)
    assert met == ["200", "200", "304", "200", "304", "200"]


def test_pages_are_followed_by_links_of_the_same_host_alone() -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        second = "page=2" in handler.path
        links = {} if second else {"Link": '<https://evil.example/x?page=2>; rel="next"'}
        answer(body=b'[{"n": 2}]' if second else b'[{"n": 1}]', **links)(handler)

    with server(respond) as base:
        assert [row.number("n") for row in api(base).rows("/a")] == [1, 2]


def test_pages_without_end_are_cut_off() -> None:
    met: list[str] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.path)
        host = handler.headers["Host"]
        answer(body=b'[{"n": 1}]', Link=f'<http://{host}/a?page=7>; rel="next"')(handler)

    with server(respond) as base:
        api(base).rows("/a")
    assert len(met) == forge_http.MOST_PAGES


def test_a_forge_that_does_not_answer_costs_one_wait_and_not_one_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forge_http, "TIMEOUT", httpx.Timeout(0.05))
    met: list[str] = []
    go_on = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.path)
        go_on.wait(PATIENCE_S)
        answer()(handler)

    clock = ManualClock(START)
    with server(hang) as base:
        one = Api(base, None, clock)
        for _ in range(3):
            with pytest.raises(Fault) as caught:
                one.get("/a")
            assert caught.value.reason == "ForgeUnreachable"
        assert met == ["/a"]
        go_on.set()
        clock.set(START + backoff.FORGE.first)
        monkeypatch.setattr(forge_http, "TIMEOUT", httpx.Timeout(PATIENCE_S))
        assert Api(base, None, clock).get("/a") == {}


def test_calls_take_no_more_of_a_window_than_their_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    took = iter(range(0, 1000, 3))  # each look at the clock is three seconds later
    monkeypatch.setattr(forge_http, "monotonic_s", lambda: float(next(took)))
    met: list[str] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        met.append(handler.path)
        answer()(handler)

    clock = ManualClock(START)
    with server(respond) as base:
        one = Api(base, None, clock, timedelta(seconds=5))
        one.get("/a")
        with pytest.raises(RateLimited) as caught:
            one.get("/b")
        assert caught.value.until == START + forge_http.WINDOW
        clock.set(caught.value.until)
        one.get("/b")
    assert met == ["/a", "/b"]


def test_the_forges_clock_is_heard_with_each_answer(token: Path) -> None:
    heard: list[Heard] = []
    with server(answer()) as base:
        Api(base, token, ManualClock(START), heard=heard.append).get("/user")
    assert [abs(h.at(steady_s()) - SystemClock().now()) < timedelta(minutes=1) for h in heard] == [True]
