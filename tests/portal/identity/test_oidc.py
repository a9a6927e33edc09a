"""Logging in through an OpenID provider (B7): Dex itself, in a browser and by a device; and what must not come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from portal.identity.oidc import LOGIN, LOGIN_LIFE
from portal.settings import ProviderSettings
from tests.support.openid import CLI, CLIENT, SECRET, OpenId, openid, query_of
from tests.support.portal import Site
from tests.support.world import START, project

AUTH = "/api/v1/auth"
CALLBACK = f"http://testserver{AUTH}/callback"
GROUPS = [
    {"group": "nlp-team", "role": "Editor", "slices": ["nlp"]},
    {"group": "readers", "role": "Viewer"},
    {"group": "keepers", "role": "Owner"},
]


@dataclass
class Place:
    """A portal, and the provider that it trusts."""

    site: Site
    provider: OpenId

    def browser(self) -> TestClient:
        """A browser that was never here: it keeps cookies and follows nothing by itself."""
        found = self.site.client(None)
        found.follow_redirects = False
        return found

    def begin(self, browser: TestClient, next_: str = "/") -> str:
        """Where the portal sends that browser."""
        answer = browser.get(f"{AUTH}/login", params={"next": next_})
        assert answer.status_code == 302, answer.text
        return str(answer.headers["Location"])

    def return_of(self, url: str, who: str) -> str:
        """Where the provider sends somebody back to who is there by this address."""
        with httpx.Client(timeout=60) as browser:
            found = self.provider.authorise(browser, url, who).headers["Location"]
        assert found.startswith(CALLBACK)
        return str(found)

    def login(self, browser: TestClient, who: str, next_: str = "/") -> httpx.Response:
        """From the beginning to the end."""
        return browser.get(self.return_of(self.begin(browser, next_), who))


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenId]:
    with openid(tmp_path_factory.mktemp("provider"), CALLBACK) as found:
        yield found


def settings_of(provider: OpenId, folder: Path, **more: Any) -> ProviderSettings:
    secret = folder / "client"
    secret.write_text(f"{SECRET}\n")
    given = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": secret, "cli_client_id": CLI}
    return ProviderSettings(**given | more)


@pytest.fixture
def place(tmp_path: Path, provider: OpenId) -> Iterator[Place]:
    portal = {"provider": settings_of(provider, tmp_path), "public_url": "http://testserver"}
    site = Site(tmp_path, {"project.yaml": project(groups=GROUPS)}, portal)
    site.settle()
    yield Place(site, provider)
    site.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, provider: OpenId) -> Iterator[Place]:
    """One that no test changes."""
    folder = tmp_path_factory.mktemp("site")
    portal = {"provider": settings_of(provider, folder), "public_url": "http://testserver"}
    site = Site(folder, {"project.yaml": project(groups=GROUPS)}, portal)
    site.settle()
    yield Place(site, provider)
    site.close()


def key_error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["errorKey"]


@pytest.mark.parametrize(
    ("who", "grants"),
    [
        pytest.param("ada", [("Owner", None)], id="an admin is one"),
        pytest.param("bo", [("Editor", ["vision"])], id="a member is an Editor of their slice"),
        pytest.param("cy", [("Editor", ["nlp"])], id="also when they log in with a password"),
        pytest.param(
            "olga", [("Owner", ["vision"]), ("Viewer", None)], id="groups come on top of what one owns"
        ),
        pytest.param("gus", [("Editor", ["nlp"])], id="a group's Editor works where the group does"),
        pytest.param("ann", [("Viewer", None)], id="a group's Viewer reads everything"),
        pytest.param(
            "own",
            [("Owner", ["nlp", "vision"]), ("Viewer", None)],
            id="a group's Owner owns every slice, and is no admin",
        ),
        pytest.param("nobody", [], id="whom nobody lists may nothing"),
    ],
)
def test_somebody_logs_in_with_a_browser(shared: Place, who: str, grants: list[tuple[str, list[str] | None]]):
    with shared.browser() as browser:
        assert key_error(browser.get(AUTH)) == (401, "Unauthenticated")
        done = shared.login(browser, who, "/somewhere?else=1")
        assert (done.status_code, done.headers["Location"]) == (303, "/somewhere?else=1")
        me = browser.get(AUTH).json()["data"]
        assert (me["email"], me["via"]) == (f"{who}@example.com", "login")
        told = [(each["role"], each["workspaces"]) for each in me["grants"]]
        assert told == grants
        assert me["isAdmin"] is (who == "ada")
        assert LOGIN not in browser.cookies, "the login is over"
        browser.post(f"{AUTH}/logout", headers={"Origin": "http://testserver"})
        assert browser.get(AUTH).status_code == 401


def test_what_the_browser_is_asked_to_bring(shared: Place):
    with shared.browser() as browser:
        asked = query_of(shared.begin(browser))
        again = query_of(shared.begin(browser))
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == CALLBACK
    assert "openid" in asked["scope"].split()
    assert all(
        asked[name] != again[name] and len(asked[name]) >= 43 for name in ("state", "nonce", "code_challenge")
    )


def test_over_https_a_cookie_goes_nowhere_else(tmp_path: Path, provider: OpenId):
    portal = {"provider": settings_of(provider, tmp_path), "public_url": "https://egs.example.com"}
    site = Site(tmp_path, portal=portal)
    with site.client(None) as browser:
        answer = browser.get(f"{AUTH}/login", follow_redirects=False)
        assert (
            query_of(answer.headers["Location"])["redirect_uri"] == f"https://egs.example.com{AUTH}/callback"
        )
        assert answer.headers["Set-Cookie"].startswith(f"__Host-{LOGIN}=")
        words = {word.strip().lower() for word in answer.headers["Set-Cookie"].split(";")[1:]}
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= words
        gone = browser.post(f"{AUTH}/logout").headers["Set-Cookie"]
        assert gone.startswith("__Host-egs=")
        assert {"secure", "path=/"} <= {word.strip().lower() for word in gone.split(";")}
    site.close()


def test_a_session_is_a_cookie_that_no_script_reads(shared: Place):
    with shared.browser() as browser:
        set_ = shared.login(browser, "bo").headers.get_list("set-cookie")
        (session,) = (each for each in set_ if each.startswith("egs="))
        words = {word.strip().lower() for word in session.split(";")[1:]}
        assert words == {"httponly", "samesite=lax", "path=/", "max-age=3600"}


# -- what is refused -------------------------------------------------------------------------------------------------

Spoil = Callable[[Place, TestClient, str], str]
"""From a good way back to one that is not: changes the browser or the address."""


def _signed(place: Place, browser: TestClient, **changes: str) -> None:
    """The browser's login with other words in it, signed as if by the portal."""
    signer = place.site.portal.parts.logins.signer
    found = signer.read(LOGIN, browser.cookies[LOGIN], place.site.now)
    assert found is not None
    content = {k: v for k, v in found[0].items() if k not in ("aud", "exp")} | changes
    browser.cookies.clear()
    browser.cookies.set(LOGIN, signer.sign(LOGIN, content, found[1]))


def _another_nonce(place: Place, browser: TestClient, url: str) -> str:
    _signed(place, browser, nonce="n" * 64)
    return url


def _another_verifier(place: Place, browser: TestClient, url: str) -> str:
    _signed(place, browser, verifier="v" * 64)
    return url


def _another_state(place: Place, browser: TestClient, url: str) -> str:
    return url.replace(query_of(url)["state"], "s" * 64)


def _no_cookie(place: Place, browser: TestClient, url: str) -> str:
    browser.cookies.clear()
    return url


def _another_login(place: Place, browser: TestClient, url: str) -> str:
    with place.browser() as mallory:
        return place.return_of(place.begin(mallory), "gus")


def _a_session(place: Place, browser: TestClient, url: str) -> str:
    with place.browser() as other:
        place.login(other, "bo")
        session = other.cookies["egs"]
    browser.cookies.clear()
    browser.cookies.set(LOGIN, session)
    return url


def _too_late(place: Place, browser: TestClient, url: str) -> str:
    place.site.clock.set(place.site.now + LOGIN_LIFE)
    return url


def _used_code(place: Place, browser: TestClient, url: str) -> str:
    cookie = browser.cookies[LOGIN]
    assert browser.get(url).status_code == 303
    browser.cookies.clear()
    browser.cookies.set(LOGIN, cookie)
    return url


def _denied(place: Place, browser: TestClient, url: str) -> str:
    return f"{CALLBACK}?error=access_denied&state={query_of(url)['state']}"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(_another_nonce, id="the ID token belongs to another login"),
        pytest.param(_another_verifier, id="whoever brings the code did not ask for it"),
        pytest.param(_another_state, id="the state is a guess"),
        pytest.param(_no_cookie, id="this browser never began a login"),
        pytest.param(_another_login, id="somebody slips their own login to this browser"),
        pytest.param(_a_session, id="a session is no login under way"),
        pytest.param(_too_late, id="it took longer than ten minutes"),
        pytest.param(_used_code, id="the code was used already"),
        pytest.param(_denied, id="the provider says no"),
    ],
)
def test_a_login_that_does_not_count(place: Place, spoil: Spoil):
    with place.browser() as browser:
        back = place.return_of(place.begin(browser), "bo")
        url = spoil(place, browser, back)
        answer = browser.get(url)
        assert key_error(answer) == (401, "LoginFailed"), answer.text
        assert not [each for each in answer.headers.get_list("set-cookie") if each.startswith("egs=")]
        for secret in (query_of(back)["code"], query_of(back)["state"]):
            assert secret not in answer.text


def test_an_address_that_nobody_verified_is_nobodys(shared: Place):
    with shared.browser() as browser:
        answer = shared.login(browser, "eve")
        assert key_error(answer) == (401, "LoginFailed")
        assert "has not verified" in answer.json()["message"]


@pytest.mark.parametrize(
    ("next_", "want"),
    [
        pytest.param("/requests", "/requests", id="a page of the portal"),
        pytest.param("//evil.example.com/", "/", id="another host"),
        pytest.param("https://evil.example.com/", "/", id="another address"),
        pytest.param("/\\evil.example.com", "/", id="what a browser takes for another host"),
        pytest.param("/\tevil", "/", id="what does not print"),
        pytest.param("javascript:alert(1)", "/", id="a script"),
    ],
)
def test_where_a_login_leads(shared: Place, next_: str, want: str):
    with shared.browser() as browser:
        assert shared.login(browser, "bo", next_).headers["Location"] == want


# -- egs login -------------------------------------------------------------------------------------------------------


def opened(browser: TestClient, token: str) -> httpx.Response:
    return browser.post(AUTH, json={"idToken": token})


def test_a_program_logs_somebody_in_by_a_code_that_they_type(shared: Place):
    with shared.browser() as client:
        config = client.get(f"{AUTH}/config").json()["data"]
        assert config == {
            "issuer": shared.provider.issuer, "clientId": CLI, "scopes": "openid profile email groups",
        }  # fmt: skip
        answer = opened(client, shared.provider.by_device("gus"))
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        assert (data["email"], data["role"], data["workspaces"]) == ("gus@example.com", "Editor", ["nlp"])
        headers = {"Authorization": f"Bearer {data['token']}"}
        assert client.get(AUTH, headers=headers).json()["data"]["via"] == "login"


def test_the_providers_token_opens_a_session_and_nothing_else(shared: Place):
    token = shared.provider.by_device("bo")
    with shared.browser() as client:
        assert key_error(client.get(AUTH, headers={"Authorization": f"Bearer {token}"})) == (
            401,
            "SessionEnded",
        )
        head, body, signature = token.split(".")
        for broken in (
            f"{head}.{body}.",
            f"{head}.{body}.{signature[:-8]}AAAAAAAA",
            "a.b.c",
            "",
            "ä.ö.ü",
            token[1:],
        ):
            assert key_error(opened(client, broken)) == (401, "LoginFailed")


def test_a_token_that_is_over(place: Place):
    token = place.provider.by_device("bo")
    with place.browser() as client:
        place.site.clock.set(START + timedelta(minutes=5, seconds=30))
        assert opened(client, token).status_code == 200, (
            "five minutes, and the provider's clock may be one off"
        )
        place.site.clock.set(START + timedelta(hours=1, minutes=5))
        assert key_error(opened(client, token)) == (401, "LoginFailed")


def test_new_keys_of_the_provider_are_learnt_but_not_at_anybodys_pace(tmp_path: Path):
    with openid(tmp_path, CALLBACK) as own:
        site = Site(
            tmp_path, portal={"provider": settings_of(own, tmp_path), "public_url": "http://testserver"}
        )
        with site.client(None) as client:
            assert opened(client, own.by_device("bo")).status_code == 200
            own.restart()
            token = own.by_device("bo")
            assert key_error(opened(client, token)) == (401, "LoginFailed"), (
                "its keys were read this very second"
            )
            site.clock.set(START + timedelta(seconds=10))
            assert opened(client, token).status_code == 200
            own.stop()
            assert opened(client, token).status_code == 200, "what is known is known"
            site.clock.set(START + timedelta(hours=2))
            assert key_error(opened(client, token)) == (503, "Unavailable")
            assert key_error(client.get(f"{AUTH}/login", follow_redirects=False)) == (503, "Unavailable")
        site.close()


def test_a_provider_that_calls_itself_otherwise_is_not_believed(tmp_path: Path, provider: OpenId):
    other = provider.issuer.replace("127.0.0.1", "localhost")
    site = Site(tmp_path, portal={"provider": settings_of(provider, tmp_path, issuer=other)})
    with site.client(None) as client:
        answer = client.get(f"{AUTH}/login", follow_redirects=False)
        assert key_error(answer) == (503, "Unavailable")
        assert "states another issuer" in answer.json()["message"]
    site.close()
