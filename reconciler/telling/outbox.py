"""The pending messages of each route: events in, deliveries out. Pure.

The outbox is part of the commit, so that an event and its deliveries are committed together. What holds:
  * an event goes once into the outbox of every route that asks for it and may see it; a new route gets no older events;
  * of a route's urgent deliveries, and of its others, only the first is ever sent; a delivery that may have been sent
    never changes, so that it is sent again under the same id; later events gather in the next delivery;
  * a delivery leaves the outbox when it has arrived, when its route is removed or may not see it any more, or when it
    failed for a day after it was due: that is reported once, and with the next message that arrives;
  * a route's outbox stays small: beyond the limit the oldest events are only counted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Wanted
from reconciler.status.record_text import without_empty
from reconciler.status.render import event_rows
from reconciler.telling.quiet_hours import free_from
from reconciler.telling.routing import Way, Ways, grouped, is_own, names
from schemas.reading.units import counted
from schemas.rules.route_rules import LONGEST_DIGEST
from schemas.status.outbox import Delivery, Entry, OutboxMetadata, OutboxRecord

Outbox = Mapping[str, OutboxRecord]
"""By the route's name."""

GIVEN_UP = timedelta(hours=24)
"""A message not sent this long after it was due is given up: it is no longer news."""
MOST_NOTICES = 50
"""Events of one delivery; a longer message is not read. Four deliveries of a route stay well under 1 MB."""
MOST_OUTBOXES = 1000
"""Routes with pending deliveries, which are files of one folder."""
ID_LENGTH = 20
"""Hexadecimal digits; ids of one fleet do not collide."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Delivery results, as far as this process knows."""

    delivered: Collection[str] = frozenset()  # ids
    failed: Mapping[str, str] = field(default_factory=dict)  # reason, by id
    silent: Mapping[str, str] = field(default_factory=dict)  # why a route sends nothing, by its outbox


@dataclass(frozen=True, slots=True)
class Posted:
    """The outbox to commit, and the events about it."""

    outbox: Outbox
    events: tuple[Event, ...] = ()


def posted(outbox: Outbox, events: Iterable[Event], wanted: Wanted, heard: Heard, now: datetime) -> Posted:
    """The outbox after these events and results; the same if there is nothing new."""
    news = [entry_of(event) for event in events if not is_own(event)]
    if not news and not outbox:
        return Posted(outbox)
    ways = Ways(wanted)
    found, told = {}, list[Event]()
    for name, record in outbox.items():
        if (way := ways.get(name)) is not None:  # a removed route sends nothing
            found[name], events_of_it = _looked_through(record, way, ways, heard, now)
            told += events_of_it
    left_out = 0
    for name, (way, entries) in grouped(news, ways).items():
        if name not in found and len(found) >= MOST_OUTBOXES:
            left_out += 1
            continue
        record = found.get(name) or OutboxRecord(metadata=OutboxMetadata(name=name))
        found[name] = _with_entries(record, way, entries, now)
    if left_out:
        told.append(_too_many(left_out, now))
    kept = {name: record for name, record in found.items() if not _is_over(record)}
    return Posted(outbox if kept == outbox else kept, tuple(told))


def ready(record: OutboxRecord, way: Way, ways: Ways, now: datetime) -> Iterator[Delivery]:
    """The deliveries of a committed outbox that may be sent now."""
    for delivery in heads(record):
        is_seen = all(ways.may_see(way, entry) for entry in delivery.entries)
        if is_seen and due_at(delivery, way) <= now and free_at(delivery, way, now) <= now:
            yield delivery


def heads(record: OutboxRecord) -> Iterator[Delivery]:
    """The first urgent delivery, and the first other one."""
    for urgent in (True, False):
        yield from _lane(record, urgent)[:1]


def due_at(delivery: Delivery, way: Way) -> datetime:
    """When it is to be sent, after quiet hours; `way` as it is in force now."""
    return free_at(delivery, way, delivery.due)


def free_at(delivery: Delivery, way: Way, at: datetime) -> datetime:
    """`at`, or the end of the quiet hours if this delivery respects them."""
    return at if delivery.urgent else free_from(way.route.quiet, at)


def entry_of(event: Event) -> Entry:
    """An event as stored in the outbox; its text is cut and cleaned as in event files."""
    return Entry.model_validate_json(json.dumps(without_empty(event_rows([event])[0])))


def _looked_through(
    record: OutboxRecord, way: Way, ways: Ways, heard: Heard, now: datetime
) -> tuple[OutboxRecord, list[Event]]:
    """One outbox without deliveries that are done, given up or no longer allowed, and the resulting events."""
    told: list[Event] = []
    arrived = [d for d in record.deliveries if d.id in heard.delivered]
    given_up = [d for d in heads(record) if d not in arrived and _is_hopeless(d, way, heard, now)]
    kept = [d for d in record.deliveries if d not in arrived and d not in given_up]
    allowed = tuple(d for d in (_seen(d, way, ways) for d in kept) if d.entries)
    lost = (0 if arrived else record.lost) + sum(len(d.entries) + d.more for d in given_up)
    silent = record.silent and not arrived
    why = heard.silent.get(way.key, "")
    if why and record.deliveries and not silent:
        told.append(_event(EventReason.ROUTE_SILENT, way, f"{way.shown} sends nothing: {why}", now))
        silent = True
    if lost and (arrived or not record.lost):
        text = f"{way.shown} could not send {counted(lost, 'event')} within a day and gives up"
        told.append(_event(EventReason.NOTICES_LOST, way, text, now))
    after = record.edited(deliveries=allowed, lost=lost, silent=silent)
    return (record if after == record else after), told


def _is_hopeless(delivery: Delivery, way: Way, heard: Heard, now: datetime) -> bool:
    """True if it was tried without success and is too old; an untried one (no controller was running) is tried."""
    tried = delivery.id in heard.failed or way.key in heard.silent
    return tried and now - due_at(delivery, way) > GIVEN_UP


def _seen(delivery: Delivery, way: Way, ways: Ways) -> Delivery:
    """The events that the route may see now: a person may have left the slice in between."""
    entries = tuple(entry for entry in delivery.entries if ways.may_see(way, entry))
    if len(entries) == len(delivery.entries):
        return delivery
    return _named(way.key, delivery.edited(entries=entries))


def _with_entries(record: OutboxRecord, way: Way, entries: Iterable[Entry], now: datetime) -> OutboxRecord:
    """An outbox with these events, each in the lane that its route wants."""
    lanes: list[Delivery] = []
    fresh = tuple(entries)
    for urgent in (True, False):
        found = [entry for entry in fresh if names(way.route.urgent, entry) is urgent]
        lane = _lane(record, urgent)
        lanes += _gathered(lane, _opened(way, urgent, now), found, now) if found else lane
    return record.edited(deliveries=tuple(lanes))


def _gathered(
    lane: tuple[Delivery, ...], opened: Delivery, entries: Iterable[Entry], now: datetime
) -> tuple[Delivery, ...]:
    """A lane with these events in its last delivery, or in `opened` if that one may have been sent already."""
    last = lane[-1] if lane else None
    is_open = last is not None and (len(lane) > 1 or last.due > now)
    *before, target = lane if is_open else (*lane, opened)
    return (*before, _named(opened.id, _holding(target, (*target.entries, *entries))))


def _opened(way: Way, urgent: bool, now: datetime) -> Delivery:
    """A new delivery without events, with the due time of its route."""
    wait = timedelta() if urgent or way.route.digest is None else min(way.route.digest, LONGEST_DIGEST)
    # Files hold whole seconds; the value must be the same after it is read back.
    due = (now + wait).replace(microsecond=0)
    return Delivery(id=way.key, urgent=urgent, due=due if urgent else free_from(way.route.quiet, due))


def _holding(delivery: Delivery, entries: tuple[Entry, ...]) -> Delivery:
    """A delivery with these events instead of its own; beyond the limit the oldest are only counted."""
    kept = entries[-MOST_NOTICES:]
    more = delivery.more + len(entries) - len(kept)
    return delivery.edited(entries=kept, more=more)


def _named(name: str, delivery: Delivery) -> Delivery:
    """A delivery with the id that follows from its route and its events."""
    rows = [name, str(delivery.urgent), *(entry.model_dump_json() for entry in delivery.entries)]
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return delivery.edited(id=digest[:ID_LENGTH])


def _lane(record: OutboxRecord, urgent: bool) -> tuple[Delivery, ...]:
    return tuple(delivery for delivery in record.deliveries if delivery.urgent is urgent)


def _is_over(record: OutboxRecord) -> bool:
    return not (record.deliveries or record.silent or record.lost)


def _event(reason: EventReason, way: Way, text: str, now: datetime) -> Event:
    return Event(now, reason, text, slice=way.owner if way.scope == "slice" else "")


def _too_many(left_out: int, now: datetime) -> Event:
    text = (
        f"more than {MOST_OUTBOXES} routes have pending deliveries; {counted(left_out, 'route')} got none "
        "of these events"
    )
    return Event(now, EventReason.NOTICES_LOST, text)
