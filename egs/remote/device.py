"""Log in with a browser that need not be on this machine: OAuth 2.0 Device Authorization Grant (RFC 8628).

The server names the identity provider and checks the ID token that it gives. Held by tests/egs/test_device.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from egs import clock
from egs.commands import output
from egs.commands.errors import Said, broken, not_allowed

if TYPE_CHECKING:
    import httpx

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_S, SLOWER_S = 5.0, 5.0
"""Pause between two calls, and its growth after `slow_down`; both as in the RFC."""
_TIMEOUT_S = 20.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Code:
    """What the provider gave for this login."""

    device_code: str
    user_code: str
    address: str
    interval_s: float
    lives_s: float


def next_step(status: int, body: Mapping[str, Any], interval_s: float) -> str | Wait:
    """The ID token in the provider's answer, or how long to wait. Raises Said when the login is over. Pure."""
    if status == 200:
        token = body.get("id_token")
        if not isinstance(token, str) or not token:
            raise broken(
                "the identity provider gave no ID token; its client must have the scope openid", "NoToken"
            )
        return token
    match body.get("error"):
        case "authorization_pending":
            return Wait(interval_s)
        case "slow_down":
            return Wait(interval_s + SLOWER_S)
        case "access_denied":
            raise not_allowed("the login was refused in the browser", "AccessDenied")
        case "expired_token":
            raise _too_late()
        case error:
            raise broken(f"the identity provider answered {status}: {error or 'no reason'}", "LoginFailed")


def id_token(issuer: str, client_id: str, scopes: str, pause: Callable[[float], None] = time.sleep) -> str:
    """Show where to log in, and wait until that is done. Raises Said."""
    import httpx

    with httpx.Client(timeout=_TIMEOUT_S, headers={"accept": "application/json"}) as client:
        try:
            return _logged_in(client, issuer, (client_id, scopes), pause)
        except httpx.TransportError as error:
            raise broken(
                f"the identity provider {_host(issuer)} does not answer: {type(error).__name__}"
            ) from error


def _logged_in(
    client: httpx.Client, issuer: str, who: tuple[str, str], pause: Callable[[float], None]
) -> str:
    told = _discovered(client, issuer)
    code = _code(client, told["device_authorization_endpoint"], who)
    output.note(f"open {code.address} and enter the code {code.user_code}")
    interval_s, until_s = code.interval_s, clock.monotonic_s() + code.lives_s
    form = {"grant_type": GRANT, "device_code": code.device_code, "client_id": who[0]}
    while clock.monotonic_s() < until_s:
        pause(interval_s)
        answer = client.post(told["token_endpoint"], data=form)
        step = next_step(answer.status_code, _json(answer), interval_s)
        if isinstance(step, str):
            return step
        interval_s = step.seconds
    raise _too_late()


def _discovered(client: httpx.Client, issuer: str) -> dict[str, str]:
    # Redirects are not followed: only the issuer itself is trusted.
    answer = client.get(f"{_safe(issuer).rstrip('/')}/.well-known/openid-configuration")
    told = _json(answer)
    if answer.status_code != 200 or told.get("issuer", "").rstrip("/") != issuer.rstrip("/"):
        raise broken(
            f"{_host(issuer)} does not say how people log in; tell the server's operator", "NoProvider"
        )
    names = ("device_authorization_endpoint", "token_endpoint")
    if not all(isinstance(told.get(name), str) for name in names):
        raise not_allowed(
            f"{_host(issuer)} has no device login; log in with --api-key-file FILE", "NoDeviceLogin"
        )
    return {name: _safe(told[name]) for name in names}


def _code(client: httpx.Client, endpoint: str, who: tuple[str, str]) -> Code:
    answer = client.post(endpoint, data={"client_id": who[0], "scope": who[1]})
    told = _json(answer)
    try:
        return Code(
            str(told["device_code"]),
            str(told["user_code"]),
            str(told.get("verification_uri_complete") or told["verification_uri"]),
            float(told.get("interval") or INTERVAL_S),
            float(told["expires_in"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = told.get("error") or "no code"
        raise broken(
            f"the identity provider did not start a login ({answer.status_code}: {reason})", "LoginFailed"
        ) from error


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _safe(address: str) -> str:
    """The address itself, if what goes there is encrypted. Raises Said."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return address
    raise broken(
        f"the identity provider {_host(address)} is not reached over https; tell the server's operator",
        "Unsafe",
    )


def _host(address: str) -> str:
    return urlsplit(address).hostname or "of the server"


def _too_late() -> Said:
    return not_allowed("the login took too long; run it again", "TooLate")
