"""Who asks: API keys, sessions and cookies, what ends them, and how often each may ask (B7, B10, A7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from portal.http.rate_limits import Rate, Rates
from portal.identity.sessions import Session, issue
from tests.support.portal import GENEROUS, KEYS, Site, api_key
from tests.support.world import START, project, slice_

AUTH = "/api/v1/auth"
WRITE = "/api/v1/gpr"
LIFE = timedelta(hours=1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A portal that no test changes."""
    yield from _site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A portal of a test's own."""
    yield from _site(tmp_path)


def _site(folder: Path, **portal: Any) -> Iterator[Site]:
    found = Site(folder, portal=portal)
    found.settle()
    yield found
    found.close()


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def opened(client: TestClient, key: str) -> str:
    """The token of a session that this key opens."""
    answer = client.post(AUTH, json={"apiKey": KEYS[key]})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["token"])


def key_error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["errorKey"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", (400, "ApiKeyInvalid"), id="nothing is no key"),
        pytest.param("too-short", (400, "ApiKeyInvalid"), id="a word is no key"),
        pytest.param("a b" * 20, (400, "ApiKeyInvalid"), id="a sentence is no key"),
        pytest.param("x" * 500, (400, "ApiKeyInvalid"), id="a novel is no key"),
        pytest.param(
            "5067bd55-1aef-4c84-8987-3e966e917f07", (401, "ApiKeyNotFound"), id="nobody made this one"
        ),
        pytest.param(KEYS["bo-revoked"], (401, "ApiKeyRevoked"), id="a revoked one opens nothing"),
        pytest.param(KEYS["bo-expired"], (401, "ApiKeyExpired"), id="an expired one opens nothing"),
    ],
)
def test_a_key_that_opens_nothing(shared: Site, text: str, want: tuple[int, str]):
    with shared.client(None) as client:
        shown = client.post(AUTH, json={"apiKey": text})
        assert key_error(shown) == want
        assert text not in shown.text or not text
        as_bearer = client.get(AUTH, headers=bearer(text))
        assert key_error(as_bearer) == ((401, want[1]) if text else (401, "ApiKeyInvalid"))
        assert as_bearer.headers["WWW-Authenticate"] == "Bearer"


def test_of_an_expired_key_the_vendors_words_are_said(shared: Site):
    with shared.client(None) as client:
        answer = client.post(AUTH, json={"apiKey": KEYS["bo-expired"]})
        assert answer.json()["message"] == "Api Key has expired"


def test_a_key_and_its_session_are_the_same_caller(shared: Site):
    with shared.client("bo-editor") as client:
        by_key = client.get(AUTH).json()["data"]
        answer = client.post(AUTH, json={"apiKey": KEYS["bo-editor"]}).json()["data"]
        by_session = client.get(AUTH, headers=bearer(answer.pop("token"))).json()["data"]
    ends = (START + LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert answer == {
        "expiresAt": ends, "email": "bo@example.com", "name": "bo", "role": "Editor", "workspaces": ["vision"],
    }  # fmt: skip
    assert by_key == {
        "email": "bo@example.com", "name": "bo", "isAdmin": False, "via": "key bo-editor", "expiresAt": None,
        "grants": [{"role": "Editor", "workspaces": ["vision"]}], "workspaces": ["vision"],
    }  # fmt: skip
    assert by_session == {**by_key, "expiresAt": ends}


@pytest.mark.parametrize(
    ("key", "role", "workspaces"),
    [
        pytest.param("ada-owner", "Owner", None, id="an admin's Owner key is an admin"),
        pytest.param("ada-viewer", "Viewer", None, id="an admin's Viewer key sees everything"),
        pytest.param("ada-vision", "Owner", ["vision"], id="in a scope an admin is an owner"),
        pytest.param("olga-owner", "Owner", ["vision"], id="an owner owns her slice"),
        pytest.param("bo-owner", "Editor", ["vision"], id="a member's Owner key owns nothing"),
        pytest.param("bo-viewer", "Viewer", ["vision"], id="a Viewer reads"),
        pytest.param("eve-editor", None, [], id="the key of nobody's member opens an empty house"),
    ],
)
def test_what_a_key_carries(shared: Site, key: str, role: str | None, workspaces: list[str] | None):
    with shared.client(None) as client:
        found = client.post(AUTH, json={"apiKey": KEYS[key]}).json()["data"]
    assert (found["role"], found["workspaces"]) == (role, workspaces)


def test_another_replica_knows_the_session(site: Site):
    other = site.replica()
    with site.client(None) as client, other.client(None) as elsewhere:
        token = opened(client, "olga-owner")
        assert elsewhere.get(AUTH, headers=bearer(token)).json()["data"]["email"] == "olga@example.com"


def again(name: str, **spec: str) -> str:
    """The manifest of a key, with other words in it."""
    text = api_key(name)
    for old, new in spec.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("files", "want"),
    [
        pytest.param({"keys/bo-editor.yaml": None}, "ApiKeyNotFound", id="that is deleted"),
        pytest.param(
            {"keys/bo-editor.yaml": api_key("bo-editor") + "  revoked: true\n"},
            "ApiKeyRevoked",
            id="that is revoked",
        ),
        pytest.param(
            {"keys/bo-editor.yaml": api_key("bo-viewer")},
            "ApiKeyNotFound",
            id="whose name another one has now",
        ),
        pytest.param(
            {"keys/mine.yaml": again("bo-editor", **{"name: bo-editor": "name: mine", "bo@": "eve@"})},
            "ApiKeyNotFound",
            id="whose digest somebody else claims too",
        ),
        pytest.param(
            {"keys/bo-editor.yaml": "nonsense"}, "ApiKeyNotFound", id="whose file does not read any more"
        ),
    ],
)
def test_a_key_takes_its_sessions_with_it(site: Site, files: dict[str, str | None], want: str):
    with site.client("bo-editor") as client:
        token = opened(client, "bo-editor")
        site.commit(files)
        for shown in (KEYS["bo-editor"], token):
            assert key_error(client.get(AUTH, headers=bearer(shown))) == (401, want)


def test_a_key_takes_its_sessions_with_it_when_its_time_is_over(site: Site):
    until = (START + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    site.commit({"keys/bo-editor.yaml": api_key("bo-editor") + f"  notAfter: '{until}'\n"})
    with site.client("bo-editor") as client:
        token = opened(client, "bo-editor")
        assert client.get(AUTH, headers=bearer(token)).json()["data"]["expiresAt"] == until
        site.clock.set(START + timedelta(minutes=5))
        assert key_error(client.get(AUTH)) == (401, "ApiKeyExpired")
        assert key_error(client.get(AUTH, headers=bearer(token)))[0] == 401


def test_a_session_ends_after_an_hour_and_can_be_opened_again(site: Site):
    with site.client(None) as client:
        token = opened(client, "bo-editor")
        site.clock.set(START + LIFE - timedelta(seconds=1))
        assert client.get(AUTH, headers=bearer(token)).status_code == 200
        site.clock.set(START + LIFE)
        assert key_error(client.get(AUTH, headers=bearer(token))) == (401, "SessionEnded")
        assert client.get(AUTH, headers=bearer(opened(client, "bo-editor"))).status_code == 200


def test_whoever_leaves_a_slice_has_lost_it_with_the_next_commit(site: Site):
    with site.client(None) as client:
        token = opened(client, "bo-editor")
        site.commit({"slices/vision/slice.yaml": slice_("vision", members=[{"email": "cy@example.com"}])})
        for shown in (token, KEYS["bo-editor"]):
            assert client.get(AUTH, headers=bearer(shown)).json()["data"]["workspaces"] == []


def cookie_of(site: Site, groups: tuple[str, ...] = (), email: str = "bo@example.com") -> dict[str, str]:
    """What a browser holds after a login."""
    logins = site.portal.parts.logins
    token = issue(logins.signer, Session(email, "Bo", site.now + LIFE, groups=groups))
    return {"Cookie": f"{logins.cookie}={token}"}


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param({"Origin": "http://testserver"}, 422, id="from its own page it gets as far as its body"),
        pytest.param(
            {"Origin": "http://testserver:80"}, 422, id="the port that goes without saying is the same"
        ),
        pytest.param({}, 403, id="nobody says from which page"),
        pytest.param({"Origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"Origin": "https://testserver"}, 403, id="another scheme"),
        pytest.param({"Origin": "http://testserver:81"}, 403, id="another port"),
        pytest.param({"Origin": "http://testserver.example.com"}, 403, id="a longer name"),
        pytest.param({"Origin": "http://[:x"}, 403, id="nonsense"),
    ],
)
def test_a_cookie_changes_things_only_from_the_portals_own_pages(
    shared: Site, headers: dict[str, str], want: int
):
    with shared.client(None) as client:
        cookie = cookie_of(shared)
        assert client.get(AUTH, headers=cookie).status_code == 200, (
            "reading is free: no other page gets to see it"
        )
        assert client.post(WRITE, json={}, headers=cookie | headers).status_code == want
        assert client.post(f"{AUTH}/logout", headers=cookie | headers).status_code == (
            200 if want == 422 else 403
        )
        by_key = client.post(WRITE, json={}, headers=bearer(KEYS["bo-editor"]) | headers)
        assert by_key.status_code == 422, "a key does not go along by itself"


def test_what_is_shown_on_purpose_counts_before_the_cookie(shared: Site):
    with shared.client(None) as client:
        cookie = cookie_of(shared)
        assert (
            client.get(AUTH, headers=cookie | bearer(KEYS["olga-owner"])).json()["data"]["email"]
            == "olga@example.com"
        )
        assert client.get(AUTH, headers=cookie | bearer("x" * 40)).status_code == 401
        assert client.get(AUTH, headers=cookie | {"Authorization": "Basic Ym86Ym8="}).status_code == 401
        assert client.get(
            AUTH, headers=bearer(KEYS["bo-editor"]) | {"Authorization": f"bearer {KEYS['bo-editor']}"}
        )
        assert client.get(AUTH).status_code == 401


def test_groups_count_as_the_project_has_them_now(site: Site):
    with site.client(None) as client:
        cookie = cookie_of(site, ("nlp-team",), "gus@example.com")
        assert client.get(AUTH, headers=cookie).json()["data"]["grants"] == []
        rule = {"group": "nlp-team", "role": "Editor", "slices": ["nlp"]}
        site.commit({"project.yaml": project(groups=[rule])})
        found = client.get(AUTH, headers=cookie).json()["data"]
        assert found["grants"] == [{"role": "Editor", "workspaces": ["nlp"]}]
        assert (found["via"], found["isAdmin"]) == ("login", False)
        site.commit({"project.yaml": project()})
        assert client.get(AUTH, headers=cookie).json()["data"]["grants"] == []


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param({}, (422, "BadParameters"), id="nothing is shown"),
        pytest.param({"apiKey": "x" * 40, "idToken": "x"}, (422, "BadParameters"), id="two things are shown"),
        pytest.param({"password": "x" * 40}, (422, "BadParameters"), id="something else is shown"),
        pytest.param(
            {"idToken": "x"}, (404, "NoIdentityProvider"), id="there is nobody to vouch for an ID token"
        ),
    ],
)
def test_what_opens_no_session(shared: Site, body: dict[str, str], want: tuple[int, str]):
    with shared.client(None) as client:
        answer = client.post(AUTH, json=body)
        assert key_error(answer) == want
        assert "x" * 40 not in answer.text


def test_without_a_provider_nobody_is_sent_anywhere(shared: Site):
    with shared.client(None) as client:
        assert client.get(f"{AUTH}/config").json()["data"] == {
            "issuer": None,
            "clientId": None,
            "scopes": None,
        }
        for path in ("login", "callback"):
            assert key_error(client.get(f"{AUTH}/{path}", follow_redirects=False)) == (
                404,
                "NoIdentityProvider",
            )


def test_no_key_and_no_token_comes_into_a_log_or_an_answer(shared: Site, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with shared.client(None) as client:
        token = opened(client, "bo-editor")
        answers = [
            client.get(AUTH, headers=bearer(text)).text for text in (token, KEYS["bo-editor"], f"{token}x")
        ]
    secrets = (KEYS["bo-editor"], token)
    assert not any(secret in text for secret in secrets for text in (*answers, caplog.text))
    assert not any(secret in repr(shared.portal.parts) for secret in secrets)


# -- how often -----------------------------------------------------------------------------------------------------


def test_each_key_has_its_own_allowance(tmp_path: Path):
    for site in _site(tmp_path, rates=Rates(Rate(2, 3), Rate(1, 1), GENEROUS.failures)):
        with site.client("bo-editor") as client:
            assert [client.get(AUTH).status_code for _ in range(4)] == [200, 200, 200, 429]
            refused = client.get(AUTH)
            assert (key_error(refused), refused.headers["Retry-After"]) == ((429, "TooManyRequests"), "1")
            assert client.get(AUTH, headers=bearer(opened(client, "bo-editor"))).status_code == 429, (
                "the same key"
            )
            assert client.get(AUTH, headers=bearer(KEYS["bo-viewer"])).status_code == 200, "another key"
            assert [client.post(WRITE, json={}).status_code for _ in range(2)] == [422, 429], (
                "writes count apart"
            )
            site.clock.set(site.now + timedelta(seconds=1))
            assert [client.get(AUTH).status_code for _ in range(3)] == [200, 200, 429]


def test_one_person_has_twice_the_allowance_of_a_key_however_many_keys(tmp_path: Path):
    for site in _site(tmp_path, rates=Rates(Rate(2, 3), Rate(1, 1), GENEROUS.failures)):
        with site.client(None) as client:
            names = ("bo-owner", "bo-editor", "bo-viewer")
            asked = [client.get(AUTH, headers=bearer(KEYS[name])).status_code for name in names * 3]
            assert asked == [200] * 6 + [429] * 3
            assert client.get(AUTH, headers=cookie_of(site)).status_code == 429, "with a login as well"
            assert client.get(AUTH, headers=bearer(KEYS["olga-owner"])).status_code == 200, "another person"
            site.clock.set(site.now + timedelta(seconds=1))
            assert [client.get(AUTH, headers=bearer(KEYS["bo-viewer"])).status_code for _ in range(2)] == [
                200
            ] * 2


def test_a_key_that_is_refused_costs_its_person_nothing(tmp_path: Path):
    for site in _site(tmp_path, rates=Rates(Rate(1, 2), Rate(1, 1), GENEROUS.failures)):
        with site.client("bo-editor") as client:
            assert [client.get(AUTH).status_code for _ in range(9)] == [200] * 2 + [429] * 7
            assert client.get(AUTH, headers=bearer(KEYS["bo-viewer"])).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/plan", "/api/v1/gpr/why?gprId=vision/none"])
def test_what_plans_anew_counts_as_ten_reads(tmp_path: Path, path: str):
    for site in _site(tmp_path, rates=Rates(Rate(1, 25), Rate(1, 1), GENEROUS.failures)):
        with site.client("bo-editor") as client:
            assert 429 not in [client.get(path).status_code for _ in range(2)]
            refused = client.get(path)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
            assert client.get(AUTH).status_code == 200, "what is cheap goes on"


def test_logging_out_has_an_end_too(tmp_path: Path):
    for site in _site(tmp_path, rates=Rates(Rate(2, 3), Rate(1, 1), GENEROUS.failures)):
        with site.client(None) as client:
            assert [client.post(f"{AUTH}/logout").status_code for _ in range(4)] == [200] * 3 + [429]


def test_whoever_guesses_is_slowed_down_and_nobody_else(tmp_path: Path):
    for site in _site(tmp_path, rates=Rates(failures=Rate(0.1, 3))):
        with site.client(None) as client:
            guesses = [client.get(AUTH, headers=bearer(f"{n:040}")).status_code for n in range(5)]
            assert guesses == [401, 401, 401, 429, 429]
            assert client.post(AUTH, json={"apiKey": "y" * 40}).status_code == 429, "in whatever way"
            assert client.get(AUTH, headers=bearer(KEYS["bo-editor"])).status_code == 200, (
                "a neighbour's key is good"
            )
