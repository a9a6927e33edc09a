"""Requests over HTTP through their whole life, with the real controller in simulated time: K2, D14, D16, H17."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.vendor.gpr_answers import PROVISIONING
from schemas.status.gpr_status import Phase
from tests.support.portal import Site
from tests.support.world import slice_

ASK: dict[str, Any] = {
    "gprName": "gpt-4o-workload",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 2,
    "memoryPerGPU": 81920,
    "instanceType": "",
    "gpuShape": "H100-80GB",
    "exitDuration": "0d6h0m",
    "priority": 101,
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.settle()
    yield made
    made.close()


def call(site: Site, method: str, path: str, who: str = "bo-editor", **more: Any) -> Any:
    """The answer's data; it must be a success."""
    answer = site.client(who).request(method, f"/api/v1/{path}", **more)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def stands(site: Site, id_: str, who: str = "bo-viewer") -> Any:
    """How a request stands."""
    return call(site, "GET", "gpr", who, params={"gprId": id_})


def test_a_request_is_filed_queued_provisioned_and_released(site: Site) -> None:
    """K2, D14, D16, H17: a story over HTTP alone."""
    site.file("nlp/before", nodes=3, duration="1h")
    site.settle()
    filed = call(site, "POST", "gpr", json=ASK)
    id_ = filed["gprId"]
    assert filed["change"]["way"] == "pushed"
    assert site.log()[0].startswith("bo <bo@example.com>|")

    unseen = stands(site, id_)
    assert (unseen["status"]["provisioningStatus"], unseen["phase"], unseen["reason"]) == (
        "Pending",
        "Filed",
        "NotSeenYet",
    )
    for phase, is_there in (("Filed", True), ("PendingApproval", False)):
        rows = call(site, "GET", "gpr/list", params={"sliceName": "vision", "phase": phase})["items"]
        assert (id_ in {row["gprId"] for row in rows}) is is_there
    assert unseen["name"] == filed["name"]

    site.settle()
    queued = stands(site, id_)
    assert queued["status"]["provisioningStatus"] == "Queued"
    assert (queued["rank"], queued["position"]) == (1, 1)
    assert queued["estimatedStartTime"] == "2026-11-21T09:09:00Z"
    assert queued["estimatedWaitTime"] == "1h9m0s"
    assert queued["exitDuration"] == "6h0m0s"
    assert queued["message"] == "It is number 1 in the queue and starts at 2026-11-21T09:09:00Z in east/h100."
    assert (queued["memoryPerGPU"], queued["gprName"]) == (80, "gpt-4o-workload")
    assert (queued["multiNode"], queued["dedicatedNodes"], queued["status"]["internalState"]) == (
        True,
        True,
        "",
    )

    site.pass_time(70)
    runs = stands(site, id_)
    assert (runs["phase"], runs["status"]["provisioningStatus"]) == ("Provisioned", "Successful")
    assert runs["status"]["internalState"] == "Reserved"
    assert runs["status"]["numGPUsAllocated"] == 16
    assert len(runs["status"]["nodes"]) == 2
    assert runs["status"]["startTimestamp"] == "2026-11-21T09:04:30Z"  # nodes were clean sooner than promised
    assert runs["endTime"] == "2026-11-21T15:04:30Z"

    site.pass_time(54.5)
    assert stands(site, id_)["status"]["cost"] == "40.00 USD"  # 16 GPUs at 2.50 for an hour
    released = call(site, "PUT", "gpr", json={"gprId": id_, "earlyRelease": True})
    assert released["gprId"] == id_
    site.pass_time(20)
    over = stands(site, id_)
    assert (over["phase"], over["status"]["provisioningStatus"]) == ("Completed", "Complete")
    assert over["status"]["internalState"] == "Released"
    assert over["earlyRelease"] is True
    assert over["status"]["completionTimestamp"] > over["status"]["startTimestamp"]
    assert over["status"]["cost"] == "40.00 USD"


def test_every_phase_has_the_vendors_word() -> None:
    """D14: none is missing."""
    assert set(PROVISIONING) == set(Phase)


def test_a_name_for_the_change_gives_the_same_id_again(site: Site) -> None:
    """A7: who asks again after a lost answer files nothing twice."""
    named = {"Idempotency-Key": "pipeline-7"}
    one, other = (call(site, "POST", "gpr", json=ASK, headers=named) for _ in range(2))
    assert one["gprId"] == other["gprId"]
    assert one["change"]["commit"] == other["change"]["commit"]
    assert call(site, "POST", "gpr", json=ASK)["gprId"] != one["gprId"]


def test_lists_have_what_the_caller_may_see(site: Site) -> None:
    """D15, B10."""
    site.file("nlp/theirs")
    site.file("vision/a")
    site.file("vision/b", duration="2h")
    site.settle()

    def names(who: str, **params: str) -> list[str]:
        return [one["name"] for one in call(site, "GET", "gpr/list", who, params=params)["items"]]

    assert names("bo-viewer") == ["vision/a", "vision/b"]
    assert names("ada-viewer") == ["nlp/theirs", "vision/a", "vision/b"]
    assert names("ada-owner", sliceName="nlp") == ["nlp/theirs"]
    assert names("bo-viewer", phase="Queued") == ["vision/b"]
    first = call(site, "GET", "gpr/list", "ada-owner", params={"limit": 2})
    assert [one["name"] for one in first["items"]] == ["nlp/theirs", "vision/a"]
    assert names("ada-owner", cursor=first["next"]) == ["vision/b"]


@pytest.mark.parametrize(
    ("method", "path", "who", "status"),
    [
        pytest.param("GET", "gpr?gprId=nlp/theirs", "bo-editor", 404, id="another's request is not there"),
        pytest.param("GET", "gpr/why?gprId=nlp/theirs", "bo-editor", 404, id="nor its reasons"),
        pytest.param("GET", "gpr/list?sliceName=nlp", "bo-editor", 404, id="nor its workspace"),
        pytest.param("DELETE", "gpr?gprId=nlp/theirs", "bo-editor", 404, id="nor can it be taken back"),
        pytest.param("GET", "gpr?gprId=gpr-00000000-0000", "ada-owner", 404, id="an id of nothing"),
        pytest.param("DELETE", "gpr", "bo-editor", 422, id="nobody named"),
        pytest.param("GET", "gpr/list?phase=Sleeping", "bo-editor", 422, id="a phase that does not exist"),
    ],
)
def test_what_is_not_for_the_caller(site: Site, method: str, path: str, who: str, status: int) -> None:
    """B10: 404, so that a guess tells nothing."""
    site.file("nlp/theirs")
    site.settle()
    assert site.client(who).request(method, f"/api/v1/{path}").status_code == status


def test_reasons_name_no_request_of_others(site: Site) -> None:
    """B10, D15: a caller learns that somebody is ahead, and not who."""
    site.file("nlp/secret", nodes=4, duration="5h")
    site.settle()
    site.file("vision/mine", nodes=3, clusters=["east"])
    site.settle()
    mine = call(site, "GET", "gpr/why", params={"gprId": "vision/mine"})
    theirs = call(site, "GET", "gpr/why", "ada-owner", params={"gprId": "vision/mine"})
    assert "secret" in " ".join(theirs["reasons"])
    assert "secret" not in " ".join(mine["reasons"])
    assert "nother workspace's request" in " ".join(mine["reasons"])
    assert mine["phase"] == "Queued"


def test_a_bound_workspace_gets_its_default_template(tmp_path: Path) -> None:
    """C9: who says neither how much nor by which template."""
    binding = {
        "bindings/vision.yaml": (
            "apiVersion: egs.dev/v1alpha1\nkind: GPRTemplateBinding\nmetadata: {name: vision}\n"
            "spec: {clusters: [{cluster: east, templates: [small], default: small}]}\n"
        )
    }
    site = Site(tmp_path, binding)
    try:
        site.settle()
        filed = call(site, "POST", "gpr", json={"sliceName": "vision", "gprName": "small"})
        assert "template: small" in (site.main(f"slices/{filed['name'].replace('/', '/gprs/')}.yaml") or "")
        site.settle()
        assert stands(site, filed["gprId"])["numberOfGPUNodes"] == 1
    finally:
        site.close()


def test_without_a_binding_it_is_said_what_is_missing(site: Site) -> None:
    """A7."""
    answer = site.client("bo-editor").post("/api/v1/gpr", json={"sliceName": "vision", "exitDuration": "1h"})
    assert answer.status_code == 422
    assert "numberOfGPUNodes" in answer.json()["message"]


def test_a_slice_that_forbids_it_refuses_the_request(tmp_path: Path) -> None:
    """A7: the same rules as for a file, before anything is written."""
    short = slice_("vision", ("east", "west"), limits={"maxDuration": "1h"})
    site = Site(tmp_path, {"slices/vision/slice.yaml": short})
    try:
        site.settle()
        answer = site.client("bo-editor").post("/api/v1/gpr", json=ASK)
        assert answer.status_code == 422
        assert "DurationTooLong" in answer.json()["message"]
        assert len(site.log()) == 1
    finally:
        site.close()


def test_the_cost_stands_while_nodes_are_taken_back(tmp_path: Path) -> None:
    """D16, H17: it neither falls to nothing when the lease ends, nor grows until the nodes are clean."""
    site = Site(tmp_path, poll=timedelta(minutes=10))
    try:
        site.settle()
        site.file("vision/train", duration="2h", clusters=["east"])
        site.pass_time(64)
        before = stands(site, "vision/train")["status"]["cost"]
        call(site, "PUT", "gpr", json={"gprId": "vision/train", "earlyRelease": True})
        site.settle()
        ended = site.now
        for _ in range(2):
            found = stands(site, "vision/train")
            assert (found["phase"], found["status"]["cost"]) == ("Releasing", before)
            (row,) = call(site, "GET", "workloads")["items"]
            (used,) = call(site, "GET", "usage")["items"]
            assert (row["cost"], f"{used['cost']:.2f} USD", used["months"]) == (before, before, [])
            site.clock.set(site.now + timedelta(minutes=3))
        site.clock.set(ended)
        site.pass_time(10)
        over = stands(site, "vision/train")
        (used,) = call(site, "GET", "usage")["items"]
        assert (over["phase"], over["status"]["cost"], f"{used['cost']:.2f} USD") == (
            "Completed",
            before,
            before,
        )
    finally:
        site.close()
