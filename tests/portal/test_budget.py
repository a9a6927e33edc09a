"""On a hosted forge pushes have a budget: what would wait is accepted, and followed on any replica (K1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from portal.http.errors import ApiError
from portal.identity.callers import Caller
from portal.views.view import View
from portal.writes.write_request import Landed, Tree, WriteRequest
from reconciler.store.store_port import Outcome
from tests.support import repos
from tests.support.kube import eventually
from tests.support.portal import Replica, Site, api_key
from tests.support.wishes import landed, request_ids, submit, wish
from tests.support.world import gpr_path, slice_


def test_accepted_and_followed(tmp_path: Path) -> None:
    site = Site(tmp_path, portal={"pushes_per_minute": 2})
    other = site.replica()
    try:
        for name in ("a", "b"):
            assert landed(submit(site.portal, wish(site, "bo-editor", f"vision/{name}"))[0]).way == "pushed"
        late = wish(site, "bo-editor", "vision/late")
        bad = wish(site, "bo-editor", "vision/bad", nodes=0)
        accepted, doomed = (landed(each) for each in submit(site.portal, late, bad))
        assert (accepted.way, accepted.commit) == ("accepted", "")
        bo, cy = site.portal.caller("bo-editor"), site.portal.caller("cy-editor")
        assert site.portal.writer.follow(accepted.id, bo) == accepted
        assert site.portal.writer.follow(accepted.id, cy) is None, "it is nobody else's"
        assert len(request_ids(site)) == 2
        site.clock.set(site.now + timedelta(seconds=61))
        site.portal.writer.wake()
        eventually(lambda: len(request_ids(site)) == 3, "the late one", 30)
        other.reader.refresh()
        for replica in (site.portal, other):
            found = eventually(partial(_pushed, replica, accepted.id, bo), "pushed", 30)
            assert found.id == accepted.id
            assert replica.writer.follow(accepted.id, cy) is None
        why = eventually(partial(_refusal, site.portal, doomed.id, bo), "the refusal", 30)
        assert "invalid" in why
        with other.client("bo-editor") as client:
            told = client.get(f"/api/v1/writes/{accepted.id}")
            assert told.json()["data"]["way"] == "pushed"
            assert client.get(f"/api/v1/writes/{'0' * 32}").status_code == 404
    finally:
        site.close()


def _refusal(replica: Replica, id_: str, caller: Caller) -> str:
    try:
        replica.writer.follow(id_, caller)
    except ApiError as error:
        return str(error)
    return ""


def _pushed(replica: Replica, id_: str, caller: Caller) -> Landed | None:
    found = replica.writer.follow(id_, caller)
    return found if found is not None and found.way == "pushed" else None


LATER = timedelta(seconds=61)


def waiting(site: Site, *names: str) -> list[Landed]:
    """The budget's last push, then these requests of bo's, which are accepted."""
    landed(submit(site.portal, wish(site, "ada-owner", "vision/first"))[0])
    wishes = [wish(site, "bo-editor", f"vision/{name}") for name in names]
    found = [landed(each) for each in submit(site.portal, *wishes)]
    assert [each.way for each in found] == ["accepted"] * len(names)
    return found


GONE: Mapping[str, tuple[Mapping[str, str | None], str]] = {
    "its key": ({"keys/bo-editor.yaml": None}, "no manifest in keys/ has this API key"),
    "its person": (
        {"slices/vision/slice.yaml": slice_("vision", members=[{"email": "cy@example.com"}])},
        "not a member of slice vision",
    ),
    "another's key": (
        {"keys/bo-editor.yaml": api_key("bo-editor").replace("bo@example.com", "olga@example.com")},
        "belongs to another person",
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_rights_are_those_of_the_push(tmp_path: Path, what: str) -> None:
    """Who lost the key or the membership while a write waited has no write any more."""
    site = Site(tmp_path, portal={"pushes_per_minute": 1}, poll=timedelta(minutes=10))
    try:
        (accepted,) = waiting(site, "late")
        bo = site.portal.caller("bo-editor")
        files, text = GONE[what]
        site.commit(files)
        site.clock.set(site.now + LATER)
        site.portal.writer.wake()
        why = eventually(partial(_refusal, site.portal, accepted.id, bo), "the refusal", 30)
        assert text in why
        assert site.main(gpr_path("vision/late")) is None
    finally:
        site.close()


def asking(site: Site, who: str, name: str) -> WriteRequest:
    """Somebody asks for what an admin merges."""
    return replace(wish(site, who, f"vision/{name}"), asks=True)


def branches(site: Site) -> list[str]:
    """Those that wait for a merge."""
    return repos.git(site.repo, "for-each-ref", "--format=%(refname)", "refs/heads/requests/").splitlines()


def test_proposals_keep_to_the_budget(tmp_path: Path) -> None:
    """Main is pushed first; branches are pushed with what is left of the minute, and the others are followed."""
    site = Site(tmp_path, portal={"pushes_per_minute": 3}, poll=timedelta(minutes=10))
    try:
        asked = [asking(site, "bo-editor", f"asked-{n}") for n in range(4)]
        *found, pushed = [landed(e) for e in submit(site.portal, *asked, wish(site, "cy-editor", "nlp/mine"))]
        assert pushed.way == "pushed"
        assert [each.way for each in found] == ["branch", "branch", "accepted", "accepted"]
        assert len(branches(site)) == 2
        site.clock.set(site.now + LATER)
        site.portal.writer.wake()
        eventually(lambda: len(branches(site)) == 4, "the others", 30)
        bo = site.portal.caller("bo-editor")
        told = eventually(partial(_branch, site.portal, found[-1].id, bo), "where it is", 30)
        assert told.branch.startswith("requests/")
    finally:
        site.close()


def test_nobody_fills_a_round_with_proposals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fetch a round, main first, and five branches of one caller: whoever comes later waits for no more."""
    site = Site(tmp_path, poll=timedelta(minutes=10))
    did: list[str] = []
    fetch, push = site.portal.store.fetch, site.portal.store.push

    def fetched(patterns: Sequence[str]) -> Mapping[str, str]:
        did.append("fetch")
        return fetch(patterns)

    def pushed(branch: str, new: str, expected: str | None) -> Outcome:
        did.append(branch.partition("/")[0])
        return push(branch, new, expected)

    monkeypatch.setattr(site.portal.store, "fetch", fetched)
    monkeypatch.setattr(site.portal.store, "push", pushed)
    try:
        asked = [asking(site, "bo-editor", f"asked-{n}") for n in range(12)]
        others = [asking(site, "ada-owner", "theirs"), wish(site, "cy-editor", "nlp/mine")]
        asyncio.run(_in_one_round(site, [*asked, *others]))
        assert did[:8] == ["main", "fetch", *["requests"] * 6], "five of bo's, and ada's"
        assert did[8:] == ["fetch", *["requests"] * 5, "fetch", *["requests"] * 2]
    finally:
        site.close()


async def _in_one_round(site: Site, wishes: Sequence[WriteRequest]) -> None:
    """All of them wait while another is made."""
    begun, are_there = threading.Event(), threading.Event()

    def make(_view: View, _tree: Tree) -> Mapping[str, bytes | None]:
        begun.set()
        are_there.wait(30)
        return {}

    async def last() -> None:
        are_there.set()

    first = asyncio.create_task(site.portal.writer.submit(WriteRequest(site.portal.caller(), "Look", make)))
    await asyncio.to_thread(begun.wait)
    await asyncio.gather(first, *map(site.portal.writer.submit, wishes), last())


def _branch(replica: Replica, id_: str, caller: Caller) -> Landed | None:
    found = replica.writer.follow(id_, caller)
    return found if found is not None and found.way == "branch" else None
