"""What goes where: a table, and that nothing goes to whom it is no business of (H12, B7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.events import Event, EventReason
from reconciler.telling.outbox import entry_of
from reconciler.telling.routing import Way, Ways, grouped
from schemas.documents.notifications import Route
from schemas.status.outbox import Entry
from tests.support.routed import ROUTES, routed
from tests.support.world import at

FILED_A = Event(at(1), EventReason.FILED, "a/x was filed", "a/x")
FILED_B = Event(at(1), EventReason.FILED, "b/x was filed", "b/x")
FAILED_B = Event(at(1), EventReason.FAILED, "b/x failed", "b/x")
NODE = Event(at(1), EventReason.NODE_OUT, "h100-1 left service", "", "east", "h100-1")
NODE_OF_A = Event(at(1), EventReason.NODE_NOT_REPLACED, "no spare", "a/x", "east", "h100-1")
SLICE_A = Event(at(1), EventReason.DRIFT, "a role was changed", "", "east", "", "a")
ALARM = Event(at(1), EventReason.ALARM, "a stranger's commit")
UNKNOWN = Event(at(1), EventReason.FILED, "gone/x was filed", "gone/x")


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param(
            FILED_A, {"project.ops", "slice.a.chat", "slice.a.quiet", "person.bo.mail"}, id="a request of a"
        ),
        pytest.param(
            FILED_B,
            {
                "project.ops", "project.b-only", "slice.b.chat", "slice.b.quiet",
                "person.bo.mail", "person.cy.mail",
            },
            id="a request of b: its owner is in it too",
        ),
        pytest.param(
            FAILED_B,
            {
                "project.ops", "project.b-only", "project.alarms", "slice.b.chat", "slice.b.quiet",
                "person.bo.mail", "person.cy.mail",
            },
            id="a warning",
        ),
        pytest.param(NODE, {"project.ops", "project.alarms"}, id="a node concerns the project alone"),
        pytest.param(
            NODE_OF_A,
            {"project.ops", "project.alarms", "slice.a.chat", "person.bo.mail"},
            id="a node of a request concerns its slice",
        ),
        pytest.param(
            SLICE_A,
            {"project.ops", "project.alarms", "slice.a.chat", "person.bo.mail"},
            id="the slice itself",
        ),
        pytest.param(ALARM, {"project.ops", "project.alarms"}, id="the repository"),
        pytest.param(UNKNOWN, {"project.ops"}, id="a slice that is not there"),
    ],
)  # fmt: skip
def test_what_goes_where(event: Event, want: set[str]) -> None:
    assert set(grouped([entry_of(event)], Ways(routed()))) == want


def test_an_admin_is_told_as_a_person_only_where_they_work() -> None:
    found = grouped([entry_of(e) for e in (FILED_A, FILED_B, NODE, ALARM)], Ways(routed()))
    assert not any(name.startswith("person.ada") for name in found)


def test_two_profiles_of_one_address_are_both_told() -> None:
    found = grouped([entry_of(FILED_A)], Ways(routed(bo="bo@example.com", bob="bo@example.com")))
    assert {"person.bo.mail", "person.bob.mail"} <= set(found)


def test_a_route_names_secrets_of_its_own_alone() -> None:
    route = Route(name="chat", secret="team")
    assert Way("project", "", route).secret == "project.team"
    assert Way("slice", "a", route).secret == "slice.a.team"
    assert Way("person", "bo", route).secret == "person.bo.team"
    assert Way("slice", "a", route).shown == "slice/a/chat"


def test_of_two_routes_with_one_name_the_first_counts() -> None:
    base = routed()
    routes = (Route(name="ops", secret="one"), Route(name="ops", secret="two"))
    twice = replace(base, project=base.project.model_copy(update={"notifications": routes}))
    assert [way.route.secret for way in Ways(twice).of(entry_of(NODE))] == ["one"]


@pytest.mark.parametrize("event", [FILED_A, FILED_B, FAILED_B, NODE, NODE_OF_A, SLICE_A, ALARM, UNKNOWN])
def test_whoever_gets_it_may_see_it(event: Event) -> None:
    ways, entry = Ways(routed()), entry_of(event)
    assert all(ways.may_see(way, entry) for way in ways.of(entry))


@pytest.mark.parametrize("name", ["slice.a.chat", "person.cy.mail", "person.ada.mail"])
def test_others_may_not_see_it_whatever_they_ask_for(name: str) -> None:
    ways = Ways(routed())
    way = ways.get(name)
    assert way is not None
    hidden = [entry_of(e) for e in (NODE, ALARM, UNKNOWN)]
    hidden += [entry_of(FILED_B)] if name != "person.cy.mail" else [entry_of(FILED_A)]
    assert not any(ways.may_see(way, entry) for entry in hidden)


def test_a_route_that_is_gone_has_no_way() -> None:
    assert Ways(routed()).get("slice.a.gone") is None
    assert len(ROUTES) == 3


def test_an_event_is_about_the_slice_of_its_request() -> None:
    assert Entry(at=at(1), reason="X", type="Normal", request="a/x").about == "a"
    assert Entry(at=at(1), reason="X", type="Normal", request="a/x", slice="b").about == "b"
