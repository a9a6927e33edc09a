"""`egs diff FROM [TO]` and `GET diff`: the difference of two states as data, as far as one person may see it.

Held by tests/portal/test_difference.py and tests/contract/test_past_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from reconciler.model.facts import Facts, Wanted
from reconciler.queries.past.differences import Difference, OfRequest, difference
from reconciler.queries.past.state_then import Then, state_then
from reconciler.queries.state import clock
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.open_source import opened
from schemas.reading.units import format_instant

Row = dict[str, Any]
MOST = 1000
"""Rows of each kind."""


@dataclass(frozen=True, slots=True)
class Named:
    """One of the two states."""

    status: str
    """Its commit of the status branch."""
    main: str
    """The commit of main that it answers."""
    facts: Facts
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose difference it is: someone who sees everything."""

    seen: Callable[[Difference], Difference] = lambda found: found
    """What of it they may see."""
    text: Callable[[str], str] = str
    """A sentence without names that they may not see."""


def difference_json(before: Named, after: Named, reader: Reader) -> Row:
    """From one state to another, later one."""
    found = reader.seen(difference((before.facts, before.wanted), (after.facts, after.wanted)))
    text = reader.text
    whole = (found.requests, found.nodes, found.people, found.documents)
    return {
        "from": _named(before),
        "to": _named(after),
        "summary": summary(found),
        "requests": [_request(one, text) for one in islice(found.requests, MOST)],
        "nodes": [
            {
                "cluster": one.cluster,
                "node": one.node,
                "was": one.was,
                "now": one.now,
                "reason": one.reason,
                "text": text(one.text),
            }
            for one in islice(found.nodes, MOST)
        ],
        "people": [
            {"slice": one.slice, "email": one.email, "was": one.was, "now": one.now, "text": one.text}
            for one in islice(found.people, MOST)
        ],
        "documents": [
            {"path": one.path, "field": one.field, "was": one.was, "now": one.now, "text": text(one.text)}
            for one in islice(found.documents, MOST)
        ],
        "omitted": sum(max(0, len(part) - MOST) for part in whole),
    }


def _named(state: Named) -> Row:
    return {"commit": state.status, "main": state.main, "at": format_instant(state.facts.at)}


def _request(one: OfRequest, text: Callable[[str], str]) -> Row:
    slice_, _, name = one.key.partition("/")
    was, now = (format_instant(at) if isinstance(at, datetime) else at for at in (one.was, one.now))
    return {
        "slice": slice_,
        "name": name,
        "change": one.change,
        "was": was,
        "now": now,
        "causes": [text(cause) for cause in one.causes],
        "text": text(one.text),
    }


def summary(found: Difference) -> list[str]:
    """`3 requests filed`, `1 node changed its state`, …; nothing that did not happen."""
    words = {"earlier": "will start earlier"}
    counts: dict[str, int] = {}
    for one in found.requests:
        counts[one.change] = counts.get(one.change, 0) + 1
    said = [f"{_counted(count, 'request')} {words.get(change, change)}" for change, count in counts.items()]
    for rows, thing, what in (
        (found.nodes, "node", "changed state"),
        (found.people, "person", "changed rights"),
        (found.documents, "field", "of documents changed"),
    ):
        said += [f"{_counted(len(rows), thing)} {what}"] if rows else []
    return said


def _counted(count: int, thing: str) -> str:
    plural = "people" if thing == "person" else f"{thing}s"
    return f"{count} {thing if count == 1 else plural}"


def difference_of(repo: str | None, now: str | None, first: str, second: str | None) -> Row:
    """On a repository; without a second state until the newest. Raises WrongUse, Gone."""
    with opened(repo) as source:
        present = clock(now, source)
        before = state_then(source, first, present, "FROM")
        after = state_then(source, second or format_instant(present), present, "TO")
    if before.state.facts.at > after.state.facts.at:
        raise WrongUse(f"FROM {first} is younger than TO; exchange the two")
    return difference_json(_of(before), _of(after), Reader())


def _of(then: Then) -> Named:
    return Named(then.kept.status, then.state.commit or "", then.state.facts, then.state.wanted)
