"""What is known of one OpenID provider, and the talking to it. Read when it is first needed, and kept for an hour.

Its keys are read again when a token names one that is not known, but at most once in ten seconds: nobody makes this
process ask the provider as often as they like. The only door to it; every call has a deadline.

Held by tests/portal/test_oidc.py.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from portal.errors import ApiError, unavailable
from portal.settings import ProviderSettings
from schemas.errors import UserError

Read = TypeVar("Read")

KEPT = timedelta(hours=1)
_PAUSE = timedelta(seconds=10)
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Metadata:
    """The provider's addresses."""

    authorization: str
    token: str
    keys: str
    end_session: str = ""
    """Where a browser ends its session with the provider; empty: it has no such place."""


class Provider:
    """One issuer. Safe to use from any thread; what it does may take seconds, so never on an event loop."""

    def __init__(self, settings: ProviderSettings) -> None:
        """Asks nothing yet. Raises UserError where the certificates cannot be read."""
        self.settings = settings
        try:
            verify = True if settings.ca is None else ssl.create_default_context(cafile=str(settings.ca))
        except OSError as error:
            text = f"{settings.ca}: certificates of the identity provider: {error}"
            raise UserError(text, "BadCertificates") from error
        self._client = httpx.Client(verify=verify, timeout=_TIMEOUT_S, follow_redirects=False)
        self._lock = threading.Lock()
        self._metadata: tuple[Metadata, datetime] | None = None
        self._keys: tuple[KeySet, datetime] | None = None
        self._silence: tuple[str, datetime] | None = None

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def secret(self) -> str:
        """The client's secret, read anew so that it can be changed; empty: it has none. ApiError 503."""
        file = self.settings.client_secret
        try:
            return "" if file is None else file.read_text().strip()
        except OSError as error:
            raise unavailable(f"{file}: the client's secret cannot be read: {error.strerror}") from error

    def metadata(self, now: datetime) -> Metadata:
        """Its addresses. ApiError 503 where it does not answer, or calls itself otherwise."""
        with self._lock:
            if self._metadata is None or now - self._metadata[1] >= KEPT:
                self._metadata = self._patiently(self._discovered, now), now
            return self._metadata[0]

    def keys(self, now: datetime) -> KeySet:
        """The keys that it signs with. ApiError 503 where it does not answer."""
        address = self.metadata(now).keys
        with self._lock:
            if self._keys is None or now - self._keys[1] >= KEPT:
                self._keys = key_set(self._patiently(lambda: self._get(address), now)), now
            return self._keys[0]

    def asks_again(self, kid: str | None, now: datetime) -> bool:
        """Forget the keys because that one is not among them; False: they were read just now."""
        with self._lock:
            if kid is None or self._keys is None or now - self._keys[1] < _PAUSE:
                return False
            self._keys = None
            return True

    def post(self, address: str, headers: Mapping[str, str], body: str) -> Mapping[str, Any]:
        """What it answers to a form, also when it refuses."""
        return self._talk("POST", address, headers=dict(headers), content=body)

    def _patiently(self, read: Callable[[], Read], now: datetime) -> Read:
        """What it answers. Where it was silent just now it is not even asked: nobody waits for others' deadlines."""
        if self._silence is not None and now - self._silence[1] < _PAUSE:
            raise unavailable(self._silence[0])
        try:
            found = read()
        except ApiError as error:
            self._silence = str(error), now
            raise
        self._silence = None
        return found

    def _discovered(self) -> Metadata:
        issuer = self.settings.issuer
        found = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise unavailable(
                f"the identity provider at {issuer} calls itself otherwise; configure that name"
            )
        try:
            return Metadata(
                str(found["authorization_endpoint"]),
                str(found["token_endpoint"]),
                str(found["jwks_uri"]),
                str(found.get("end_session_endpoint", "")),
            )
        except KeyError as error:
            raise unavailable(f"the identity provider at {issuer} does not tell its {error}") from error

    def _get(self, address: str) -> Mapping[str, Any]:
        return self._talk("GET", address)

    def _talk(self, method: str, address: str, **more: Any) -> Mapping[str, Any]:
        try:
            answer = self._client.request(method, address, **more)
            found = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise self._silent(type(error).__name__) from error
        if answer.status_code >= 500 or not isinstance(found, dict):
            raise self._silent(f"status {answer.status_code}")
        return found

    def _silent(self, why: str) -> ApiError:
        return unavailable(
            f"the identity provider at {self.settings.issuer} does not answer as it should: {why}"
        )


def key_set(found: Mapping[str, Any]) -> KeySet:
    """The published keys; one that cannot be read takes no other with it. joserfc minds what each is for."""
    listed = found.get("keys")
    keys: list[Key] = []
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict):
            with contextlib.suppress(JoseError, ValueError):
                keys.append(JWKRegistry.import_key(each))
    return KeySet(keys)
