"""Sessions: values without secrets, one default for the process, one login for many callers. A7, B7, K1."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading

import httpx
import pytest

import egs
from egs import aio, exceptions
from egs.connection import Connection, Patience, address_of, base_url
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES, session


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site):
    with site.server() as address:
        yield address


@pytest.fixture(autouse=True)
def _no_default():
    egs.update_global_session(None)
    yield
    egs.update_global_session(None)


@pytest.mark.parametrize("face", FACES)
def test_a_session_says_who_and_shows_no_secret(face, url):
    auth = FACES[face]("authenticate", url, KEYS["bo-editor"])
    assert (auth.endpoint, auth.email, auth.role, auth.workspaces) == (
        url,
        "bo@example.com",
        "Editor",
        ("vision",),
    )
    FACES[face]("list_workspaces", auth)
    secrets = (KEYS["bo-editor"], auth.connection.token.text)
    for shown in (repr(auth), repr(auth.connection), repr(auth.connection.token), str(auth)):
        assert not any(secret in shown for secret in secrets)
    with pytest.raises(TypeError):
        pickle.dumps(auth)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("key", "want"),
    [
        ("short", exceptions.ApiKeyInvalid),
        ("egs_nobody_has_this_key_at_all", exceptions.ApiKeyNotFound),
        (KEYS["bo-expired"], exceptions.ApiKeyExpired),
        (KEYS["bo-revoked"], exceptions.ApiKeyRevoked),
    ],
    ids=["malformed", "unknown", "expired", "revoked"],
)
def test_keys_that_open_nothing(face, key, want, url):
    with pytest.raises(want) as caught:
        FACES[face]("authenticate", url, key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("face", FACES)
def test_a_token_of_the_server_is_as_good_as_a_key(face, url):
    auth = egs.authenticate(url, KEYS["ada-owner"])
    token = auth.connection.token.text
    for args in ((url, None, token, True), (url, None, True, token)):
        other = FACES[face]("authenticate", *args)
        assert (other.email, other.role) == ("ada@example.com", "Owner")
        assert egs.get_global_session() is other
    with pytest.raises(exceptions.EgsApplicationException):
        FACES[face]("authenticate", url, access_token="no.token.atall")


def test_the_default_of_the_process(url):
    with pytest.raises(exceptions.Unauthorized, match="No authenticated session found"):
        egs.list_workspaces()
    auth = egs.authenticate(url, KEYS["bo-editor"], sdk_default=True)
    assert egs.get_global_session() is egs.get_authenticated_session(None) is auth
    assert [workspace.name for workspace in egs.list_workspaces()] == ["vision"]
    other = egs.authenticate(url, KEYS["cy-editor"])
    assert egs.get_authenticated_session(other) is other
    assert [workspace.name for workspace in egs.list_workspaces(other)] == ["nlp"]
    assert [workspace.name for workspace in asyncio.run(aio.list_workspaces())] == ["vision"]


@pytest.mark.parametrize("given", [{}, {"api_key": "k", "access_token": "t"}])
def test_one_of_key_and_token(given):
    with pytest.raises(exceptions.BadParameters):
        egs.authenticate("https://egs.example.com", **given)


class Counting(httpx.BaseTransport):
    """Answers logins and reads, and counts both; the first reads find the token over."""

    def __init__(self, over):
        self.logins, self.reads, self.over = 0, 0, over
        self._lock = threading.Lock()

    def handle_request(self, request):
        with self._lock:
            if request.url.path.endswith("/auth"):
                self.logins += 1
                return httpx.Response(200, json={"data": {"token": f"t{self.logins}"}})
            self.reads += 1
            is_over = request.headers["authorization"] == "Bearer t1" and self.over
            return httpx.Response(401 if is_over else 200, json={"data": {"workspaces": []}})


def test_many_threads_renew_a_token_once():
    transport, made = Counting(over=True), session()
    import os

    made.connection.pool(os.getpid(), lambda: httpx.Client(transport=transport))
    egs.update_global_session(made)
    threads = [threading.Thread(target=egs.list_workspaces) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert transport.logins == 2
    assert transport.reads <= 32


def test_many_tasks_renew_a_token_once(url):
    made = egs.authenticate(url, KEYS["bo-editor"])
    first = made.connection.token
    made.connection.token = type(first)("stale", first.until_s)
    tokens = []

    async def look():
        await aio.list_workspaces(made)
        tokens.append(made.connection.token)

    async def run():
        async with made:
            await asyncio.gather(*(look() for _ in range(8)))

    asyncio.run(run())
    assert len({id(token) for token in tokens}) == 1
    assert tokens[0].text != "stale"


def test_a_session_serves_one_loop_after_the_other(url):
    auth = egs.authenticate(url, KEYS["bo-editor"])
    for _ in range(3):
        assert asyncio.run(aio.list_workspaces(auth))
        gc.collect()
    with auth:
        assert auth.client.get(f"{url}/healthz").status_code == 200
    assert egs.list_workspaces(auth)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("https://egs.example.com/", "https://egs.example.com"),
        (" http://127.0.0.1:8080 ", "http://127.0.0.1:8080"),
        ("https://h/behind/here/", "https://h/behind/here"),
    ],
)
def test_addresses(given, want):
    assert base_url(given) == want


@pytest.mark.parametrize(
    "given",
    ["egs.example.com", "ftp://h", "", "https://", "https://bo:secret@h", "https://s3cret@h?x=s3cret"],
)
def test_what_is_no_address_of_a_server(given):
    with pytest.raises(exceptions.BadParameters) as caught:
        egs.authenticate(given, "key")
    assert "cret" not in str(caught.value)
    assert "cret" not in address_of(given)


def test_patience_is_a_value():
    assert Connection("https://h", {}, Patience(attempts=1)).patience.attempts == 1
