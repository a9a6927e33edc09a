"""The laws of messages, whatever dies when: at least once, never to others, never at night, in order (H11, H12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import backoff
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.telling.courier import Answer
from reconciler.telling.mailroom import SILENT_AFTER, SOON, Mailroom
from reconciler.telling.outbox import Outbox, entry_of
from reconciler.telling.quiet_hours import is_quiet
from reconciler.telling.route_secrets import Secrets
from reconciler.telling.routing import Ways, grouped, names
from schemas.status.outbox import Delivery
from tests.support.profile import law
from tests.support.receivers import Noted
from tests.support.routed import decided, routed
from tests.support.world import START, at

SECRETS = (
    "project.ops",
    "slice.a.chat",
    "slice.b.chat",
    "person.bo.mail",
    "person.cy.mail",
    "person.ada.mail",
)
WANTED = routed()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every secret that the routes name; an address is told by its file's name."""
    made = tmp_path_factory.mktemp("routes")
    for name in SECRETS:
        (made / name).write_text(f"json://{name}\n")
    return made


@dataclass
class Desk:
    """One controller after the other at one repository: what is committed stays, what is remembered does not."""

    folder: Path
    wanted: Wanted = WANTED
    now: datetime = START
    committed: Outbox = field(default_factory=dict)
    carrier: Noted = field(default_factory=Noted)
    told: list[Event] = field(default_factory=list)  # in commits
    out: dict[str, Delivery] = field(default_factory=dict)  # every delivery that was ever committed
    of: dict[str, str] = field(default_factory=dict)  # whose each is

    def __post_init__(self) -> None:
        self.dies()

    def dies(self) -> None:
        """A new process: nothing is remembered, and what was under way may have arrived."""
        self.carrier = Noted(self.carrier.answer, self.carrier.sent, self.carrier.tried)
        self.mailroom = Mailroom(Secrets(self.folder), self.carrier)

    def cycle(self, *events: Event, crash: str = "") -> None:
        """One cycle; `crash` names the step after which the process dies."""
        decision, all_of_them = self.mailroom.post(
            decided(self.committed, *events), events, self.wanted, self.now
        )
        if crash == "post":
            self.dies()
            return self.cycle(*events)  # the next one decides the same
        if crash != "no push":
            self.committed = decision.facts.outbox
            self.told += all_of_them
            for name, record in self.committed.items():
                self.out |= {d.id: d for d in record.deliveries}
                self.of |= {d.id: name for d in record.deliveries}
        if crash == "commit":
            return self.dies()
        facts = Facts(self.now, outbox=self.committed)
        self.mailroom.hand_over(facts, self.wanted, self.now)
        if crash == "hand over":
            return self.dies()
        if crash == "no push":
            return self.cycle(*events)
        return None

    def wake(self) -> datetime | None:
        return self.mailroom.wake(Facts(self.now, outbox=self.committed), self.wanted, self.now)

    def rest(self) -> None:
        """Until nothing waits any more."""
        for _ in range(200):
            self.cycle()
            if not self.committed:
                return
            self.now = min(filter(None, (self.wake(), self.now + timedelta(minutes=30))))
        raise AssertionError(f"never sent: {self.committed}")

    def arrived(self) -> Iterator[tuple[datetime, str, Delivery]]:
        """When, by which route and what."""
        for when, parcel in self.carrier.sent:
            yield when, self.of[parcel.id], self.out[parcel.id]


REASONS = st.sampled_from(
    [
        EventReason.FILED,
        EventReason.FAILED,
        EventReason.DELAYED,
        EventReason.NODE_OUT,
        EventReason.ALARM,
        EventReason.ROUTE_SILENT,
    ]
)
CRASHES = st.sampled_from(["", "", "", "post", "commit", "hand over", "no push"])
STEPS = st.lists(
    st.tuples(
        st.integers(0, 45),  # minutes that pass
        st.lists(st.tuples(REASONS, st.sampled_from(["a", "b", ""])), max_size=3),
        CRASHES,
        st.sampled_from([*Answer, Answer.DELIVERED, Answer.DELIVERED]),
    ),
    max_size=12,
)


def played(
    folder: Path, steps: list[tuple[int, list[tuple[EventReason, str]], str, Answer]]
) -> tuple[Desk, list[Event]]:
    """All of a random life, and the end of it, at which every service answers."""
    desk, happened = Desk(folder), []
    for number, (minutes, told, crash, answer) in enumerate(steps):
        desk.now += timedelta(minutes=minutes)
        desk.carrier.answer = answer
        events = [
            Event(desk.now, reason, f"event {number}.{i}", f"{name}/x" if name else "")
            for i, (reason, name) in enumerate(told)
        ]
        happened += events
        desk.cycle(*events, crash=crash)
    desk.carrier.answer = Answer.DELIVERED
    desk.rest()
    return desk, happened


@given(steps=STEPS)
@law(150)
def test_each_event_reaches_each_route_that_asks_for_it_and_no_other(folder: Path, steps: list) -> None:
    """At least once, across crashes between any two steps, failures and services that time out."""
    desk, happened = played(folder, steps)
    want = {
        (name, entry.message)
        for name, (_, entries) in grouped(
            [entry_of(e) for e in happened if e.reason is not EventReason.ROUTE_SILENT], Ways(WANTED)
        ).items()
        for entry in entries
    }
    got = {(name, entry.message) for _, name, delivery in desk.arrived() for entry in delivery.entries}
    assert got == want


@given(steps=STEPS)
@law(150)
def test_nothing_disturbs_at_night_but_what_is_urgent(folder: Path, steps: list) -> None:
    desk, _ = played(folder, steps)
    for when, name, delivery in desk.arrived():
        way = Ways(WANTED).get(name)
        assert way is not None
        urgent = all(names(way.route.urgent, entry) for entry in delivery.entries)
        assert urgent or not is_quiet(way.route.quiet, when)


@given(steps=STEPS)
@law(150)
def test_messages_come_in_order_and_whole_and_what_is_sent_again_is_the_same(
    folder: Path, steps: list
) -> None:
    """Whoever drops an id that came before has each event once, and of each lane in the order of happening."""
    desk, _ = played(folder, steps)
    texts: dict[str, str] = {}
    for _, parcel in desk.carrier.tried:
        assert texts.setdefault(parcel.id, parcel.message.body) == parcel.message.body
    lanes: dict[tuple[str, bool], dict[str, Delivery]] = {}
    for _, name, delivery in desk.arrived():
        lanes.setdefault((name, delivery.urgent), {}).setdefault(delivery.id, delivery)
    for once in lanes.values():
        told = [(n.at, n.message) for delivery in once.values() for n in delivery.entries]
        assert len(told) == len(set(told))
        assert [when for when, _ in told] == sorted(when for when, _ in told)


@given(steps=STEPS)
@law(100)
def test_nothing_is_sent_before_its_commit(folder: Path, steps: list) -> None:
    desk, _ = played(folder, steps)
    assert {parcel.id for _, parcel in desk.carrier.tried} <= desk.out.keys()


def test_the_first_of_many_that_wait_is_sent_and_the_others_follow_in_one(folder: Path) -> None:
    desk = Desk(folder, carrier=Noted(None))
    for minute in range(4):
        desk.now = at(minute)
        desk.cycle(Event(desk.now, EventReason.ALARM, f"alarm {minute}"))
    assert desk.wake() == desk.now + SOON, "somebody waits behind what is under way"
    (_, first), *others = [(w, p) for w, p in desk.carrier.tried if desk.of[p.id] == "project.ops"]
    assert others == []
    assert desk.carrier.returned(desk.now) == {}
    desk.carrier._back[first.id] = Answer.DELIVERED
    desk.carrier.answer = Answer.DELIVERED
    desk.cycle()
    last = [p for _, p in desk.carrier.tried if desk.of[p.id] == "project.ops"][-1]
    assert last.message.body == "alarm 1\nalarm 2\nalarm 3"


def test_tries_come_ever_later_and_an_hour_of_silence_is_told_once(folder: Path) -> None:
    desk = Desk(folder, carrier=Noted(Answer.REFUSED))
    desk.cycle(Event(at(0), EventReason.NODE_BACK, "a node", "", "east", "h100-1"))
    pauses, last = [], desk.now
    for _ in range(60):
        desk.cycle()
        woken = desk.wake()
        if woken is None:  # given up
            break
        desk.now = woken
        tried = len(desk.carrier.tried)
        desk.cycle()
        if len(desk.carrier.tried) > tried:
            pauses.append(desk.now - last)
            last = desk.now
    assert pauses[:3] == [backoff.MESSAGES.first, 2 * backoff.MESSAGES.first, 4 * backoff.MESSAGES.first]
    assert max(pauses) == backoff.MESSAGES.longest
    silent = [e for e in desk.told if e.reason is EventReason.ROUTE_SILENT]
    assert len(silent) == 1
    assert silent[0].at - at(0) >= SILENT_AFTER
    assert [str(e.reason) for e in desk.told][-1] == "NotificationsLost"
    assert desk.committed["project.ops"].deliveries == ()


def test_a_secret_that_comes_later_is_found_without_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.cycle(Event(at(0), EventReason.ALARM, "an alarm"))
    desk.now = at(1)
    desk.cycle()
    assert [str(e.reason) for e in desk.told].count("RouteSilent") == 2, "ops and alarms have no secret"
    assert all("secret" not in e.message or "json" not in e.message for e in desk.told)
    (tmp_path / "project.ops").write_text("json://ops\n")
    desk.now = at(2)
    desk.cycle()
    assert [p.message.body for _, p in desk.carrier.sent] == ["an alarm", "an alarm"]
    desk.rest()
    assert [str(e.reason) for e in desk.told].count("RouteSilent") == 2


def test_an_address_that_cannot_be_used_is_told_at_once(folder: Path) -> None:
    desk = Desk(folder, carrier=Noted(Answer.UNUSABLE))
    desk.cycle(Event(at(0), EventReason.NODE_BACK, "a node", "", "east", "h100-1"))
    desk.now = at(1)
    desk.cycle()
    assert [str(e.reason) for e in desk.told] == ["NodeBack", "RouteSilent"]


def test_without_a_folder_nothing_is_kept_and_what_was_stays(folder: Path) -> None:
    desk = Desk(folder, carrier=Noted(None))
    desk.cycle(Event(at(0), EventReason.ALARM, "an alarm"))
    kept = desk.committed
    assert kept
    off = Mailroom()
    event = Event(at(9), EventReason.ALARM, "another")
    decision, events = off.post(decided(kept, event), (event,), WANTED, at(9))
    off.hand_over(decision.facts, WANTED, at(9))
    assert (decision.facts.outbox, events, off.wake(decision.facts, WANTED, at(9))) == (kept, (event,), None)
    assert not off.finish()


def test_what_came_back_is_counted_by_whose_route_it_was(folder: Path) -> None:
    desk = Desk(folder)
    desk.cycle(Event(at(0), EventReason.FILED, "filed", "a/x"))
    desk.carrier.answer = Answer.REFUSED
    desk.now = at(70)
    desk.cycle()
    desk.cycle()
    assert dict(desk.mailroom.counted()) == {
        ("project", "Delivered"): 1,
        ("slice", "Delivered"): 1,
        ("slice", "ServiceRefused"): 1,
        ("person", "ServiceRefused"): 1,
    }
    assert dict(desk.mailroom.counted()) == {}


def test_a_carrier_that_is_busy_is_asked_again(folder: Path) -> None:
    class Busy(Noted):
        def send(self, parcel: object, now: datetime) -> bool:
            return False

    desk = Desk(folder)
    desk.mailroom = replace(desk.mailroom, carrier=Busy())
    desk.cycle(Event(at(0), EventReason.ALARM, "an alarm"))
    assert desk.wake() == at(0) + SOON
