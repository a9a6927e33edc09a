"""On a hosted forge pushes have a budget: what would wait is accepted, and followed on any replica (K1)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from portal.callers import Caller
from portal.errors import ApiError
from portal.writing import Landed
from tests.support.kube import eventually
from tests.support.portal import Replica, Site
from tests.support.wishes import landed, request_ids, submit, wish


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
