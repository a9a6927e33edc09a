"""ID tokens that no honest provider sends (B7): by other keys and algorithms, for others, of others, half empty."""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from portal.http.errors import ApiError
from portal.identity.oidc import groups_in, verified
from portal.identity.oidc_provider import Provider, key_set
from portal.settings import ProviderSettings
from tests.support.portal import Site
from tests.support.profile import law
from tests.support.world import START

Claims = dict[str, Any]
RSA = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})
ENCRYPTING = RSAKey.generate_key(2048, {"kid": "rsa", "use": "enc"})
UNMARKED = RSAKey.import_key(ENCRYPTING.as_pem(private=True), {"kid": "rsa"})
SHARED = OctKey.generate_key(256, {"kid": "shared"})
PUBLISHED: list[Any] = [
    {"kty": "quantum", "kid": "new"},
    {"kty": "RSA", "kid": "broken"},
    "nonsense",
    {**SHARED.as_dict(private=True)},
    *(key.as_dict(private=False) for key in (ENCRYPTING, RSA, EC)),
]


class Loopback(BaseHTTPRequestHandler):
    """Publishes what it likes."""

    def do_GET(self) -> None:
        issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        answers: Mapping[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": issuer, "authorization_endpoint": f"{issuer}/auth", "token_endpoint": f"{issuer}/token",
                "jwks_uri": f"{issuer}/keys",
            },
            "/keys": {"keys": PUBLISHED},
        }  # fmt: skip
        body = json.dumps(answers[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loopback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = Provider(ProviderSettings(f"http://127.0.0.1:{server.server_address[1]}", "egs"))
    yield found
    found.close()
    server.shutdown()
    server.server_close()


def seconds(at: datetime) -> int:
    return int(at.timestamp())


def claims(provider: Provider, **changes: Any) -> Claims:
    """Of a good token; None leaves one out."""
    good: Claims = {
        "iss": provider.settings.issuer, "aud": "egs", "sub": "1", "iat": seconds(START), "nonce": "once",
        "exp": seconds(START + timedelta(minutes=5)), "email": "bo@example.com", "email_verified": True,
    }  # fmt: skip
    return {name: value for name, value in (good | changes).items() if value is not None}


def signed(content: Claims, key: Any = RSA, alg: str = "RS256", kid: str | None = "rsa") -> str:
    header = {"alg": alg} if kid is None else {"alg": alg, "kid": kid}
    return jwt.encode(header, content, key, [alg])


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def unsigned(alg: str, content: Claims) -> str:
    return ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": alg, "kid": "rsa"}, content))


def with_secret(content: Claims, secret: bytes) -> str:
    """By hand: no library signs with the text of a public key."""
    text = unsigned("HS256", content)
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), 'sha256'))}"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda p: signed(claims(p)), id="as it should be"),
        pytest.param(lambda p: signed(claims(p), EC, "ES256", "ec"), id="by an elliptic key"),
        pytest.param(lambda p: signed(claims(p, aud=["egs"])), id="for a list of one"),
        pytest.param(
            lambda p: signed(claims(p, aud=["x", "egs"], azp="egs")), id="for several, asked by this one"
        ),
        pytest.param(
            lambda p: signed(claims(p, exp=seconds(START) - 30)), id="over, as far as clocks may differ"
        ),
        pytest.param(lambda p: signed(claims(p, iat=seconds(START) + 30)), id="from the near future"),
    ],
)
def test_a_token_that_counts(provider: Provider, make: Callable[[Provider], str]):
    assert verified(provider, make(provider), START, nonce="once").email == "bo@example.com"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda p: unsigned("none", claims(p)) + ".", id="without a signature"),
        pytest.param(
            lambda p: with_secret(claims(p), RSA.as_pem(private=False)),
            id="signed with the published key as if it were a secret",
        ),
        pytest.param(
            lambda p: signed(claims(p), SHARED, "HS256", "shared"), id="by a secret that was published"
        ),
        pytest.param(lambda p: signed(claims(p), STRANGER), id="by a stranger's key of the same name"),
        pytest.param(
            lambda p: signed(claims(p), STRANGER, kid="unknown"), id="by a key that nobody published"
        ),
        pytest.param(lambda p: signed(claims(p), RSA, kid=None), id="that does not say by which key"),
        pytest.param(lambda p: signed(claims(p), UNMARKED), id="by a key that is for something else"),
        pytest.param(lambda p: signed(claims(p, iss="https://evil.example.com")), id="of another issuer"),
        pytest.param(
            lambda p: signed(claims(p, iss=p.settings.issuer + "/")), id="of an issuer by nearly that name"
        ),
        pytest.param(lambda p: signed(claims(p, iss=None)), id="of no issuer"),
        pytest.param(lambda p: signed(claims(p, aud="other")), id="for another client"),
        pytest.param(lambda p: signed(claims(p, aud=None)), id="for nobody"),
        pytest.param(
            lambda p: signed(claims(p, aud=["egs", "x"], azp="x")), id="that another client asked for"
        ),
        pytest.param(lambda p: signed(claims(p, nonce="twice")), id="of another login"),
        pytest.param(lambda p: signed(claims(p, nonce=None)), id="of no login"),
        pytest.param(lambda p: signed(claims(p, exp=seconds(START) - 90)), id="that is over"),
        pytest.param(lambda p: signed(claims(p, exp=None)), id="that never ends"),
        pytest.param(lambda p: signed(claims(p, exp="later")), id="whose end is a word"),
        pytest.param(lambda p: signed(claims(p, iat=seconds(START) + 3600)), id="from the far future"),
        pytest.param(lambda p: signed(claims(p, nbf=seconds(START) + 3600)), id="that does not count yet"),
        pytest.param(lambda p: signed(claims(p, sub=None)), id="of no subject"),
        pytest.param(lambda p: signed(claims(p, email=None)), id="without an address"),
        pytest.param(lambda p: signed(claims(p, email=["bo@example.com"])), id="with a list of addresses"),
        pytest.param(
            lambda p: signed(claims(p, email="bo@example.com\nx")), id="with an address on two lines"
        ),
        pytest.param(
            lambda p: signed(claims(p, email="bo@ex\u0430mple.com")), id="with a letter that only looks so"
        ),
        pytest.param(
            lambda p: signed(claims(p, email_verified=None)), id="of which nobody says it was verified"
        ),
        pytest.param(lambda p: signed(claims(p, email_verified=False)), id="which was not verified"),
        pytest.param(
            lambda p: signed(claims(p, email_verified="true")), id="which was verified in words only"
        ),
    ],
)
def test_a_token_that_does_not_count(provider: Provider, make: Callable[[Provider], str]):
    token = make(provider)
    with pytest.raises(ApiError) as refused:
        verified(provider, token, START, nonce="once")
    assert (refused.value.status, refused.value.reason) == (401, "LoginFailed")
    assert token not in str(refused.value)


@law(100)
@given(st.text(max_size=300))
def test_no_text_is_a_token(text: str):
    with pytest.raises(ApiError):
        verified(PROVIDER_OF_NOBODY, text, START)


class _Silent(Provider):
    """Publishes no key."""

    def keys(self, now: datetime) -> Any:
        """None at all."""
        return key_set({"keys": []})


PROVIDER_OF_NOBODY = _Silent(ProviderSettings("http://127.0.0.1:9", "egs"))


@pytest.mark.parametrize(
    ("found", "where", "want"),
    [
        pytest.param({"groups": ["a", "b"]}, "groups", {"a", "b"}, id="a list"),
        pytest.param(
            {"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}, id="inside of an object"
        ),
        pytest.param(
            {"https://x.example/groups": ["a"]}, "https://x.example/groups", {"a"}, id="a name with dots"
        ),
        pytest.param({}, "groups", set(), id="none"),
        pytest.param({"groups": "admins"}, "groups", set(), id="a word is no list"),
        pytest.param({"groups": ["a", 1, None, ["b"]]}, "groups", {"a"}, id="what is no word is left out"),
        pytest.param({"a": [{"b": ["c"]}]}, "a.b", set(), id="no way leads through a list"),
    ],
)
def test_where_groups_are(found: Claims, where: str, want: set[str]):
    assert groups_in(found, where) == want


def test_a_token_that_is_brought_is_young(provider: Provider):
    """One that lay about opens nothing; of a login that began here the nonce says as much."""
    later = {"exp": seconds(START + timedelta(hours=1))}

    def token(minutes: int) -> str:
        return signed(claims(provider, **later, iat=seconds(START - timedelta(minutes=minutes))))

    assert verified(provider, token(5), START).email == "bo@example.com"
    with pytest.raises(ApiError, match="more than five minutes old"):
        verified(provider, token(7), START)
    assert verified(provider, token(7), START, nonce="once").email == "bo@example.com"


def test_a_session_by_a_token_that_was_brought_makes_no_key_for_years(provider: Provider, tmp_path: Path):
    site = Site(tmp_path, portal={"provider": provider.settings})
    with site.client(None) as bo:
        opened = bo.post("/api/v1/auth", json={"idToken": signed(claims(provider, nonce=None))}).json()[
            "data"
        ]
        bo.headers["Authorization"] = f"Bearer {opened['token']}"
        body = {"name": "k", "role": "Viewer", "workspaceName": "vision", "validity": "2027-06-30"}
        answer = bo.post("/api/v1/api-key", json=body)
    assert (answer.status_code, "90 days" in answer.json()["message"]) == (403, True)
    site.close()
