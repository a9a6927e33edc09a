"""One OpenID provider: its metadata and keys, read when first needed and kept for an hour.

The keys are read again when a token names an unknown key, but at most once in ten seconds, so that callers cannot make
this process flood the provider. Of several threads that need the same data one asks and the others wait for its answer.
After a failure the provider is left alone for half a minute. Every call to it goes through here and has a deadline.

Held by tests/portal/identity/test_oidc.py and tests/portal/identity/test_oidc_provider.py.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from portal.http.errors import ApiError, unavailable
from portal.settings import ProviderSettings
from reconciler.clock import monotonic_s
from schemas.errors import UserError

Read = TypeVar("Read")

KEPT = timedelta(hours=1)
_AGAIN = timedelta(seconds=10)
"""Least age of the keys before they are read again."""
PAUSE_S = 30.0
"""Pause after a failure; longer than a failure takes, or every caller would wait for the next one."""
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Metadata:
    """The provider's endpoints."""

    authorization: str
    token: str
    keys: str
    end_session: str = ""
    """Where a browser ends its session at the provider; empty: not supported."""


class _Kept(Generic[Read]):
    """Data of the provider, kept for an hour. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # never held during a call to the provider
        self._found: tuple[Read, datetime] | None = None
        self._asked: Future[Read] | None = None

    def get(self, read: Callable[[], Read], now: datetime) -> Read:
        """The kept value, or the result of `read`, shared by all threads that ask meanwhile."""
        with self._lock:
            if self._found is not None and now - self._found[1] < KEPT:
                return self._found[0]
            asked = self._asked
            mine: Future[Read] | None = None
            if asked is None:
                asked = self._asked = mine = Future()
        if mine is not None:
            self._ask(mine, read, now)
        return asked.result()

    def _ask(self, mine: Future[Read], read: Callable[[], Read], now: datetime) -> None:
        try:
            found = read()
        except BaseException as error:
            with self._lock:
                self._asked = None
            mine.set_exception(error)
        else:
            with self._lock:
                self._found, self._asked = (found, now), None
            mine.set_result(found)

    def forget(self, now: datetime) -> bool:
        """Whether it was old enough to be read again; if so, the next `get` reads it."""
        with self._lock:
            if self._found is None or now - self._found[1] < _AGAIN:
                return False
            self._found = None
            return True


class Provider:
    """One issuer. Safe to use from any thread; calls may take seconds, so never use it on an event loop."""

    def __init__(self, settings: ProviderSettings, monotonic: Callable[[], float] = monotonic_s) -> None:
        """Does not contact the provider yet. Raises UserError if the certificates cannot be read."""
        self.settings = settings
        try:
            verify = True if settings.ca is None else ssl.create_default_context(cafile=str(settings.ca))
        except OSError as error:
            text = f"{settings.ca}: certificates of the identity provider: {error}"
            raise UserError(text, "BadCertificates") from error
        self._client = httpx.Client(verify=verify, timeout=_TIMEOUT_S, follow_redirects=False)
        self._monotonic = monotonic
        self._metadata = _Kept[Metadata]()
        self._keys = _Kept[KeySet]()
        self._silence: tuple[str, float] | None = None

    def close(self) -> None:
        self._client.close()

    def secret(self) -> str:
        """The client secret, read every time so that it can be replaced; empty: none. ApiError 503."""
        file = self.settings.client_secret
        try:
            return "" if file is None else file.read_text().strip()
        except OSError as error:
            raise unavailable(f"{file}: the client secret cannot be read: {error.strerror}") from error

    def metadata(self, now: datetime) -> Metadata:
        """Its endpoints. ApiError 503 if it does not answer, or states another issuer."""
        return self._metadata.get(lambda: self._patiently(self._discovered), now)

    def keys(self, now: datetime) -> KeySet:
        """Its signing keys. ApiError 503 if it does not answer."""
        address = self.metadata(now).keys
        return self._keys.get(lambda: key_set(self._patiently(lambda: self._talk("GET", address))), now)

    def asks_again(self, kid: str | None, now: datetime) -> bool:
        """Forget the keys because that one is missing; False: they were read just now."""
        return kid is not None and self._keys.forget(now)

    def post(self, address: str, headers: Mapping[str, str], body: str) -> Mapping[str, Any]:
        """Its answer to a form, also if it refuses."""
        return self._talk("POST", address, headers=dict(headers), content=body)

    def _patiently(self, read: Callable[[], Read]) -> Read:
        """Its answer. After a recent failure it is not asked, so that callers do not wait for a timeout."""
        silence = self._silence
        if silence is not None and self._monotonic() - silence[1] < PAUSE_S:
            raise unavailable(silence[0])
        try:
            found = read()
        except ApiError as error:
            # The clock is read after the call: waiting for it is not part of the pause.
            self._silence = str(error), self._monotonic()
            raise
        self._silence = None
        return found

    def _discovered(self) -> Metadata:
        issuer = self.settings.issuer
        found = self._talk("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise unavailable(
                f"the identity provider at {issuer} states another issuer; configure the one that it states"
            )
        try:
            return Metadata(
                str(found["authorization_endpoint"]),
                str(found["token_endpoint"]),
                str(found["jwks_uri"]),
                str(found.get("end_session_endpoint", "")),
            )
        except KeyError as error:
            raise unavailable(f"the metadata of the identity provider at {issuer} lacks {error}") from error

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
        return unavailable(f"the identity provider at {self.settings.issuer} does not answer properly: {why}")


def key_set(found: Mapping[str, Any]) -> KeySet:
    """The published keys; an unreadable key does not affect the others. joserfc checks what each is for."""
    listed = found.get("keys")
    keys: list[Key] = []
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict):
            with contextlib.suppress(JoseError, ValueError):
                keys.append(JWKRegistry.import_key(each))
    return KeySet(keys)
