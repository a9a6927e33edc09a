"""Who asks, from what a request shows: an API key or a session as `Authorization: Bearer`, or a browser's cookie.

Deny by default: what shows nobody is 401. What somebody may is worked out from the newest view, so that a key that is
revoked, and a person who is no member any more, have lost it with the next fetched commit, whatever they still hold.
A cookie goes along by itself, so it changes nothing unless the request's `Origin` is this portal's.

Held by tests/portal/test_auth.py and tests/portal/test_matrix.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
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
from portal.identity.sessions import Session, Signer, ends, session_of, signer_of
from portal.settings import PortalSettings
from portal.views.view import View

READING = frozenset({"GET", "HEAD", "OPTIONS"})
_QUOTES = "/gpr/waittime"
"""What is asked by POST and changes nothing."""
_COSTLY = frozenset({"/api/v1/gpr/why", "/api/v1/plan"})
"""Reads that plan anew, or tell a whole plan."""
_COST = 10
"""As how many reads each of them counts."""
_KEYS_OF_ONE = 2
"""How many times a key's rates one person has with all their keys and logins together."""
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a request shows."""

    text: str
    how: Literal["bearer", "cookie"]


class _Pair:
    """How often one key or login may ask, and one person with all of theirs."""

    def __init__(self, rate: Rate) -> None:
        self._ones, self._persons = Limiter(rate), Limiter(rate.times(_KEYS_OF_ONE))

    def take(self, caller: Caller, now: datetime, cost: int) -> None:
        """Count one more request of theirs; ApiError 429 where it is one too many."""
        who = caller.counted
        self._ones.check(who, now, cost)  # one that is refused costs the person nothing
        self._persons.take(caller.email, now, cost)
        self._ones.take(who, now, cost)


class Logins:
    """All that knows who asks. Safe to use from any thread; `identify` waits for nothing."""

    def __init__(self, settings: PortalSettings, now: Callable[[], datetime]) -> None:
        """Reads the secret of sessions; asks the identity provider nothing yet. Raises UserError."""
        self.signer: Signer = signer_of(settings.session_secret)
        self.provider = None if settings.provider is None else Provider(settings.provider)
        self.origin = settings.public_url.rstrip("/")
        self._now = now
        rates: Rates = settings.rates
        self._reads, self._writes = _Pair(rates.reads), _Pair(rates.writes)
        self.visits = Limiter(rates.reads)
        self.failures = Limiter(rates.failures)
        self._strangers = Limiter(rates.strangers)
        self._known: tuple[View | None, dict[str, Caller]] = None, {}

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the portal by https, so that its cookies go nowhere else."""
        return self.origin.startswith("https://")

    @property
    def cookie(self) -> str:
        """Name of a browser's session."""
        return self._named("egs")

    @property
    def login_cookie(self) -> str:
        """Name of a browser's login under way."""
        return self._named(LOGIN)

    def _named(self, name: str) -> str:
        """With https the name itself keeps other hosts of the domain from setting it."""
        return f"__Host-{name}" if self.is_https else name

    def identify(self, request: Request, view: View) -> Caller:
        """Who asks, counted as one request of theirs; ApiError 401, 403 (a foreign page asks) or 429."""
        caller = self.recognise(request, view)
        path = request.url.path
        reads = request.method in READING or path.endswith(_QUOTES)
        (self._reads if reads else self._writes).take(caller, self._now(), _COST if path in _COSTLY else 1)
        return caller

    def is_known(self, request: Request, view: View) -> bool:
        """Whether it shows somebody, uncounted: before its body is looked at."""
        evidence = self._shown(request)
        if evidence is None:
            return False
        try:
            self._caller(evidence.text, view)
        except ApiError:
            return False
        return True

    def count_stranger(self, request: Request, cost: int = 1) -> None:
        """ApiError 429 where so much more is too much of what shows nobody and comes from one address."""
        self._strangers.take(address_of(request), self._now(), cost)

    def recognise(self, request: Request, view: View) -> Caller:
        """Who asks, uncounted: for a stream that goes on, with each view that it tells of."""
        evidence = self._shown(request)
        if evidence is None:
            raise unauthenticated("give an API key or a session as `Authorization: Bearer …`")
        try:
            caller = self._caller(evidence.text, view)
        except ApiError:
            self.failures.take(address_of(request), self._now())  # guesses, and robots that never give up
            raise
        if evidence.how == "cookie" and request.method not in READING:
            self.check_origin(request)
        return caller

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
        """Those worked out already: the same evidence shows the same caller until people, keys or judgement change."""
        of, callers = self._known  # one value, so that no thread takes the callers of another view for these
        if of is None or not _is_alike(of, view) or len(callers) > _REMEMBERED:
            callers = {}
            self._known = view, callers
        return callers

    def _worked_out(self, text: str, view: View, now: datetime) -> Caller:
        if text.count(".") != 2:
            return caller_by_key(view, _digest(text), now)
        return caller_in(session_of(self.signer, text, now), view, now)

    def check_origin(self, request: Request) -> None:
        """ApiError 403 where a page of another origin asks, or nobody says which."""
        own = self.origin or f"{request.url.scheme}://{request.url.netloc}"
        if _origin(request.headers.get("Origin", "")) != _origin(own):
            text = "a browser's session changes things only from this portal's own pages; use a key elsewhere"
            raise ApiError(HTTPStatus.FORBIDDEN, "CrossSite", text)


def _is_alike(one: View, other: View) -> bool:
    """Whether both give the same rights: what is filed, and what became of it, changes nobody's."""
    return one is other or (
        one.authority is other.authority
        and one.wanted.keys is other.wanted.keys
        and one.wanted.project is other.wanted.project
        and one.facts.trust is other.facts.trust
    )


def _digest(text: str) -> str:
    try:
        return digest_of_key(text)
    except ApiError as error:  # here it is what shows nobody; POST auth says 400 of the same
        raise unauthenticated(str(error), error.reason) from error


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or {"http": 80, "https": 443}.get(parts.scheme)


def address_of(request: Request) -> str:
    """Where a request comes from, as failures are counted; the proxy's word counts only as the operator has it."""
    return neighbourhood(request.client.host) if request.client is not None else ""


def caller_in(session: Session, view: View, now: datetime) -> Caller:
    """Whose session it is, with the rights of this view. ApiError 401 where the key behind it opens nothing now."""
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


def session_by_key(view: View, text: str, now: datetime) -> Session:
    """The session that an API key opens. ApiError 400 or 401."""
    digest = digest_of_key(text)
    caller = caller_by_key(view, digest, now)
    return Session(caller.email, caller.name, ends(now, caller.expires), digest)


def session_by_login(view: View, shown: Shown, now: datetime, *, is_handed: bool = False) -> Session:
    """The session of somebody whom the identity provider shows, with those of their groups that the project knows."""
    named = {rule.group for rule in view.wanted.project.groups}
    groups = tuple(sorted(shown.groups & named))
    return Session(shown.email, shown.name, ends(now, None), groups=groups, is_handed=is_handed)
