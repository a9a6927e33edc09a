"""Reports changes on main that do not count: events when a hold begins or ends, and rows of the problems.

Pure. Held by tests/reconciler/trust/test_holding.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconciler.model.events import Event, EventReason
from schemas.reading.reader import rule_of
from schemas.rules.problems import Problem, quoted
from schemas.status.judgements import HeldChange, TrustRecord

MOST_TOLD = 20
"""Holds of one cycle that get an event of their own; trust.yaml lists them all."""


def told(before: TrustRecord | None, after: TrustRecord | None, now: datetime) -> list[Event]:
    """Events about what changed in the judgement of main since the last commit."""
    if after is None or after == before:
        return []
    if before is None:
        text = f"changes on main are verified from now on; {after.main[:12]} and everything before it counts unverified"
        return [Event(now, EventReason.TRUST_BEGAN, text), *_begun(after.held, now)]
    old = {change.path: change for change in before.held}
    new = {change.path: change for change in after.held}
    fresh = [
        c
        for path, c in new.items()
        if path not in old or (old[path].commit, old[path].found) != (c.commit, c.found)
    ]
    ended = [change for path, change in old.items() if path not in new]
    return [*_begun(fresh, now), *_ended(ended, now)]


def _begun(changes: Iterable[HeldChange], now: datetime) -> Iterator[Event]:
    every = list(changes)
    for change in every[:MOST_TOLD]:
        counts = (
            "no earlier version counts" if change.authorised is None else "the earlier version still counts"
        )
        text = f"{change.message} (commit {change.commit[:12]}, rule {change.rule}; {counts})"
        yield _event(now, EventReason.NOT_AUTHORISED, text, change.path)
    yield from _rest(len(every), now, EventReason.NOT_AUTHORISED, "more changes do not count")


def _ended(changes: Iterable[HeldChange], now: datetime) -> Iterator[Event]:
    every = list(changes)
    for change in every[:MOST_TOLD]:
        text = f"{quoted(change.path)} counts again as it is on main"
        yield _event(now, EventReason.AUTHORISED, text, change.path)
    yield from _rest(len(every), now, EventReason.AUTHORISED, "more files count again as they are on main")


def _rest(count: int, now: datetime, reason: EventReason, what: str) -> Iterator[Event]:
    if count > MOST_TOLD:
        yield Event(
            now, reason, f"{count - MOST_TOLD} {what}; trust.yaml on the status branch lists all held changes"
        )


def _event(now: datetime, reason: EventReason, text: str, path: str) -> Event:
    found = rule_of(path)
    kind, names = ("", {}) if found is None else (found[0].kind, found[1])
    if kind == "GPR":
        return Event(now, reason, text, f"{names['slice']}/{names['name']}")
    slice_ = names.get("slice") or (names.get("name", "") if kind in {"Slice", "WorkspaceRequest"} else "")
    return Event(now, reason, text, slice=slice_)


def held_problems(record: TrustRecord | None) -> tuple[Problem, ...]:
    """Held changes as problems of their files: the content on main does not count."""
    fix = "have a person who may change this file submit the change again, or restore what counts"
    return tuple(
        Problem(quoted(change.path), 1, 1, change.rule, "error", change.message, fix)
        for change in (() if record is None else record.held)
    )
