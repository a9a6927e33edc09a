"""HTTP client for a forge. Every answer is untrusted until checked.

The token is read from its file for each call, sent only to the configured host, and appears in no text.
Answers are limited in size and time; redirects are followed within that host only. `http://` is for loopback
only.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import httpx

from reconciler.clock import Clock, monotonic_s
from reconciler.forges.forge_port import RateLimited
from reconciler.forges.json_fields import Json, Row, plain
from reconciler.model import backoff
from reconciler.model.clock_reading import Heard
from reconciler.timekeeping.date_header import heard_in
from schemas.errors import Fault, UserError

TIMEOUT = httpx.Timeout(10.0, connect=4.0)
"""For each step of a call: connecting, waiting for the answer, between two parts of it."""
SLOW_S = 1.0
"""A failed call that took longer than this counts as a timeout."""
MOST_TIME_S = 60.0
"""For one whole answer."""
MOST_ANSWER = 8 << 20
"""Bytes of one answer."""
MOST_TOKEN = 4096
"""Bytes of a token."""
PAGE = 100
MOST_PAGES = 30
REDIRECTS = 3
KEPT_BYTES = 64 << 20
"""Total size of cached answers with an ETag, for conditional requests. A page of a hundred pull requests has 2 MB."""
LONGEST_PAUSE = timedelta(hours=1)
"""Upper limit for a pause requested by a forge."""
SHORTEST_PAUSE = timedelta(seconds=30)
WINDOW = timedelta(seconds=30)
"""The time window for `Api.patience`."""
_REDIRECTING = frozenset({301, 302, 307, 308})
_PASSING = frozenset({500, 502, 503, 504})
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "egs-gitops"}
"""No compression: a small answer must not expand into a large one."""

_NEXT = re.compile(r'<([^<>]{1,2000})>;\s*rel="next"')

Params = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete answer."""

    status: int
    headers: httpx.Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A cached answer for a conditional request."""

    etag: str
    body: bytes  # as received: the parsed form takes ten times the memory
    links: str


@dataclass(slots=True)
class Api:
    """One forge's API below `base`. Raises UserError `BadForge` for an invalid address.

    `patience` is the total time of calls in each `WINDOW`, for callers with other work: further calls are
    `RateLimited` until the next window. None: unlimited.
    """

    base: str
    token: Path | None
    clock: Clock
    patience: timedelta | None = None
    heard: Callable[[Heard], None] = lambda _: None
    """Called with the forge's clock in each of its answers."""
    _client: httpx.Client = field(init=False)
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _paused: datetime | None = None
    _silent: datetime | None = None  # end of the pause
    _silence: timedelta | None = None  # the last one, while it does not answer in time
    _window: datetime | None = None  # end of the window
    _spent_s: float = 0.0  # within it

    def __post_init__(self) -> None:
        url = _checked(self.base)
        self.base = str(url).rstrip("/")
        # A proxy from the environment is for external hosts.
        outside = not _is_loopback(url.host)
        self._client = httpx.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=outside)

    def get(self, path: str, params: Params | None = None) -> Json | None:
        """The content; None: not found (404). Conditional if the forge gives ETags."""
        return self._got(path, self._url(path, params))[0]

    def row(self, path: str, params: Params | None = None) -> Row | None:
        """One object; None: not found."""
        found = self.get(path, params)
        return None if found is None else Row.of(found, path)

    def the_row(self, path: str) -> Row:
        """One object that must exist: otherwise Fault `ForgeRefused`."""
        found = self.row(path)
        if found is None:
            self._refused("GET", path, Reply(404, httpx.Headers()))
        return found

    def rows(self, path: str, params: Params | None = None, most_pages: int = MOST_PAGES) -> list[Row]:
        """The objects of all pages, at most `most_pages`; empty if not found (404)."""
        found: list[Row] = []
        asked = {"per_page": str(PAGE), "limit": str(PAGE), **(params or {})}
        url: str | None = self._url(path, asked)
        for page in range(2, most_pages + 2):
            if url is None:
                break
            answer, links = self._got(path, url)
            if answer is None:
                break
            part = Row.list_of(answer, path)
            found += part
            url = self._following(links, len(part), self._url(path, asked | {"page": str(page)}))
        return found

    def _following(self, links: str, count: int, numbered: str) -> str | None:
        """The next page: from the link of our own host (some GitHub lists have no page numbers)."""
        if not links:
            return numbered if count >= PAGE else None
        found = _NEXT.search(links)
        if found is None or count == 0:
            return None
        try:
            target = httpx.URL(found[1])
        except (httpx.InvalidURL, ValueError):
            return numbered
        return str(target) if _origin(target) == _origin(httpx.URL(self.base)) else numbered

    def send(self, method: str, path: str, body: Mapping[str, object]) -> Row:
        """Writes; never retried. Fault `ForgeRefused` if the forge refuses."""
        reply = self._call(method, self._url(path, None), {}, json.dumps(body).encode())
        if reply.status >= 300:
            self._refused(method, path, reply)
        return Row.of(_decoded(reply.body, path) if reply.body.strip() else {}, path)

    def _got(self, path: str, url: str) -> tuple[Json | None, str]:
        """The answer, and its links to other pages."""
        kept = self._kept.get(url)
        condition = {} if kept is None else {"If-None-Match": kept.etag}
        reply = self._asked(url, condition)
        if reply.status == 304 and kept is not None:
            self._kept.move_to_end(url)
            return _decoded(kept.body, path), kept.links
        if reply.status == 404:
            return None, ""
        if reply.status != 200:
            self._refused("GET", path, reply)
        answer, links = _decoded(reply.body, path), reply.headers.get("Link", "")
        self._keep(url, reply, links)
        return answer, links

    def _keep(self, url: str, reply: Reply, links: str) -> None:
        old = self._kept.pop(url, None)
        self._kept_bytes -= 0 if old is None else len(old.body)
        if etag := reply.headers.get("ETag", ""):
            self._kept[url] = _Kept(etag, reply.body, links)
            self._kept_bytes += len(reply.body)
        while self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1].body)

    def _asked(self, url: str, headers: Mapping[str, str]) -> Reply:
        """A GET, retried once after a transient failure."""
        try:
            reply = self._followed(url, headers)
        except Fault as fault:
            if fault.reason != "ForgeUnreachable":
                raise
        else:
            if reply.status not in _PASSING:
                return reply
        return self._followed(url, headers)

    def _followed(self, url: str, headers: Mapping[str, str]) -> Reply:
        for _ in range(REDIRECTS + 1):
            reply = self._call("GET", url, headers)
            if reply.status not in _REDIRECTING:
                return reply
            url = self._next(url, reply)
        raise Fault(f"the forge {self._host} redirects in circles; correct --forge-api", "ForgeRefused")

    def _next(self, url: str, reply: Reply) -> str:
        """The target of a redirect: never another host, which would get the token."""
        try:
            target = httpx.URL(url).join(reply.headers.get("Location", ""))
        except (httpx.InvalidURL, ValueError) as error:
            raise Fault(f"the forge {self._host} redirects without an address", "ForgeRefused") from error
        if _origin(target) != _origin(httpx.URL(self.base)):
            raise Fault(
                f"the forge {self._host} redirects to another host, which is not followed; correct --forge-api",
                "ForgeRefused",
            )
        return str(target)

    def _call(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """One call. Faults `ForgeUnreachable`, `RateLimited`, and `ForgeRefused` for an oversized answer."""
        self._rest()
        sent = {**_HEADERS, **headers, **self._authorisation()}
        if body is not None:
            sent["Content-Type"] = "application/json"
        begun_s = monotonic_s()
        try:
            with self._client.stream(method, url, headers=sent, content=body) as answer:
                if (said := heard_in(answer.headers.get("Date"))) is not None:
                    self.heard(said)
                reply = Reply(answer.status_code, answer.headers, self._read(answer))
        except httpx.HTTPError as error:
            # An unresolvable host name takes its time too.
            if isinstance(error, httpx.TimeoutException) or monotonic_s() - begun_s > SLOW_S:
                self._fall_silent()
            raise self._unreachable(type(error).__name__) from error
        finally:
            self._spent_s += monotonic_s() - begun_s
        self._silence = None
        self._note_limits(reply)
        return reply

    def _read(self, answer: httpx.Response) -> bytes:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise Fault(f"the forge {self._host} answers in an unrequested encoding", "ForgeRefused")
        body, late = bytearray(), monotonic_s() + MOST_TIME_S
        for chunk in answer.iter_raw(1 << 16):
            body += chunk
            if len(body) > MOST_ANSWER:
                raise Fault(
                    f"the forge {self._host} answers with more than {MOST_ANSWER} bytes", "ForgeRefused"
                )
            if monotonic_s() > late:
                self._fall_silent()
                raise self._unreachable("too slow")
        return bytes(body)

    def _unreachable(self, why: str) -> Fault:
        return Fault(f"the forge {self._host} cannot be reached ({why}); retrying later", "ForgeUnreachable")

    def _fall_silent(self) -> None:
        self._silence = backoff.FORGE.longer(self._silence)
        self._silent = self.clock.now() + self._silence

    def _rest(self) -> None:
        if self._silent is not None and self.clock.now() < self._silent:
            raise self._unreachable(f"it did not answer in time; pausing until {self._silent:%H:%M:%SZ}")
        now = self.clock.now()
        if self._paused is not None and now < self._paused:
            raise self._limited(self._paused)
        if self._window is None or now >= self._window:
            self._window, self._spent_s = now + WINDOW, 0.0
        if self.patience is not None and self._spent_s > self.patience.total_seconds():
            raise RateLimited(
                f"the forge {self._host} has used its time for now; continuing at {self._window:%H:%M:%SZ}",
                self._window,
            )

    def _limited(self, until: datetime) -> RateLimited:
        return RateLimited(
            f"the forge {self._host} allows no more calls for now; retrying at {until:%H:%M:%SZ}", until
        )

    def _note_limits(self, reply: Reply) -> None:
        """Pauses as long as the forge requests; GitHub answers 403 for this, others 429."""
        headers = reply.headers
        spent = "0" in (headers.get("X-RateLimit-Remaining"), headers.get("RateLimit-Remaining"))
        if reply.status != 429 and not (reply.status == 403 and (spent or "Retry-After" in headers)):
            return
        now = self.clock.now()
        pause = _seconds(headers.get("Retry-After"))
        reset = _seconds(headers.get("X-RateLimit-Reset") or headers.get("RateLimit-Reset"))
        if pause is None and reset is not None:
            pause = reset - int(now.astimezone(UTC).timestamp())
        until = now + min(LONGEST_PAUSE, max(SHORTEST_PAUSE, timedelta(seconds=pause or 0)))
        self._paused = until
        raise self._limited(until)

    def _authorisation(self) -> dict[str, str]:
        if self.token is None:
            return {}
        try:
            with self.token.open("rb") as file:
                text = file.read(MOST_TOKEN + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Fault(
                f"the forge's token cannot be read from {self.token}; check that the file exists and is readable",
                "ForgeRefused",
            ) from error
        if not re.fullmatch(r"[\x21-\x7e]{1,4096}", text):
            raise Fault(f"{self.token} contains no token: one line is expected", "ForgeRefused")
        return {"Authorization": f"Bearer {text}"}

    def _url(self, path: str, params: Params | None) -> str:
        return str(httpx.URL(self.base + path, params=dict(params or {}) or None))

    @property
    def _host(self) -> str:
        return httpx.URL(self.base).host

    def _refused(self, method: str, path: str, reply: Reply) -> NoReturn:
        what = f"the forge {self._host} answers {reply.status} to {method} {path}"
        if reply.status >= 500:
            raise Fault(f"{what}; retrying later", "ForgeUnreachable")
        advice = {401: "renew the token", 403: "give the token permission for this"}.get(
            reply.status, "check that --forge-repository is right and that the token may read it"
        )
        said = _said(reply.body)
        raise Fault(f"{what}{f' ({said})' if said else ''}; {advice}", "ForgeRefused")


def quoted(text: str) -> str:
    """Quoted as one segment of a path."""
    return quote(text, safe="")


def quoted_path(path: str) -> str:
    """Quoted as several segments of a path."""
    return quote(path, safe="/")


def _checked(base: str) -> httpx.URL:
    try:
        url = httpx.URL(base)
    except (httpx.InvalidURL, ValueError) as error:
        raise UserError("--forge-api: not a URL; give https://HOST/…", "BadForge") from error
    if url.userinfo or url.query or url.fragment:
        raise UserError(
            "--forge-api: give the bare URL; the token has a file of its own (--forge-token)", "BadForge"
        )
    if not url.host or (url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host))):
        raise UserError("--forge-api: only https:// keeps the token secret; give https://HOST/…", "BadForge")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _seconds(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,10}", text.strip()) else None


def _decoded(body: bytes, path: str) -> Json:
    try:
        found: Json = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Fault(f"the forge's answer to {path} is not JSON", "ForgeRefused") from error
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _said(body: bytes) -> str:
    """The message of a refusal, if it is one line of plain text."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = answer.get("message") if isinstance(answer, dict) else None
    return plain(message, 200) if isinstance(message, str) else ""
