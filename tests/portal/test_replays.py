"""A change asked for again under its Idempotency-Key is answered as the first time, whatever is there by then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import repos
from tests.support.portal import Site
from tests.support.world import slice_

API = "/api/v1"
KEY = {"Idempotency-Key": "k1"}
BINDING = {
    "workspaceName": "vision",
    "clusters": [{"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}],
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, {"slices/old/slice.yaml": slice_("old")}, poll=timedelta(minutes=10))
    yield made
    made.close()


def twice(site: Site, method: str, path: str, body: dict[str, Any]) -> None:
    """The first answer comes again, and main stays as it is."""
    client = site.client("ada-owner")
    first = client.request(method, f"{API}/{path}", json=body, headers=KEY)
    assert first.status_code == 200, first.text
    assert first.json()["data"]["change"]["way"] == "pushed"
    tip = repos.tip(site.repo)
    again = client.request(method, f"{API}/{path}", json=body, headers=KEY)
    assert (again.status_code, again.json()) == (200, first.json())
    assert repos.tip(site.repo) == tip


def test_what_was_taken_away(site: Site) -> None:
    """A DELETE whose answer was lost is no 404 the second time."""
    twice(site, "DELETE", "slice-workspace", {"workspaceName": "old"})


def test_a_template_and_a_binding(site: Site) -> None:
    assert site.client().post(f"{API}/gpr-template-binding", json=BINDING).status_code == 200
    client = site.client()
    for path, body in (
        ("gpr-template-binding", {"bindingName": "vision"}),
        ("gpr-template", {"gprTemplateName": "small"}),
    ):
        first = client.request("DELETE", f"{API}/{path}", json=body, headers={"Idempotency-Key": path})
        assert first.status_code == 200, first.text
        again = client.request("DELETE", f"{API}/{path}", json=body, headers={"Idempotency-Key": path})
        assert (again.status_code, again.json()) == (200, first.json())


@pytest.mark.parametrize("names_it", ["id", "path"])
def test_a_request(site: Site, names_it: str) -> None:
    """Its id is told again, also when it was called by its file's name."""
    ask = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h", "name": "train"}
    filed = site.client().post(f"{API}/gpr", json=ask).json()["data"]
    twice(site, "DELETE", "gpr", {"gprId": filed["gprId"] if names_it == "id" else "vision/train"})
    other = {"gprId": "vision/other"}
    reused = site.client().request("DELETE", f"{API}/gpr", json=other, headers=KEY)
    assert reused.json()["error"]["errorKey"] == "IdempotencyKeyReused"


def test_a_release(site: Site) -> None:
    """The request is over by the time the release is asked for again."""
    site.file("vision/train", duration="1h")
    site.pass_time(5)
    body = {"gprId": "vision/train", "earlyRelease": True}
    client = site.client("bo-editor")
    first = client.put(f"{API}/gpr", json=body, headers=KEY)
    assert first.status_code == 200, first.text
    site.settle()
    again = client.put(f"{API}/gpr", json=body, headers=KEY)
    assert (again.status_code, again.json()) == (200, first.json())


def test_by_another_key_of_the_same_person(site: Site) -> None:
    """Who asks is the person: the id that is told again is that of the request that was filed."""
    ask = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h", "gprName": "Train"}
    first = site.client("bo-editor").post(f"{API}/gpr", json=ask, headers=KEY)
    again = site.client("bo-owner").post(f"{API}/gpr", json=ask, headers=KEY)
    assert first.status_code == 200, first.text
    assert again.json() == first.json()
    shown = site.client("bo-owner").get(f"{API}/gpr?gprId={again.json()['data']['gprId']}")
    assert shown.status_code == 200


def test_anothers_trailers(site: Site) -> None:
    """Somebody who pushes a commit with a victim's trailers neither refuses nor answers the victim's write."""
    ask = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h", "name": "train"}
    other = site.replica()
    made = site.client("bo-editor").post(f"{API}/gpr", json=ask, headers=KEY)
    assert made.status_code == 200, made.text
    message = repos.git(site.repo, "log", "-1", "--format=%B", "main")
    root = repos.git(site.repo, "rev-parse", "main^")
    forged = repos.git(
        site.repo, "-c", "user.name=Cy", "-c", "user.email=cy@example.com",
        "commit-tree", f"{root}^{{tree}}", "-p", root, "-m", message,
    )  # fmt: skip
    repos.git(site.repo, "update-ref", "refs/heads/main", forged)
    other.reader.refresh()
    again = other.client("bo-editor").post(f"{API}/gpr", json=ask, headers=KEY)
    assert again.status_code == 200, again.text
    assert again.json()["data"]["change"]["commit"] != forged
    assert site.main("slices/vision/gprs/train.yaml"), "it was made"
