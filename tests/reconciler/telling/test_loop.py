"""Messages of a running controller: of what was committed alone, by whoever leads, and cheap (H11, H12, F8)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from reconciler.processes.gauges import entries_waiting
from reconciler.store.store_port import Outcome
from reconciler.telling.courier import Answer
from reconciler.telling.mailroom import Mailroom
from reconciler.telling.route_secrets import Secrets
from schemas.reading.yaml_text import dump
from tests.support.receivers import Noted
from tests.support.world import World, at, project, slice_

OPS = {"name": "ops", "secret": "ops", "template": {"body": "$reason $message"}}
NIGHT = {"begin": "08:00", "end": "09:00", "timeZone": "UTC"}
FILES = {
    "project.yaml": project(notifications=[OPS, {**OPS, "name": "calm", "quiet": NIGHT, "events": ["GPRCreated"]}]),
    "slices/a/slice.yaml": slice_(
        "a",
        notifications=[{"name": "chat", "secret": "chat", "digest": "30m", "urgent": ["GPRProvisioned"]}],
    ),
    "people/bo.yaml": dump(
        {
            "apiVersion": "egs.dev/v1alpha1", "kind": "Profile", "metadata": {"name": "bo"},
            "spec": {
                "email": "bo@example.com",
                "notifications": [{"name": "mail", "secret": "mail", "events": ["GPRProvisioned"]}],
            },
        }
    ),
}  # fmt: skip
TRUNK = {"project.ops": "ops", "slice.a.chat": "chat", "person.bo.mail": "mail"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name, word in TRUNK.items():
        (tmp_path / name).write_text(f"json://{word}\n")
    carriers: list[Noted] = []

    def mailroom() -> Mailroom:
        carriers.append(Noted())
        return Mailroom(Secrets(tmp_path), carriers[-1])

    made = World(FILES, mailroom=mailroom)
    made.carriers = carriers  # type: ignore[attr-defined]
    return made


def sent(world: World, word: str) -> list[str]:
    """What arrived at an address, by whichever controller, in order."""
    carriers: list[Noted] = world.carriers  # type: ignore[attr-defined]
    parcels = [parcel for carrier in carriers for _, parcel in carrier.sent]
    return [p.message.body for p in parcels if p.addresses[0].url == f"json://{word}"]


def test_a_request_is_told_to_all_whom_it_concerns(world: World) -> None:
    """The story: filed, started, at its end; the project hears all, its slice digests, Bo what he asked for."""
    world.run(at(1))
    world.file("a/x", duration="20m")
    world.file("b/y", duration="20m")
    world.run(at(120))
    ops = [line.split()[0] for body in sent(world, "ops") for line in body.splitlines()]
    told = world.told()
    assert sorted(ops) == sorted([*told, *(["GPRCreated"] * 2)]), "and the calm route in the morning"
    mail = [line for body in sent(world, "mail") for line in body.splitlines()]
    assert [line.partition(" has ")[0] for line in sorted(mail)] == ["a/x", "b/y"]
    urgent, digest = sent(world, "chat")
    assert urgent in mail, "what is urgent came alone"
    others = [e for c in world.log for e in c.events if e.request == "a/x" and e.reason != "GPRProvisioned"]
    assert digest.splitlines() == [event.message for event in others], "and the rest of half an hour together"
    assert world.facts().outbox == {}


def test_nothing_is_sent_before_its_commit_has_landed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run(at(1))
    before = len(sent(world, "ops"))
    store = world.controller._ports.store
    monkeypatch.setattr(store, "push", lambda *_: Outcome.REFUSED)
    world.file("a/x")
    world.controller.cycle(at(2))
    world.controller.cycle(at(3))
    assert len(sent(world, "ops")) == before
    monkeypatch.undo()
    world.now = at(4)
    world.run(at(5))
    assert any("GPRCreated" in body for body in sent(world, "ops")[before:])


def test_who_does_not_lead_sends_nothing_and_who_takes_over_sends_what_is_committed(world: World) -> None:
    world.run(at(1))
    world.carriers[-1].answer = None  # type: ignore[attr-defined]  # it hangs
    world.file("a/x")
    world.controller.cycle(at(2))
    first = {d.id for d in world.facts().outbox["project.ops"].deliveries}
    old, world.now = world.controller, at(3)
    world.controller = world.start()
    world.run(at(4))
    again = [p.id for _, p in world.carriers[-1].sent]  # type: ignore[attr-defined]
    assert first <= set(again)
    tried = len(world.carriers[0].tried)  # type: ignore[attr-defined]
    world.file("a/y")
    assert not old.cycle(at(5)).leading
    assert len(world.carriers[0].tried) == tried  # type: ignore[attr-defined]


def test_an_old_repository_is_not_sent_its_past(tmp_path: Path) -> None:
    (tmp_path / "project.ops").write_text("json://ops\n")
    carrier = Noted()
    world = World(FILES)
    world.file("a/x", duration="20m")
    world.run(at(60))
    assert world.facts().outbox == {}
    world.mailroom = partial(Mailroom, Secrets(tmp_path), carrier)
    world.controller = world.start()
    world.run(at(61))
    assert [p.message.title for _, p in carrier.sent] == ["ControllerTookOver"]


def test_a_night_is_slept_through_without_a_commit_or_a_cycle_more(world: World) -> None:
    """Nothing changed means no commit, and waiting is no reason to look."""
    world.run(at(1))
    world.file("a/x", notBefore="2026-11-21T20:00:00Z", duration="20m")
    world.run(at(2))
    tip = world.people.fetch(["egs/status"])
    cycles = len(world.run(at(29)))
    assert cycles <= 27 * 2 + 2, "one each half minute"
    assert world.people.fetch(["egs/status"]) == tip
    assert not any("GPRCreated" in body for body in sent(world, "calm"))
    world.run(at(61))
    calm = [b for b in sent(world, "ops") if b.startswith("GPRCreated")]
    assert len(calm) == 2, "by ops at once, and by calm when the night was over"


def test_a_secret_that_is_not_there_is_told_once_and_the_rest_goes_on(world: World, tmp_path: Path) -> None:
    (tmp_path / "slice.a.chat").unlink()
    world.run(at(1))
    world.file("a/x", duration="20m")
    world.run(at(240))
    assert world.told().count("RouteSilent") == 1
    event = next(e for c in world.log for e in c.events if e.reason == "RouteSilent")
    assert (event.slice, "slice.a.chat" in event.message) == ("a", True)
    assert not any("RouteSilent" in body for body in sent(world, "ops"))
    assert world.facts().outbox.keys() == {"slice.a.chat"}
    (tmp_path / "slice.a.chat").write_text("json://chat\n")
    world.run(at(242))
    assert len(sent(world, "chat")) == 2
    assert world.facts().outbox == {}


def test_a_broken_outbox_file_is_an_alarm_and_mended(world: World) -> None:
    world.carriers[-1].answer = None  # type: ignore[attr-defined]
    world.file("a/x")
    world.run(at(1))
    assert "slice.a.chat" in world.facts().outbox
    world.commit({"outbox/slice.a.chat.yaml": "deliveries: [", "outbox/odd": "x"}, "egs/status")
    world.now = at(2)
    world.controller = world.start()
    world.run(at(3))
    told = "".join(e.message for c in world.log for e in c.events)
    assert "outbox/slice.a.chat.yaml cannot be read" in told
    assert world.text("outbox/odd") is None


def test_what_waits_and_what_went_out_is_counted(world: World) -> None:
    world.file("a/x", notBefore="2026-11-22T20:00:00Z", duration="20m")
    world.run(at(2))
    facts = world.log[-1].facts
    assert facts is not None
    waiting = sum(1 for c in world.log for e in c.events if e.request == "a/x")
    assert entries_waiting(facts) == {("project",): 1, ("slice",): waiting, ("person",): 0}
    carried = [count for c in world.log for count in c.carried.items()]
    assert {key for key, _ in carried} == {("project", "Delivered")}


def test_a_route_that_fails_costs_no_commits(world: World) -> None:
    world.carriers[-1].answer = Answer.REFUSED  # type: ignore[attr-defined]
    world.file("a/x", notBefore="2026-11-22T20:00:00Z", duration="20m")
    world.run(at(2))
    pushed = [c.pushed for c in world.run(at(55))]
    assert len(world.carriers[-1].tried) > 10  # type: ignore[attr-defined]
    assert pushed.count("Committed") == 0
