"""Authentication: an API key or a session as `Authorization: Bearer`, or a browser's cookie.

Deny by default: a request without valid evidence is 401. Rights are worked out from the newest view, so a revoked key
or a removed member loses them with the next fetched commit, whatever token they still hold. A browser sends cookies by
itself, so a cookie authorises changes only if the request's `Origin` is this portal's.

Held by tests/portal/test_auth.py and tests/portal/test_matrix.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlsplit

from fastapi import Request

from portal.http.errors import ApiError, unauthenticated
from portal.http.rate_limits import Limiter, Rate, Rates, neighbourhood
from portal.identity.callers import ALL_OF_ONES_OWN, Caller, caller_of, grants_of, with_groups
from portal.identity.key_lookup import caller_by_key, digest_of_key, listed
from portal.identity.oidc import LOGIN, Shown
from portal.identity.oidc_provider import Provider
from portal.identity.sessions import Session, Signer, ends, session_of, session_of_ticket, signer_of
from portal.settings import PortalSettings
from portal.views.view import View

READING = frozenset({"GET", "HEAD", "OPTIONS"})
_QUESTIONS = ("/gpr/waittime", "/whatif")
"""Asked by POST, but change nothing."""
_COSTLY = frozenset(
    {"/api/v1/blame", "/api/v1/diff", "/api/v1/undo", "/api/v1/gpr/why", "/api/v1/plan", "/api/v1/whatif"}
)
"""Reads that compute a plan or return a whole one; every read of a past state costs as much."""
_COST = 10
"""Number of reads that each of them counts as."""
_KEYS_OF_ONE = 2
"""A person's rate over all keys and logins, as a multiple of one key's."""
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """The credential of a request."""

    text: str
    how: Literal["bearer", "cookie"]


class _Pair:
    """Rate limits of one key or login, and of one person over all of them."""

    def __init__(self, rate: Rate) -> None:
        self._ones, self._persons = Limiter(rate), Limiter(rate.times(_KEYS_OF_ONE))

    def take(self, caller: Caller, now: datetime, cost: int) -> None:
        """Count one more request; ApiError 429 above the limit."""
        who = caller.counted
        self._ones.check(who, now, cost)  # a refused request costs the person nothing
        self._persons.take(caller.email, now, cost)
        self._ones.take(who, now, cost)


class Logins:
    """Identifies callers. Safe to use from any thread; `identify` never waits."""

    def __init__(self, settings: PortalSettings, now: Callable[[], datetime]) -> None:
        """Reads the session secret; does not contact the identity provider yet. Raises UserError."""
        self.signer: Signer = signer_of(settings.session_secret)
        self.provider = None if settings.provider is None else Provider(settings.provider)
        self.origin = settings.public_url.rstrip("/")
        self.session_life = settings.session_life
        self._now = now
        rates: Rates = settings.rates
        self._reads, self._writes = _Pair(rates.reads), _Pair(rates.writes)
        self.visits = Limiter(rates.reads)
        self.failures = Limiter(rates.failures)
        self._strangers = Limiter(rates.strangers)
        self._tickets: dict[str, str] = {}
        self._known: tuple[View | None, dict[str, Caller]] = None, {}

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the portal by https; its cookies are then sent only by https."""
        return self.origin.startswith("https://")

    @property
    def cookie(self) -> str:
        """Name of a browser's session cookie."""
        return self._named("egs")

    @property
    def login_cookie(self) -> str:
        """Name of the cookie of a login under way."""
        return self._named(LOGIN)

    def _named(self, name: str) -> str:
        """With https the prefix keeps other hosts of the domain from setting the cookie."""
        return f"__Host-{name}" if self.is_https else name

    def identify(self, request: Request, view: View) -> Caller:
        """The caller, counted for rate limits; ApiError 401, 403 (a foreign page) or 429."""
        caller = self.recognise(request, view)
        path = request.url.path
        reads = request.method in READING or path.endswith(_QUESTIONS)
        is_costly = path in _COSTLY or bool(request.query_params.get("at"))
        (self._reads if reads else self._writes).take(caller, self._now(), _COST if is_costly else 1)
        return caller

    def is_known(self, request: Request, view: View) -> bool:
        """Whether it shows a valid caller, uncounted: checked before the body is read."""
        evidence = self._shown(request)
        if evidence is None:
            return False
        try:
            self._caller(evidence.text, view)
        except ApiError:
            return False
        return True

    def count_stranger(self, request: Request, cost: int = 1) -> None:
        """ApiError 429 if the address sends too many unauthenticated requests."""
        self._strangers.take(address_of(request), self._now(), cost)

    def recognise(self, request: Request, view: View) -> Caller:
        """The caller, uncounted: for a stream, with each view that it sends."""
        evidence = self._shown(request)
        if evidence is None:
            raise unauthenticated("give an API key or a session as `Authorization: Bearer …`")
        try:
            caller = self._caller(evidence.text, view)
        except ApiError:
            self.failures.take(address_of(request), self._now())  # guesses, and robots that retry for ever
            raise
        if evidence.how == "cookie" and request.method not in READING:
            self.check_origin(request)
        return caller

    def shortened(self, text: str) -> str:
        """A short name of that ticket, known to this process alone: for links that are read from a terminal."""
        short = secrets.token_urlsafe(12)
        self._tickets[short] = text
        return short

    def from_ticket(self, text: str, now: datetime) -> Session:
        """The session of a ticket or its short name; ApiError 401 if it is not ours, or has ended."""
        return session_of_ticket(self.signer, self._tickets.get(text, text), now)

    def session(self, request: Request, view: View) -> Session:
        """The session of a known caller, or the one that their key would open now."""
        evidence, now = self._shown(request), self._now()
        text = "" if evidence is None else evidence.text
        if text.count(".") == 2:
            return session_of(self.signer, text, now)
        return session_by_key(view, text, now, self.session_life)

    def _shown(self, request: Request) -> Evidence | None:
        header = request.headers.get("Authorization")
        if header is not None:
            scheme, _, text = header.partition(" ")
            return Evidence(text.strip(), "bearer") if scheme.lower() == "bearer" else None
        found = request.cookies.get(self.cookie)
        return None if found is None else Evidence(found, "cookie")

    def _caller(self, text: str, view: View) -> Caller:
        now, known = self._now(), self._callers(view)
        caller = known.get(text)
        if caller is None or (caller.expires is not None and now >= caller.expires):
            caller = known[text] = self._worked_out(text, view, now)
        return caller

    def _callers(self, view: View) -> dict[str, Caller]:
        """Cached callers: valid until people, keys or trust change."""
        of, callers = self._known  # read both at once, so that view and callers belong together
        if of is None or not _is_alike(of, view) or len(callers) > _REMEMBERED:
            callers = {}
            self._known = view, callers
        return callers

    def _worked_out(self, text: str, view: View, now: datetime) -> Caller:
        if text.count(".") != 2:
            return caller_by_key(view, _digest(text), now)
        return caller_in(session_of(self.signer, text, now), view, now)

    def check_origin(self, request: Request) -> None:
        """ApiError 403 if a page of another origin asks, or the origin is missing."""
        own = self.origin or f"{request.url.scheme}://{request.url.netloc}"
        if _origin(request.headers.get("Origin", "")) != _origin(own):
            text = "a browser session may change things only from this portal's own pages; elsewhere use an API key"
            raise ApiError(HTTPStatus.FORBIDDEN, "CrossSite", text)


def _is_alike(one: View, other: View) -> bool:
    """Whether both give the same rights; requests and their status change none."""
    return one is other or (
        one.authority is other.authority
        and one.wanted.keys is other.wanted.keys
        and one.wanted.project is other.wanted.project
        and one.facts.trust is other.facts.trust
    )


def _digest(text: str) -> str:
    try:
        return digest_of_key(text)
    except ApiError as error:  # a 401 here; POST auth answers 400 for the same text
        raise unauthenticated(str(error), error.reason) from error


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or {"http": 80, "https": 443}.get(parts.scheme)


def address_of(request: Request) -> str:
    """The client's address, as failures are counted; a proxy's header counts only if the operator trusts the proxy."""
    return neighbourhood(request.client.host) if request.client is not None else ""


def caller_in(session: Session, view: View, now: datetime) -> Caller:
    """The caller of a session, with the rights of this view. ApiError 401 if the key behind it is not valid now."""
    if session.key:
        caller = caller_by_key(view, session.key, now)
        expires = session.expires if caller.expires is None else min(session.expires, caller.expires)
        return replace(caller, expires=expires, again=partial(caller_in, session))
    known = view.wanted.slices
    person = listed(view, session.email, now)
    caller = caller_of(person, session.name, ALL_OF_ONES_OWN, known, expires=session.expires)
    groups = grants_of(session.groups, view.wanted.project.groups)
    caller = with_groups(caller, groups, known, view.facts.trust)
    return replace(caller, is_handed=session.is_handed, again=partial(caller_in, session))


def session_by_key(view: View, text: str, now: datetime, life: timedelta) -> Session:
    """The session opened by an API key. ApiError 400 or 401."""
    digest = digest_of_key(text)
    caller = caller_by_key(view, digest, now)
    return Session(caller.email, caller.name, ends(now, life, caller.expires), digest)


def session_by_login(
    view: View, shown: Shown, now: datetime, life: timedelta, *, is_handed: bool = False
) -> Session:
    """The session of a person shown by the identity provider, with those of their groups that the project knows."""
    named = {rule.group for rule in view.wanted.project.groups}
    groups = tuple(sorted(shown.groups & named))
    return Session(shown.email, shown.name, ends(now, life, None), groups=groups, is_handed=is_handed)
