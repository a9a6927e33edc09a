"""The outbox as a pure function: what is queued, gathered, held, given up and forgotten (H11, H12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.status.render import render
from reconciler.telling.outbox import (
    GIVEN_UP,
    MOST_NOTICES,
    MOST_OUTBOXES,
    Heard,
    Outbox,
    Posted,
    posted,
    ready,
)
from reconciler.telling.routing import Ways
from schemas.documents.base import Person
from schemas.documents.notifications import ProfileSpec, Route
from schemas.rules.route_rules import LONGEST_DIGEST
from schemas.status.outbox import Delivery
from tests.reconciler.acting.test_actions import wanted as bare
from tests.support.readback import facts_from
from tests.support.routed import ROUTES, routed
from tests.support.world import at

NOTHING = Heard()
WANTED = routed()


def filed(minute: float, key: str = "a/x") -> Event:
    return Event(at(minute), EventReason.FILED, f"{key} was filed at {minute}", key)


def failed(minute: float, key: str = "a/x") -> Event:
    return Event(at(minute), EventReason.FAILED, f"{key} failed at {minute}", key)


def after(
    outbox: Outbox, minute: float, *events: Event, heard: Heard = NOTHING, wanted: Wanted = WANTED
) -> Outbox:
    return posted(outbox, events, wanted, heard, at(minute)).outbox


def due(outbox: Outbox, minute: float, wanted: Wanted = WANTED) -> dict[str, list[Delivery]]:
    ways = Ways(wanted)
    found: dict[str, list[Delivery]] = {}
    for name, record in outbox.items():
        way = ways.get(name)
        if way is not None and (now := list(ready(record, way, ways, at(minute)))):
            found[name] = now
    return found


def texts(deliveries: Iterable[Delivery]) -> list[str]:
    return [entry.message for delivery in deliveries for entry in delivery.entries]


# -- when -----------------------------------------------------------------------------------------------------------


def test_without_a_digest_it_is_due_at_once_and_with_one_when_it_is_over() -> None:
    outbox = after({}, 1, filed(1))
    assert {"project.ops", "slice.a.quiet"} == due(outbox, 1).keys()
    outbox = after(outbox, 20, filed(20, "a/y"))
    assert "slice.a.chat" not in due(outbox, 30)
    assert texts(due(outbox, 31)["slice.a.chat"]) == ["a/x was filed at 1", "a/y was filed at 20"]


def test_what_is_urgent_waits_for_no_digest_and_no_quiet_hours() -> None:
    outbox = after({}, 130, filed(130), failed(130))
    assert texts(due(outbox, 130)["slice.a.chat"]) == ["a/x failed at 130"]
    assert texts(due(outbox, 130)["slice.a.quiet"]) == ["a/x failed at 130"]
    assert texts(due(outbox, 180)["slice.a.quiet"]) == ["a/x failed at 130", "a/x was filed at 130"]


def test_a_night_gathers_one_message() -> None:
    outbox = after(after({}, 125, filed(125)), 150, filed(150, "a/y"))
    assert "slice.a.quiet" not in due(outbox, 179)
    assert [len(d.entries) for d in due(outbox, 180)["slice.a.quiet"]] == [2]


def test_what_was_due_before_the_night_and_not_sent_waits_for_the_morning() -> None:
    outbox = after({}, 119, filed(119))
    assert "slice.a.quiet" in due(outbox, 119)
    assert "slice.a.quiet" not in due(outbox, 120)
    assert "slice.a.quiet" in due(outbox, 180)


# -- what stays as it is --------------------------------------------------------------------------------------------


def test_what_may_have_been_sent_is_never_changed_and_the_rest_gathers_behind_it() -> None:
    outbox = after({}, 1, filed(1))
    (first,) = due(outbox, 1)["project.ops"]
    for minute in (2, 3, 4):
        outbox = after(outbox, minute, filed(minute))
        assert due(outbox, minute)["project.ops"] == [first]
    assert len(outbox["project.ops"].deliveries) == 2
    outbox = after(outbox, 5, heard=Heard({first.id}))
    assert texts(due(outbox, 5)["project.ops"]) == [f"a/x was filed at {m}" for m in (2, 3, 4)]


def test_an_id_follows_from_the_route_and_the_events() -> None:
    one, other = after({}, 1, filed(1)), after({}, 7, filed(1))
    assert one["project.ops"].deliveries[0].id == other["project.ops"].deliveries[0].id
    ids = {d.id for record in one.values() for d in record.deliveries}
    assert len(ids) == len(one) == 4
    assert after({}, 1, filed(2))["project.ops"].deliveries[0].id not in ids


def test_what_has_nothing_new_is_the_very_same() -> None:
    outbox = after({}, 1, filed(1))
    assert after(outbox, 2) is outbox
    assert after({}, 2, Event(at(2), EventReason.ROUTE_SILENT, "…"), wanted=WANTED) == {}


def test_it_is_read_back_as_it_was_written() -> None:
    odd = Event(
        at(1) + timedelta(microseconds=7), EventReason.FAILED, 'a "quote"\u202e, \ttab\nno: "1"', "a/x"
    )
    outbox = after({}, 1.0001, odd, filed(1))
    files = render(Facts(at(1), "c0", outbox=outbox), bare(), (), ())
    assert {p for p in files if p.startswith("outbox/")} == {f"outbox/{name}.yaml" for name in outbox}
    assert facts_from(files, at(1), "c0").outbox == outbox


# -- what leaves ----------------------------------------------------------------------------------------------------


def test_what_arrived_leaves_and_an_empty_outbox_too() -> None:
    outbox = after({}, 1, filed(1))
    ids = {d.id for record in outbox.values() for d in record.deliveries}
    assert after(outbox, 2, heard=Heard(ids)) == {}


def test_a_route_that_is_gone_carries_nothing_any_more() -> None:
    outbox = after({}, 1, filed(1))
    assert after(outbox, 2, wanted=bare()) == {}


def test_somebody_who_left_the_slice_gets_no_more_of_it() -> None:
    outbox = after({}, 1, filed(1), filed(1, "b/x"))
    left = WANTED.slices["a"].model_copy(update={"members": (Person(email="cy@example.com"),)})
    wanted = replace(WANTED, slices={**WANTED.slices, "a": left})
    assert "person.bo.mail" not in due(outbox, 61, wanted), "not even what is committed already"
    outbox = after(outbox, 61, wanted=wanted)
    assert texts(due(outbox, 61, wanted)["person.bo.mail"]) == ["b/x was filed at 1"]


def test_nothing_is_sent_of_the_time_before_a_route_was_there() -> None:
    before = after({}, 1, filed(1), wanted=bare())
    assert before == {}
    assert texts(after(before, 2, filed(2))["project.ops"].deliveries) == ["a/x was filed at 2"]


# -- what fails -----------------------------------------------------------------------------------------------------


def hopeless(minute: float, outbox: Outbox, *events: Event) -> Posted:
    tried = {d.id: "ServiceRefused" for record in outbox.values() for d in record.deliveries}
    return posted(outbox, events, WANTED, Heard(failed=tried), at(minute))


DAY = GIVEN_UP.total_seconds() / 60


def test_after_a_day_it_is_given_up_and_told_once() -> None:
    outbox = {"project.ops": after({}, 1, filed(1))["project.ops"]}
    assert hopeless(1 + DAY, outbox).outbox is outbox
    found = hopeless(2 + DAY, outbox)
    assert [str(e.reason) for e in found.events] == ["NotificationsLost"]
    assert "project/ops could not send 1 event" in found.events[0].message
    assert found.outbox["project.ops"].deliveries == ()
    queued = after(found.outbox, 3 + DAY, failed(3 + DAY))
    again = hopeless(3 + DAY, {"project.ops": queued["project.ops"]})
    assert again.events == ()
    more = hopeless(5 + DAY + DAY, again.outbox)
    assert (more.events, more.outbox["project.ops"].lost) == ((), 2)


def test_what_was_lost_is_over_when_something_arrives() -> None:
    outbox = hopeless(2 + DAY, {"project.ops": after({}, 1, filed(1))["project.ops"]}).outbox
    outbox = {"project.ops": after(outbox, 3 + DAY, failed(3 + DAY))["project.ops"]}
    (delivery,) = outbox["project.ops"].deliveries
    assert after(outbox, 4 + DAY, heard=Heard({delivery.id})) == {}


def test_what_nobody_could_try_is_tried_however_old_it_is() -> None:
    outbox = after({}, 1, filed(1))
    assert after(outbox, 1 + DAY * 3) is outbox


def test_a_route_without_a_secret_is_told_once_and_waits() -> None:
    outbox = {"slice.a.quiet": after({}, 1, filed(1))["slice.a.quiet"]}
    heard = Heard(silent={"slice.a.quiet": "file slice.a.chat cannot be read"})
    found = posted(outbox, (), WANTED, heard, at(2))
    (event,) = found.events
    assert (event.reason, event.slice, event.request) == (EventReason.ROUTE_SILENT, "a", "")
    assert event.message == "slice/a/quiet sends nothing: file slice.a.chat cannot be read"
    assert posted(found.outbox, [event], WANTED, heard, at(3)) == Posted(found.outbox)
    waits = after(found.outbox, 4, filed(4, "a/y"), heard=heard)
    assert texts(waits["slice.a.quiet"].deliveries) == ["a/x was filed at 1", "a/y was filed at 4"]
    arrived = Heard({d.id for d in waits["slice.a.quiet"].deliveries})
    assert "slice.a.quiet" not in after(waits, 5, heard=arrived)


def test_events_about_messages_are_sent_by_no_route() -> None:
    own = [
        Event(at(1), told, "…", slice="a") for told in (EventReason.ROUTE_SILENT, EventReason.NOTICES_LOST)
    ]
    assert after({}, 1, *own) == {}


# -- bounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["m", "\u65e5", "\udcff", '"'], ids=ascii)
def test_a_flood_leaves_the_newest_and_the_number_of_the_others(letter: str) -> None:
    flood = [Event(at(1), EventReason.FILED, f"{i} {letter * 1000}", "a/" + "x" * 60) for i in range(3000)]
    flood += [Event(at(1), EventReason.FAILED, f"{i} {letter * 1000}", "a/" + "x" * 60) for i in range(3000)]
    outbox = after(after({}, 1, *flood), 2, *flood)
    assert {len(record.deliveries) for record in outbox.values()} <= {1, 2, 3, 4}
    for record in outbox.values():
        told = sum(len(d.entries) + d.more for d in record.deliveries)
        assert told in {6000, 12000}
        assert all(len(d.entries) <= MOST_NOTICES for d in record.deliveries)
        assert record.deliveries[-1].entries[-1].message.startswith("2999")
    files = render(Facts(at(2), "c0", outbox=outbox), bare(), (), ())
    assert all(len(data) < 1_000_000 for data in files.values())


def test_more_routes_than_a_folder_holds_are_told_of_and_left_out() -> None:
    mails = {
        f"p{i}": ProfileSpec(email="bo@example.com", notifications=ROUTES["person"]) for i in range(1200)
    }
    found = posted({}, [filed(1)], replace(WANTED, profiles=mails), NOTHING, at(1))
    assert len(found.outbox) == MOST_OUTBOXES
    assert "project.ops" in found.outbox
    assert [str(e.reason) for e in found.events] == ["NotificationsLost"]
    again = posted(found.outbox, [filed(2)], replace(WANTED, profiles=mails), NOTHING, at(2))
    assert again.outbox.keys() == found.outbox.keys()


def test_a_digest_of_ages_is_sent_after_a_week() -> None:
    """Whatever a manifest says, deciding goes on, and what is written can be read."""
    far = Route(name="far", secret="ops", digest=timedelta(weeks=9999))
    wanted = replace(WANTED, project=WANTED.project.model_copy(update={"notifications": (far,)}))
    outbox = after({}, 1, filed(1), wanted=wanted)
    assert outbox["project.far"].deliveries[0].due == at(1) + LONGEST_DIGEST
    assert facts_from(render(Facts(at(1), "c0", outbox=outbox), bare(), (), ()), at(1), "c0").outbox == outbox
