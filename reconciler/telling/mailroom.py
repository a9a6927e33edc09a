"""Between the loop and the courier: sends what is committed and due, and processes the results.

One owner, which calls `post` while deciding and `hand_over` once the commit has landed. The state kept here
(running deliveries, results, retry times) is lost with the process: then committed deliveries are sent again
with their old id. Without a folder of secrets nothing is posted, sent or given up.

Held by tests/reconciler/telling/test_mailroom.py, test_loop.py and test_crash.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.deciding.decide import Decision
from reconciler.model import backoff
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Wanted
from reconciler.telling.courier import Answer, Carrier, Parcel
from reconciler.telling.messages import message_of
from reconciler.telling.outbox import Heard, free_at, heads, posted, ready
from reconciler.telling.route_secrets import Secrets
from reconciler.telling.routing import Way, Ways
from schemas.errors import UserError
from schemas.status.outbox import Delivery, OutboxRecord

log = logging.getLogger(__name__)

SILENT_AFTER = timedelta(hours=1)
"""A service failing for this long is reported; a restart of the service is shorter."""
SOON = timedelta(seconds=5)
"""Next look while a message waits behind a running delivery."""

WHY = {
    Answer.REFUSED: "its service refuses messages, or cannot be reached",
    Answer.TIMED_OUT: "its service does not answer in time",
    Answer.UNUSABLE: "its secret contains an invalid address; an operator must write it in apprise's format",
}


@dataclass(frozen=True, slots=True)
class _Trial:
    """A delivery that was tried and has not arrived."""

    name: str  # of its outbox
    tries: int
    begun: datetime  # time of its first failure
    again: datetime
    answer: Answer


@dataclass(slots=True)
class Mailroom:
    """Posts and hands over for one controller; see the module. `secrets` None: nothing is sent."""

    secrets: Secrets | None = None
    carrier: Carrier | None = None
    _out: dict[str, str] = field(default_factory=dict)  # outbox of each running delivery, by id
    _delivered: set[str] = field(default_factory=set)
    _trials: dict[str, _Trial] = field(default_factory=dict)
    _closed: dict[str, str] = field(default_factory=dict)  # why a route has no addresses, by its outbox
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def post(
        self, decision: Decision, events: tuple[Event, ...], wanted: Wanted, now: datetime
    ) -> tuple[Decision, tuple[Event, ...]]:
        """The decision with its outbox, and the events including those about messages."""
        if self.secrets is None:
            return decision, events
        self._take_back(now)
        found = posted(decision.facts.outbox, events, wanted, self._heard(now), now)
        if found.outbox is not decision.facts.outbox:
            decision = replace(decision, facts=replace(decision.facts, outbox=found.outbox))
        return decision, (*events, *found.events)

    def hand_over(self, facts: Facts, wanted: Wanted, now: datetime) -> None:
        """Sends the committed deliveries that are due."""
        if self.secrets is None:
            return
        self._forget(facts)
        if not facts.outbox:
            return
        ways = Ways(wanted)
        for name, record in facts.outbox.items():
            if (way := ways.get(name)) is not None:
                for delivery in ready(record, way, ways, now):
                    self._send(delivery, way, record.lost, now)

    def wake(self, facts: Facts, wanted: Wanted, now: datetime) -> datetime | None:
        """When to look again for messages; None: none is scheduled."""
        if self.secrets is None or not facts.outbox:
            return None
        ways = Ways(wanted)
        found = [
            at
            for name, record in facts.outbox.items()
            if (way := ways.get(name)) is not None
            for at in self._instants(record, way, now)
        ]
        return min((at for at in found if at > now), default=None)

    def finish(self) -> bool:
        """Waits for running deliveries; False: there are none. For a process that ends when it is idle."""
        if self.carrier is None or not self._out:
            return False
        self.carrier.finish()
        return True

    def counted(self) -> Mapping[tuple[str, str], int]:
        """Results since the last call, by kind of route and answer."""
        counts, self._counts = self._counts, Counter()
        return counts

    def _send(self, delivery: Delivery, way: Way, lost: int, now: datetime) -> None:
        assert self.secrets is not None
        assert self.carrier is not None
        trial = self._trials.get(delivery.id)
        known = delivery.id in self._delivered or delivery.id in self._out
        if known or (trial is not None and trial.again > now):
            return
        try:
            addresses = self.secrets.read(way.secret)
        except UserError as error:
            self._closed[way.key] = str(error)
            return
        self._closed.pop(way.key, None)
        parcel = Parcel(delivery.id, message_of(delivery, way.route.template, lost), addresses)
        if self.carrier.send(parcel, now):
            self._out[delivery.id] = way.key

    def _take_back(self, now: datetime) -> None:
        assert self.carrier is not None
        for id_, answer in self.carrier.returned(now).items():
            name = self._out.pop(id_, "")
            self._counts[name.partition(".")[0], str(answer)] += 1
            if answer is Answer.DELIVERED:
                self._delivered.add(id_)
                self._trials.pop(id_, None)
                log.info("notification sent route=%s delivery=%s", name, id_)
            else:
                self._trials[id_] = trial = _after(self._trials.get(id_), name, answer, now)
                log.warning(
                    "notification not sent route=%s delivery=%s answer=%s try=%d",
                    name,
                    id_,
                    answer,
                    trial.tries,
                )

    def _heard(self, now: datetime) -> Heard:
        silent = {
            trial.name: WHY[trial.answer]
            for trial in self._trials.values()
            if trial.answer is Answer.UNUSABLE or now - trial.begun >= SILENT_AFTER
        }
        failed = {id_: str(trial.answer) for id_, trial in self._trials.items()}
        return Heard(frozenset(self._delivered), failed, {**silent, **self._closed})

    def _forget(self, facts: Facts) -> None:
        """Drops deliveries that left the committed outbox; running ones return by themselves."""
        there = {delivery.id for record in facts.outbox.values() for delivery in record.deliveries}
        self._delivered &= there
        self._trials = {id_: trial for id_, trial in self._trials.items() if id_ in there}
        self._closed = {name: why for name, why in self._closed.items() if name in facts.outbox}

    def _instants(self, record: OutboxRecord, way: Way, now: datetime) -> Iterator[datetime]:
        for delivery in heads(record):
            trial = self._trials.get(delivery.id)
            if delivery.id in self._out or delivery.id in self._delivered:
                behind = [d for d in record.deliveries if d.urgent is delivery.urgent]
                if len(behind) > 1:
                    yield now + SOON
            elif way.key not in self._closed:  # a new secret is found at the next look
                at = free_at(delivery, way, max(now, delivery.due if trial is None else trial.again))
                yield at if at > now else now + SOON


def _after(trial: _Trial | None, name: str, answer: Answer, now: datetime) -> _Trial:
    """One more failed try."""
    tries = 1 if trial is None else trial.tries + 1
    again = now + backoff.MESSAGES.after(tries)
    return _Trial(name, tries, now if trial is None else trial.begun, again, answer)
