"""A small fleet whose manifests have routes: of the project, of both slices, of people in one, two or none of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.deciding.decide import Decision
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Wanted
from reconciler.telling.outbox import Outbox
from scheduler.snapshot import Plan, Snapshot
from schemas.documents.base import Person
from schemas.documents.notifications import ProfileSpec, QuietHours, Route
from tests.reconciler.acting.test_actions import wanted
from tests.support.world import at

NIGHT = QuietHours(begin="10:00", end="11:00", time_zone="UTC")
"""Minutes 120 to 180 of the world, which begins at eight."""
ROUTES = {
    "project": (
        Route(name="ops", secret="ops"),
        Route(name="b-only", secret="ops", slices=("b",)),
        Route(name="alarms", secret="ops", events=("warnings",), urgent=("NodeOut",), quiet=NIGHT),
    ),
    "slice": (
        Route(name="chat", secret="chat", digest=timedelta(minutes=30), urgent=("GPRFailed", "GPRDelayed")),
        Route(
            name="quiet",
            secret="chat",
            quiet=NIGHT,
            events=("GPRCreated", "GPRFailed"),
            urgent=("GPRFailed",),
        ),
    ),
    "person": (Route(name="mail", secret="mail", digest=timedelta(hours=1), quiet=NIGHT),),
}
PEOPLE = {"bo": "bo@example.com", "cy": "cy@example.com", "ada": "ada@example.com"}
"""Bo is a member of both slices, Cy owns `b`, and Ada is an admin who is in none."""


def routed(**people: str) -> Wanted:
    """The documents in force; `people` are profiles by name, as `PEOPLE` has them unless others are given."""
    base = wanted()
    slices = {n: s.model_copy(update={"notifications": ROUTES["slice"]}) for n, s in base.slices.items()}
    slices["b"] = slices["b"].model_copy(update={"owners": (Person(email="cy@example.com"),)})
    profiles = {
        name: ProfileSpec(email=address, notifications=ROUTES["person"])
        for name, address in (people or PEOPLE).items()
    }
    project = base.project.model_copy(update={"notifications": ROUTES["project"]})
    return replace(base, project=project, slices=slices, profiles=profiles)


def decided(outbox: Outbox, *events: Event) -> Decision:
    """A decision of which nothing matters but its outbox and its events."""
    return Decision(Facts(at(0), outbox=outbox), events, False, Plan((), {}, {}), _NO_WORLD)


_NO_WORLD: Snapshot = None  # type: ignore[assignment]  # nobody looks at it
