"""Templates and what they may use: links below the portal's prefix, times, durations, money and counts.

Every value is escaped, and a name that a template does not get is an error. Times are sent in UTC; a script shows them
in local time for a reader who chose that.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from portal.pages import plain_words
from portal.pages.static_files import address_of_asset
from schemas.reading.units import format_duration, format_instant, parse_instant

ABSENT = "—"
"""Shown where a value is unknown; a zero is a measurement."""


@cache
def environment() -> Environment:
    """Compiled templates are kept for the life of the process."""
    made = Environment(
        loader=PackageLoader("portal.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(when=when, day=day, span=span, money=money, number=number, or_absent=or_absent)
    made.filters.update(exact=exact_span, said=said, ahead=ahead, words=plain_words.reason_words)
    made.filters.update(plain=plain_words.said)
    made.globals.update(counted=counted, fresh_key=fresh_key, cause_words=plain_words.cause_words)
    made.globals.update(nearest_limit=plain_words.nearest_limit)
    return made


def when(at: datetime | str | None, absent: str = ABSENT) -> Markup:
    """A `<time>` in UTC to the minute, such as `Nov 21, 08:00`; `at` may be RFC 3339."""
    found = _instant(at)
    if found is None:
        return escape(absent)
    text = f"{found:%b} {found.day}, {found:%H:%M}"
    exact = format_instant(found)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, exact, text)


_LENGTH = r"(?:\d+[dhms] ?)+"
_MARKED = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z)"
    rf"(?: \((?P<wait>now|{_LENGTH}(?P<left> left)?)\))?"
    r"|`(?P<code>[^`]*)`"
)


@pass_context
def said(context: Context, sentence: object) -> Markup:
    """A sentence from elsewhere in the words of pages, with each instant as a `<time>` and each command as code.

    A wait or a rest in brackets behind an instant is counted by the clock of the page, as all countdowns are.
    """
    text = plain_words.said(str(sentence))
    told, at = Markup(""), 0
    for found in _MARKED.finditer(text):
        told += escape(text[at : found.start()]) + _marked(found, context["now"])
        at = found.end()
    return told + escape(text[at:])


def _marked(found: re.Match[str], now: datetime) -> Markup:
    if found["at"] is None:
        return Markup("<code>{}</code>").format(found["code"])
    text = found["at"].replace(" ", "T")
    exact = text if text.count(":") == 2 else f"{text[:-1]}:00Z"
    if found["wait"] is None:
        return when(exact)
    return when(exact) + Markup(" ({})").format(_counted_down(exact, now))


@pass_context
def ahead(context: Context, at: datetime | str | None) -> Markup:
    """The time until an instant by the clock of the page; a script counts it down."""
    found = _instant(at)
    return Markup("") if found is None else _counted_down(format_instant(found), context["now"])


def _counted_down(exact: str, now: datetime) -> Markup:
    left_s = int((parse_instant(exact) - now).total_seconds())
    # Seconds count in the last hour only, as in js/base.js.
    left_s -= left_s % 60 if left_s > 3600 else 0
    text = f"in {span(left_s)}" if left_s > 0 else "now"
    return Markup('<span data-until="{}">{}</span>').format(exact, text)


def day(at: datetime | str | None) -> Markup:
    """A `<time>` with the weekday, such as `Sat, Nov 21`."""
    found = _instant(at)
    if found is None:
        return escape(ABSENT)
    text = f"{found:%a}, {found:%b} {found.day}"
    return Markup('<time datetime="{}" data-as="day">{}</time>').format(format_instant(found), text)


def span(length: timedelta | float | None) -> str:
    """A duration in the two largest units, such as `2d 3h` or `45m`; seconds as a number are accepted."""
    if length is None:
        return ABSENT
    whole = length if isinstance(length, timedelta) else timedelta(seconds=length)
    seconds = max(0, round(whole.total_seconds()))
    units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
    parts = []
    for unit, size in units:
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2]) or "0s"


def exact_span(length: timedelta) -> str:
    """A duration as a manifest writes it."""
    return format_duration(length)


def money(amount: float | None, currency: str = "") -> str:
    return ABSENT if amount is None else f"{amount:,.2f} {currency}".strip()


def number(value: float | None, digits: int = 0) -> str:
    """With thousands separated; absent is absent, never 0."""
    return ABSENT if value is None else f"{value:,.{digits}f}"


def or_absent(value: object) -> object:
    return ABSENT if value is None or value == "" else value


def counted(amount: int, noun: str, plural: str = "") -> str:
    """`1 node`, `2 nodes`."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def fresh_key() -> str:
    """An idempotency key for a form: sent twice, it changes something once."""
    return secrets.token_hex(16)


def link(prefix: str, path: str, query: Mapping[str, Any]) -> str:
    """A path of the portal below its prefix; empty values of the query are left out."""
    given = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{prefix}{quote(path)}" + (f"?{urlencode(given, doseq=True)}" if given else "")


def asset(prefix: str, name: str) -> str:
    return prefix + address_of_asset(name)


def _instant(at: datetime | str | None) -> datetime | None:
    return parse_instant(at) if isinstance(at, str) and at else at if isinstance(at, datetime) else None
