"""OpenID login: any issuer, found by discovery; authorization code with PKCE, nonce and state.

authlib and joserfc implement the protocol; this module checks the result: the provider's issuer is the configured
one; a token is signed by a published key with an asymmetric algorithm, is for this client, belongs to the login that
this browser began, has not expired, and names an address that the provider has verified.

Held by tests/portal/identity/test_oidc.py, with a real provider and with answers that it would never send.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jws, jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from pydantic import TypeAdapter, ValidationError

from portal.http.errors import ApiError, unauthenticated
from portal.identity.callers import called
from portal.identity.oidc_provider import Provider
from portal.identity.sessions import Signer
from schemas.documents.base import Address

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA",
)  # fmt: skip
"""Signature algorithms of ID tokens: never `none`, never with a secret that the client knows."""
SKEW_S = 60
"""Tolerated difference to the provider's clock."""
YOUNG = timedelta(minutes=5)
"""Longest age of an ID token that a client brings."""
LOGIN_LIFE = timedelta(minutes=10)
"""Longest time between the two ends of a login."""
LOGIN = "egs-login"
_ADDRESS: TypeAdapter[str] = TypeAdapter(Address)
_ERROR = re.compile(r"[a-z_]{1,60}")


@dataclass(frozen=True, slots=True)
class Shown:
    """A person shown by the provider."""

    email: str
    name: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Begun:
    """A login under way: where the browser goes, and the cookie that it brings back."""

    url: str
    cookie: str


def begin(provider: Provider, signer: Signer, redirect: str, next_: str, now: datetime) -> Begun:
    """Start a login at the provider; `next_` is where to go afterwards. ApiError 503 if it does not answer."""
    state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
    url = prepare_grant_uri(
        provider.metadata(now).authorization,
        provider.settings.client_id,
        "code",
        redirect,
        provider.settings.scopes,
        state,
        nonce=nonce,
        code_challenge=create_s256_code_challenge(verifier),
        code_challenge_method="S256",
    )
    content = {"state": state, "nonce": nonce, "verifier": verifier, "next": next_}
    return Begun(url, signer.sign(LOGIN, content, now + LOGIN_LIFE))


@dataclass(frozen=True, slots=True)
class Returned:
    """What the browser brings back from the provider."""

    cookie: str
    state: str
    code: str = ""
    error: str = ""


def finish(
    provider: Provider, signer: Signer, redirect: str, returned: Returned, now: datetime
) -> tuple[Shown, str]:
    """Who logged in, and where they wanted to go. ApiError 401 if any check fails."""
    found = signer.read(LOGIN, returned.cookie, now)
    if found is None:
        raise refused("this browser began no login here within the last ten minutes; log in again")
    login = found[0]
    if not hmac.compare_digest(login["state"].encode(), returned.state.encode()):
        raise refused("this answer belongs to another login; log in again")
    if not returned.code:
        said = returned.error if _ERROR.fullmatch(returned.error) else "no reason"
        raise refused(f"the identity provider refused the login: {said}")
    tokens = _tokens(provider, redirect, returned.code, login["verifier"], now)
    shown = verified(
        provider, tokens["id_token"], now, nonce=login["nonce"], access=tokens.get("access_token")
    )
    return shown, login["next"]


def _tokens(provider: Provider, redirect: str, code: str, verifier: str, now: datetime) -> Mapping[str, Any]:
    body = prepare_token_request("authorization_code", "", redirect, code=code, code_verifier=verifier)
    address = provider.metadata(now).token
    secret = provider.secret()
    auth = ClientAuth(provider.settings.client_id, secret, "client_secret_basic" if secret else "none")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = provider.post(*auth.prepare("POST", address, headers, body))
    if not isinstance(answer.get("id_token"), str):
        said = answer.get("error", "")
        why = said if isinstance(said, str) and _ERROR.fullmatch(said) else "it gave no ID token"
        raise refused(f"the identity provider did not complete the login: {why}")
    return answer


def verified(
    provider: Provider, token: str, now: datetime, nonce: str = "", access: str | None = None
) -> Shown:
    """The person that an ID token shows. With a nonce: from that login of the portal; without: from `egs login`."""
    try:
        claims = _claims(provider, token, now)
        _check(provider, claims, now, nonce, access)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        # Never the content of the token: it may be valid elsewhere.
        raise refused(f"the ID token is not valid: {type(error).__name__}") from error
    return _shown(provider, claims)


def _claims(provider: Provider, token: str, now: datetime) -> jwt.Token:
    kid = jws.extract_compact(token.encode()).headers().get("kid")
    try:
        return jwt.decode(token, provider.keys(now), ALGORITHMS)
    except InvalidKeyIdError:
        if not provider.asks_again(kid, now):
            raise
    return jwt.decode(token, provider.keys(now), ALGORITHMS)


def _check(provider: Provider, token: jwt.Token, now: datetime, nonce: str, access: str | None) -> None:
    settings = provider.settings
    audience = settings.client_id if nonce else settings.cli_client_id or settings.client_id
    options: Any = {
        "iss": {"essential": True, "value": settings.issuer},
        "aud": {"essential": True, "value": audience},
    }
    given: dict[str, Any] = {"client_id": audience}
    if nonce:
        given |= {"nonce": nonce}
    if access:
        given |= {"access_token": access}
    found = CodeIDToken(token.claims, token.header, options, given)
    found.validate(now=int(now.timestamp()), leeway=SKEW_S)
    # With a nonce the token is from a login that began here just now; without one it may be old.
    if not nonce and now.timestamp() - float(token.claims["iat"]) > YOUNG.total_seconds() + SKEW_S:
        raise refused("the ID token is more than five minutes old; log in again")


def _shown(provider: Provider, token: jwt.Token) -> Shown:
    claims = token.claims
    try:
        email = _ADDRESS.validate_python(claims.get("email"), strict=True)
    except ValidationError as error:
        raise refused(
            "the identity provider gives no mail address for you; request the scope email from it"
        ) from error
    if claims.get("email_verified") is not True:
        raise refused(f"the identity provider has not verified that {email} is yours")
    name = claims.get("name")
    groups = groups_in(claims, provider.settings.groups_claim)
    return Shown(email, called(name if isinstance(name, str) else "", email), groups)


def groups_in(claims: Mapping[str, Any], where: str) -> frozenset[str]:
    """The groups of a token: a claim of that name, or the path to it through objects; anything else gives none."""
    found: Any = claims.get(where)
    if found is None:
        found = claims
        for step in where.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else []
    return frozenset(group for group in listed if isinstance(group, str))


def refused(message: str) -> ApiError:
    """401: the login is not valid."""
    return unauthenticated(message, "LoginFailed")
