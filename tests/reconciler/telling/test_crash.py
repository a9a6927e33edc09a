"""A controller that sends is killed at its writes and around its sends, on a real repository (H11, H12, F1).

`tests.support.crash` tells the story and how the process dies. Whatever was committed as told is sent at least
once, and whoever drops an id that came before has it once. At the end real apprise carries a whole
story to a real receiver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.parse import events_from
from reconciler.telling.courier import Answer, Courier, Parcel
from reconciler.telling.mailroom import Mailroom
from reconciler.telling.route_secrets import Secrets
from reconciler.telling.routing import OWN
from tests.support import repos
from tests.support.crash import BRANCH, STORY, Folder, Kill, Points, Stage, Walk
from tests.support.profile import drawn
from tests.support.receivers import webhook
from tests.support.world import at, project, slice_

WORDS = {"body": "$time $reason $message"}
FILES = {
    "project.yaml": project(
        notifications=[
            {"name": "ops", "secret": "ops", "template": WORDS},
            {"name": "digest", "secret": "digest", "digest": "10m", "template": WORDS},
        ]
    ),
    "slices/a/slice.yaml": slice_("a", notifications=[{"name": "a", "secret": "a", "template": WORDS}]),
}
WORD_OF = {"project.ops": "ops", "project.digest": "digest", "slice.a.a": "a"}


@dataclass(slots=True)
class Pen:
    """A carrier whose receiver is a file, so that what arrived outlives the process; each send may be its last act."""

    file: Path
    points: Points
    _back: dict[str, Answer] = field(default_factory=dict)

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """See `Carrier.send`."""
        self.points.around("send", lambda: self._write(parcel))
        self._back[parcel.id] = Answer.DELIVERED
        return True

    def _write(self, parcel: Parcel) -> None:
        row = {"to": parcel.addresses[0].url, "id": parcel.id, "lines": parcel.message.body.splitlines()}
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def returned(self, now: datetime) -> Mapping[str, Answer]:
        """See `Carrier.returned`."""
        found, self._back = self._back, {}
        return found

    def finish(self) -> None:
        """See `Carrier.finish`."""


def secrets(folder: Path, words: Mapping[str, str] = WORD_OF) -> Secrets:
    made = folder / "routes"
    made.mkdir(exist_ok=True)
    for name, word in words.items():
        (made / name).write_text(word)
    return Secrets(made)


class Writes(Reconciler):
    """Sends by a pen."""

    def __init__(self, ports: Ports, settings: Settings, writer: str, **more: Any) -> None:
        carrier = Pen(settings.state / "sent", ports.store._points)  # type: ignore[attr-defined]
        mailroom = Mailroom(secrets(settings.state), carrier)
        super().__init__(replace(ports, mailroom=mailroom), settings, writer, **more)


@dataclass(frozen=True, slots=True)
class Found:
    """What a run left: lines that were to arrive, and what did, by receiver."""

    told: Mapping[str, list[str]]
    sent: Mapping[str, list[tuple[str, tuple[str, ...]]]]  # ids with their lines
    left: tuple[str, ...]  # outboxes

    def wrong(self) -> list[str]:
        """Sentences on what does not hold."""
        found = [f"{name} still waits" for name in self.left]
        for to, told in self.told.items():
            once = dict(self.sent.get(to, ()))
            if any(once[id_] != lines for id_, lines in self.sent.get(to, ())):
                found.append(f"{to} got one id with two contents")
            lines = [line for lines in once.values() for line in lines]
            if sorted(lines) != sorted(told):
                found.append(f"{to} got {set(lines) ^ set(told)} otherwise or not once")
        return found


def found_in(stage: Stage) -> Found:
    """Let what waits go out, then compare with the events on the branch."""
    for _ in range(20):
        cycle = stage.controller.cycle(stage.now)
        if cycle.facts is not None and not cycle.facts.outbox:
            break
        stage.now = max(stage.now, cycle.wake)
    told = list(told_in(stage.folder))
    file = stage.folder.root / "sent"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    sent: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for row in rows:
        sent.setdefault(row["to"], []).append((row["id"], tuple(row["lines"])))
    lines = {
        to: [line for line, slice_name in told if to != "a" or slice_name == "a"] for to in WORD_OF.values()
    }
    assert cycle.facts is not None
    return Found(lines, sent, tuple(cycle.facts.outbox))


def told_in(folder: Folder) -> Iterator[tuple[str, str]]:
    """Every event on the branch as a line, and its slice."""
    names = repos.git(folder.fleet, "ls-tree", "-r", "--name-only", BRANCH, "events/").splitlines()
    for name in names:
        for row in events_from(repos.git(folder.fleet, "show", f"{BRANCH}:{name}").encode()):
            if row["reason"] not in OWN:
                about = row.get("slice") or row.get("request", "").partition("/")[0]
                yield f"{row['at']} {row['reason']} {row['message']}", about


class Sending(Walk):
    """The story with messages; `found` says what each kill left."""

    def __init__(self, root: Path, choose: Any) -> None:
        super().__init__(root, choose, Writes)
        self.stage.commit(FILES)

    def _next_life(self, kill: Kill) -> Any:
        old = self.stage
        stage = Stage(old.folder, 2, old.now, old.story, kind=Writes)
        stage.play()
        return found_in(stage)


def kills(number: int, kind: str) -> Iterator[str]:
    """Around the first push, and around those sends and pushes that the commit under test draws."""
    if kind in {"send", "push"}:
        yield from (way for way in ("before", "after") if number == 1 or drawn(f"{number} {kind} {way}", 14))


def test_whatever_dies_when_each_event_reaches_each_route(tmp_path: Path) -> None:
    walk = Sending(tmp_path, kills)
    walk.stage.play()
    assert found_in(walk.stage).wrong() == []
    assert walk.verdicts
    wrong = {str(kill): found.wrong() for kill, found in walk.verdicts.items()}  # type: ignore[attr-defined]
    assert {kill: what for kill, what in wrong.items() if what} == {}
    ids = [id_ for found in walk.verdicts.values() for id_, _ in found.sent["ops"]]  # type: ignore[attr-defined]
    assert len(ids) > 0


class Forgets(Mailroom):
    """Crosses out what it hands over at once: a planted bug."""

    def hand_over(self, facts: Any, wanted: Any, now: datetime) -> None:
        self._delivered |= {d.id for record in facts.outbox.values() for d in record.deliveries}
        super().hand_over(facts, wanted, now)


def test_planted_crossing_out_before_it_was_sent_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.Mailroom", Forgets)
    walk = Sending(tmp_path, lambda *_: iter(()))
    (tmp_path / "live" / "sent").write_text("")
    walk.stage.play()
    assert walk.stage.folder.root.exists()
    assert found_in(walk.stage).wrong() != []


class Carries(Reconciler):
    """Sends by real apprise, and waits for what is under way."""

    def __init__(self, ports: Ports, settings: Settings, writer: str, **more: Any) -> None:
        mailroom = Mailroom(Secrets(settings.state / "routes"), Courier())
        super().__init__(replace(ports, mailroom=mailroom), settings, writer, **more)

    def cycle(self, now: datetime) -> Cycle:
        """One cycle, and the end of what it sends: time stands still meanwhile."""
        done = super().cycle(now)
        self.has_sent()
        return done


def test_a_whole_story_arrives_at_a_webhook(tmp_path: Path) -> None:
    """Real repository, real apprise, real HTTP: each event once, under an id of its own delivery."""
    with webhook() as hook:
        repos.bare(tmp_path / "fleet.git", {})
        folder = Folder(tmp_path)
        walk_files = {**_story_files(), **FILES}
        repos.commit(folder.fleet, walk_files)
        secrets(tmp_path, {name: hook.url(f"/{word}") for name, word in WORD_OF.items()})
        stage = Stage(folder, 1, at(0), STORY, kind=Carries)
        stage.play()
        for _ in range(20):
            cycle = stage.controller.cycle(stage.now)
            if cycle.facts is not None and not cycle.facts.outbox:
                break
            stage.now = max(stage.now, cycle.wake)
        told = [line for line, _ in told_in(folder)]
        got = [c for c in hook.calls if c.path == "/ops"]
        assert sorted(line for c in got for line in c.body["message"].splitlines()) == sorted(told)
        assert len({c.delivery for c in got}) == len(got)
        assert {c.path for c in hook.calls} == {"/ops", "/digest", "/a"}


def _story_files() -> dict[str, str]:
    from tests.support.crash import FILES as BASE

    return dict(BASE)
