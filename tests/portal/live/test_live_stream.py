"""The one stream of a browser: new commits, what changed, silence of the repository, ended rights (G4, D14, K1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.identity.callers import Caller
from portal.identity.key_lookup import caller_by_key
from portal.live import live_stream
from portal.live.live_changes import id_of
from portal.live.live_stream import LiveStream
from portal.views.view import View
from schemas.documents.apikey import digest_of
from tests.support.portal import KEYS, Site, api_key
from tests.support.world import slice_

POLL = timedelta(seconds=5)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, poll=POLL)
    made.settle()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEEP_ALIVE_S", "WHILE_STALE_S"):
        monkeypatch.setattr(live_stream, name, 0.01)


def stream(site: Site, key: str = "bo-viewer", last: str = "") -> LiveStream:
    def recognise(view: View) -> Caller:
        return caller_by_key(view, digest_of(KEYS[key]), site.now)

    return LiveStream(site.portal.reader, recognise, last)


def events(part: bytes) -> list[tuple[str, str, dict[str, Any]]]:
    """Kind, id and data of each event in these bytes."""
    found = []
    for block in part.decode().split("\n\n"):
        if block:
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            found.append((lines["event"], lines.get("id", ""), json.loads(lines["data"])))
    return found


async def next_but_beats(told: AsyncIterator[bytes]) -> list[tuple[str, str, dict[str, Any]]]:
    async for part in told:
        if found := [one for one in events(part) if one[0] != "beat"]:
            return found
    return []


async def told_after(live: LiveStream, *acts: Any) -> list[Any]:
    """What is said at first, then after each act."""
    told = live.told()
    found: list[Any] = [events(await anext(told))]
    for act in acts:
        await asyncio.to_thread(act)
        found.append(await next_but_beats(told))
    return found


def test_a_commit_is_told_once_with_what_changed_for_the_caller(site: Site) -> None:
    """D14: a request of another workspace changes the calendar and is not named."""

    def mine() -> None:
        site.file("vision/train")

    def theirs() -> None:
        site.file("nlp/secret")

    first, own, other = asyncio.run(told_after(stream(site), mine, theirs))
    assert [(kind, said["all"]) for kind, _, said in first] == [("commit", True)]
    ((kind, id_, said),) = own
    assert (kind, said["all"], said["requests"], said["calendar"]) == (
        "commit",
        False,
        ["vision/train"],
        True,
    )
    assert id_.endswith(f".{said['main']}")
    ((_, newest, said),) = other
    assert newest == id_of(site.view)
    assert (said["requests"], said["nodes"], said["calendar"]) == ([], [], True)
    assert "secret" not in json.dumps(other)


def test_an_admin_is_told_of_every_workspace(site: Site) -> None:
    def both() -> None:
        site.file("nlp/tune")
        site.settle()

    _, filed = asyncio.run(told_after(stream(site, "ada-owner"), both))
    names = filed[0][2]["requests"]
    assert filed[0][2]["all"] or "nlp/tune" in names


def test_nodes_that_are_taken_are_named(site: Site) -> None:
    site.file("nlp/tune")

    _, started = asyncio.run(told_after(stream(site, "bo-viewer"), site.settle))
    ((_, _, said),) = started
    assert said["nodes"]
    assert all(name.startswith(("east/", "west/")) for name in said["nodes"])
    assert said["requests"] == []


def test_after_a_restart_nothing_comes_twice_and_nothing_is_missing(site: Site) -> None:
    """Another replica knows nothing of the stream before; the id says what the client has."""
    has = id_of(site.view)
    replica = site.replica()
    resumed = replace(stream(site, last=has), reads=replica.reader)
    first, after = asyncio.run(told_after(resumed, lambda: site.file("vision/train")))
    assert [kind for kind, _, _ in first] == ["beat"]
    assert after[0][2]["requests"] == ["vision/train"]
    (missed,) = asyncio.run(told_after(replace(stream(site, last=has), reads=replica.reader)))
    assert [(kind, id_, said["all"]) for kind, id_, said in missed] == [("commit", id_of(site.view), True)]


def test_a_silent_repository_is_told_and_so_is_its_return(site: Site) -> None:
    """G4: after three polls, in a sentence; it answers again without a reload, and nothing else is said meanwhile."""

    def silent() -> None:
        site.silent_s = 16

    def long_silent() -> None:
        site.silent_s = 120  # from now on every other answer is refused

    first, quiet = asyncio.run(told_after(stream(site), silent))
    assert first[0][0] == "commit"
    ((kind, _, said),) = quiet
    assert kind == "stale"
    assert said["why"].startswith("The repository has not answered since")
    assert said["why"].endswith(".")
    (again,) = asyncio.run(told_after(stream(site, last=id_of(site.view))))
    assert [kind for kind, _, _ in again] == ["stale", "beat"]

    async def back() -> list[Any]:
        told = stream(site, last=id_of(site.view)).told()
        await anext(told)
        long_silent()
        beats = [events(await anext(told)) for _ in range(2)]
        await asyncio.to_thread(site.refresh)
        return [*beats, await next_but_beats(told)]

    beat, _, returned = asyncio.run(back())
    assert [(kind, said["age"]) for kind, _, said in beat] == [("beat", 120)]
    assert [kind for kind, _, _ in returned] == ["fresh"]


def test_a_revoked_key_ends_the_stream(site: Site) -> None:
    """B10: with the commit that revokes it; nothing of that commit is told."""
    revoked = api_key("bo-viewer").replace("spec:", "spec:\n  revoked: true")

    _, last = asyncio.run(told_after(stream(site), lambda: site.commit({"keys/bo-viewer.yaml": revoked})))
    ((kind, id_, said),) = last
    assert (kind, id_, said["status"]) == ("end", "", 401)


def test_new_rights_make_everything_new(site: Site) -> None:
    """Whoever is taken into another workspace sees more of what has not changed."""

    def joins() -> None:
        members = [{"email": "cy@example.com"}, {"email": "bo@example.com"}]
        site.commit({"slices/nlp/slice.yaml": slice_("nlp", members=members)})
        site.settle()

    _, told = asyncio.run(told_after(stream(site, "bo-owner"), joins))
    assert told[0][2]["all"]


def test_callers_who_see_the_same_share_the_bytes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: a commit is looked through once for all members of a workspace, and once for all admins."""
    made: list[int] = []
    changed = live_stream._changed

    def counted(before: View, view: View, caller: Caller, calendar: bool) -> bytes:
        made.append(1)
        return changed(before, view, caller, calendar)

    monkeypatch.setattr(live_stream, "_changed", counted)

    async def story() -> None:
        keys = ["bo-viewer"] * 20 + ["bo-editor"] * 20 + ["ada-owner"] * 5
        all_told = [stream(site, key, id_of(site.view)).told() for key in keys]
        for told in all_told:
            await anext(told)
        await asyncio.to_thread(site.file, "vision/train")
        parts = await asyncio.gather(*(next_but_beats(told) for told in all_told))
        assert {json.dumps(part) for part in parts} == {json.dumps(parts[0])}

    asyncio.run(story())
    assert len(made) == 2


def test_the_end_of_the_process_is_no_end_of_the_login(site: Site) -> None:
    _, last = asyncio.run(told_after(stream(site), site.portal.reader.end))
    ((kind, _, said),) = last
    assert (kind, said["status"]) == ("end", 503)
