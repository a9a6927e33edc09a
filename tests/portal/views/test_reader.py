"""The newest view, how old it is, and who is woken by a newer one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from portal.http.errors import ApiError
from portal.http.sse import StreamEvent, heard
from portal.views.view import View
from reconciler.settings import Trust
from tests.support import repos
from tests.support.machinekeys import line, private_text
from tests.support.portal import KEYS, Site
from tests.support.world import START, gpr, gpr_path, project, slice_


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_a_view_is_one_commit(site: Site) -> None:
    """Main and status as they were fetched; a look that brings nothing new leaves the very same view."""
    site.file("vision/train")
    site.settle()
    first = site.view
    assert first.main == repos.tip(site.repo)
    assert first.status == repos.tip(site.repo, "egs/status")
    assert first.facts.requests["vision/train"].uid in first.ids
    site.clock.set(site.now + timedelta(seconds=30))
    site.refresh()
    assert site.view is first
    assert (site.portal.reader.fetched, site.portal.reader.age_s) == (site.now, 0)


def test_before_any_controller(site: Site) -> None:
    """Main counts from the beginning; what is filed is seen before anybody has answered it."""
    site.file("vision/train")
    assert site.view.status == ""
    found = site.view.request("vision/train")
    assert found is not None
    assert found[1] is None


def test_a_push_behind_the_controllers_back(site: Site) -> None:
    """What main has that the controller has not seen is in the next view."""
    site.settle()
    site.file("vision/train")
    found = site.view.request("vision/train")
    assert found is not None
    assert found[1] is None


def test_a_main_that_breaks(site: Site) -> None:
    """A broken project.yaml leaves the last good one in force, and is told among the problems."""
    site.settle()
    site.commit({"project.yaml": "nonsense: ["})
    assert site.view.wanted.project.admins[0].email == "ada@example.com"
    assert any(problem.file == "project.yaml" for problem in site.view.problems)


def test_rights_follow_main(site: Site) -> None:
    """A member who is taken out of the slice has lost it with the next view (B7)."""
    assert "vision" in site.portal.caller("bo-editor").actor.member_of
    people = [{"email": "cy@example.com"}]
    site.commit({"slices/vision/slice.yaml": slice_("vision", ("east", "west"), members=people)})
    site.settle()
    assert "vision" not in site.portal.caller("bo-editor").actor.member_of
    site.commit({"project.yaml": project(admins=[{"email": "olga@example.com"}])})
    site.settle()
    assert not site.portal.caller("ada-owner").is_admin


def test_a_main_that_is_judged(tmp_path: Path) -> None:
    """Where main is verified nothing is served before a controller has judged it."""
    (tmp_path / "trust").mkdir(parents=True)
    (tmp_path / "trust" / "allowed_signers").write_text(line("controller") + "\n")
    (tmp_path / "key").write_bytes(private_text("controller"))
    (tmp_path / "key").chmod(0o600)
    site = Site(tmp_path / "site", trust=Trust("signature", tmp_path / "trust", tmp_path / "key"))
    try:
        with pytest.raises(ApiError, match="verified"):
            _ = site.view
        site.settle()
        assert site.view.facts.trust is not None
        site.commit({gpr_path("vision/stranger"): gpr("vision", "stranger")})
        assert site.view.request("vision/stranger") is None
    finally:
        site.close()


@pytest.mark.parametrize(
    ("poll", "good_s", "bad_s"),
    [
        pytest.param(timedelta(seconds=5), 60, 61, id="a minute whatever the poll is"),
        pytest.param(timedelta(minutes=10), 1800, 1801, id="three polls where those are longer"),
    ],
)
def test_what_is_too_old_opens_no_door(tmp_path: Path, poll: timedelta, good_s: int, bad_s: int) -> None:
    """Nobody knows who may what after so long: 503 that says since when, until the remote answers again."""
    site = Site(tmp_path, poll=poll)
    away = site.repo.with_name("away")
    with site.client("bo-editor") as client:
        shutil.move(site.repo, away)
        site.silent_s = good_s
        site.clock.set(START + timedelta(days=1))
        site.refresh()
        assert client.get("/api/v1/auth").status_code == 200
        site.silent_s = bad_s
        key = {"apiKey": KEYS["bo-editor"]}
        for answer in (
            client.get("/api/v1/auth"),
            client.post("/api/v1/auth", json=key),
            client.get("/api/v1/queue"),
        ):
            assert (answer.status_code, answer.json()["error"]["errorKey"]) == (503, "Unavailable")
            assert answer.headers["Retry-After"] == "5"
            told = (
                f"has not answered since {START:%Y-%m-%dT%H:%M:%SZ}, for {bad_s} s; the portal's log says why"
            )
            assert told in answer.json()["message"]
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        shutil.move(away, site.repo)
        site.refresh()
        assert client.get("/api/v1/auth").headers["Age"] == "0"
    site.close()


def test_a_stream_of_what_is_too_old_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a stream that is open go on for a key that may be revoked by now."""
    monkeypatch.setattr("portal.http.sse.KEEP_ALIVE_S", 0.01)

    async def story() -> list[bytes]:
        stream = heard(site.portal.reader, lambda view: [], "")
        first = await anext(stream)
        site.silent_s = 61
        return [first] + [part async for part in stream]

    first, last = asyncio.run(story())
    assert first == b": keep-alive\n\n"
    assert b"event: error\ndata: Unavailable: the repository has not answered since" in last


def test_who_waits_is_woken(site: Site) -> None:
    """A newer view wakes whoever waits for one; without news they get the same again."""

    async def story() -> tuple[View, View]:
        first = site.view
        same = await site.portal.reader.newer(first, 0.01)
        waiting = asyncio.create_task(site.portal.reader.newer(first, 60))
        await asyncio.sleep(0)
        await asyncio.to_thread(site.file, "vision/train")
        return same, await waiting

    first = site.view
    same, newer = asyncio.run(story())
    assert same is first
    assert newer is site.view is not first


def test_a_stream(site: Site) -> None:
    """D14: what a view says at once, then what is another; the end of the process ends it."""

    def tell(view: View) -> list[StreamEvent]:
        return [StreamEvent(key, "gpr", key) for key in sorted(view.wanted.filed)]

    async def story() -> list[bytes]:
        stream = heard(site.portal.reader, tell, "")
        parts = [await anext(stream)]
        for name in ("a", "b"):
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            await asyncio.to_thread(site.file, f"vision/{name}")
            parts.append(await waiting)
        site.portal.reader.end()
        return parts + [part async for part in stream]

    site.settle()
    told = asyncio.run(story())
    status = site.view.status
    assert told[0] == b": keep-alive\n\n"
    assert told[1] == f"id: {status}\nevent: gpr\ndata: vision/a\n\n".encode()
    assert told[2] == f"id: {status}\nevent: gpr\ndata: vision/b\n\n".encode(), "and not a again"
    assert told[3].startswith(b"retry:")


def test_a_stream_that_goes_on(site: Site) -> None:
    """Last-Event-ID of the newest commit: nothing is told twice; a caller who may no more hears that and the end."""
    site.settle()

    def tell(view: View) -> list[StreamEvent]:
        return [StreamEvent("x", "gpr", "said")]

    def never(view: View) -> list[StreamEvent]:
        raise ApiError(403, "Forbidden", "no more")  # type: ignore[arg-type]

    async def first(last: str) -> bytes:
        return await anext(heard(site.portal.reader, tell, last))

    async def all_of(tell_: object) -> list[bytes]:
        return [part async for part in heard(site.portal.reader, never, "")]

    assert asyncio.run(first(site.view.status)) == b": keep-alive\n\n"
    assert b"data: said" in asyncio.run(first("another"))
    (last,) = asyncio.run(all_of(never))
    assert b"event: error\ndata: Forbidden: no more" in last
