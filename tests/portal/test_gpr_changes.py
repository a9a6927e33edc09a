"""What may become of a request in each state, over HTTP: K2 and the exceptions of the vendor's SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.portal import Site

FILE = "slices/vision/gprs/waits.yaml"
COMMENTED = """# for the paper
apiVersion: egs.dev/v1alpha1
kind: GPR
metadata: {name: waits}
spec:
  duration: 1h   # short on purpose
  slice: vision
  nodes: 1
  priority: 90
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`vision/runs` has its nodes, `vision/waits` waits for it, `vision/over` is over, nobody has seen `vision/new`."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/over", nodes=1, duration="1m")
    made.settle()
    made.pass_time(15)
    made.file("vision/runs", nodes=1, duration="8h")
    made.settle()
    made.commit({FILE: COMMENTED}, "Bo <bo@example.com>")
    made.pass_time(5)
    made.file("vision/new", nodes=1)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("method", "body", "status", "key"),
    [
        pytest.param(
            "PUT", {"gprId": "vision/runs", "priority": 5}, 409, "GpuAlreadyProvisioned", id="its priority"
        ),
        pytest.param(
            "PUT", {"gprId": "vision/runs", "gprName": "x"}, 409, "GpuAlreadyProvisioned", id="its name"
        ),
        pytest.param(
            "PUT",
            {"gprId": "vision/runs", "numberOfGPUNodes": 2},
            409,
            "GpuAlreadyProvisioned",
            id="its size",
        ),
        pytest.param(
            "DELETE", {"gprId": "vision/runs"}, 409, "GpuAlreadyProvisioned", id="cancelling what runs"
        ),
        pytest.param(
            "PUT",
            {"gprId": "vision/waits", "earlyRelease": True},
            409,
            "NotProvisioned",
            id="releasing what waits",
        ),
        pytest.param(
            "PUT",
            {"gprId": "vision/new", "earlyRelease": True},
            409,
            "NotProvisioned",
            id="releasing what nobody saw",
        ),
        pytest.param(
            "PUT",
            {"gprId": "vision/over", "earlyRelease": True},
            409,
            "GpuAlreadyReleased",
            id="releasing twice",
        ),
        pytest.param(
            "PUT", {"gprId": "vision/over", "priority": 5}, 409, "GpuAlreadyReleased", id="what is over"
        ),
        pytest.param(
            "DELETE", {"gprId": "vision/over"}, 409, "GpuAlreadyReleased", id="cancelling what is over"
        ),
        pytest.param(
            "PUT", {"gprId": "vision/waits", "priority": 90}, 409, "Unchanged", id="what it says already"
        ),
        pytest.param("PUT", {"gprId": "vision/waits"}, 422, "BadParameters", id="nothing at all"),
        pytest.param(
            "PUT", {"gprId": "vision/waits", "sliceName": "nlp"}, 422, "BadParameters", id="its workspace"
        ),
        pytest.param(
            "PUT",
            {"gprId": "vision/waits", "clusterName": "north"},
            422,
            "BadParameters",
            id="a cluster of nobody",
        ),
        pytest.param("PUT", {"gprId": "vision/none", "priority": 5}, 404, "NotFound", id="what is not there"),
    ],
)
def test_a_state_refuses_with_its_own_key(
    site: Site, method: str, body: dict[str, Any], status: int, key: str
) -> None:
    """K2: unknown, in the wrong state and not allowed are told apart."""
    before = site.log()[0]
    answer = site.client("bo-editor").request(method, "/api/v1/gpr", json=body)
    assert (answer.status_code, answer.json()["error"]["errorKey"]) == (status, key), answer.text
    assert site.log()[0] == before


@pytest.mark.parametrize("who", ["bo-viewer", "ada-viewer"])
def test_who_only_looks_on_changes_nothing(site: Site, who: str) -> None:
    """B10: seen and not allowed is 403."""
    client, body = site.client(who), {"gprId": "vision/waits", "priority": 5}
    assert client.put("/api/v1/gpr", json=body).status_code == 403
    assert client.delete("/api/v1/gpr?gprId=vision/waits").status_code == 403
    ask = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h"}
    assert client.post("/api/v1/gpr", json=ask).status_code == 403


def test_an_edit_and_a_cancel_keep_comments_and_order(site: Site) -> None:
    """A7, K2: what people wrote stays as they wrote it."""
    client = site.client("bo-editor")
    done = client.put("/api/v1/gpr", json={"gprId": "vision/waits", "priority": 180, "gprName": "Soon"})
    assert done.status_code == 200, done.text
    assert (
        site.main(FILE)
        == COMMENTED.replace("priority: 90", "priority: 180").rstrip() + "\n  displayName: Soon"
    )
    assert site.log()[0].endswith("|Edit vision/waits: gprName, priority")
    site.settle()
    id_ = client.get("/api/v1/gpr?gprId=vision/waits").json()["data"]["gprId"]
    assert client.delete(f"/api/v1/gpr?gprId={id_}").status_code == 200
    assert (site.main(FILE) or "").endswith("\n  earlyRelease: true")
    again = client.delete(f"/api/v1/gpr?gprId={id_}")
    assert (again.status_code, again.json()["error"]["errorKey"]) == (409, "GpuAlreadyReleased")
    site.settle()
    assert client.get(f"/api/v1/gpr?gprId={id_}").json()["data"]["phase"] == "Cancelled"
    ask = {"name": "waits", "sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h"}
    taken = client.post("/api/v1/gpr", json=ask)
    assert taken.json()["error"]["errorKey"] == "GprAlreadyExists"
    assert "vision/waits is Cancelled and never runs again; choose another name" in taken.json()["message"]


def test_what_runs_may_still_be_extended_and_released_once(site: Site) -> None:
    """K2, D13: its terms stay, its end may come sooner or later."""
    client = site.client("bo-editor")
    assert client.put("/api/v1/gpr", json={"gprId": "vision/runs", "extend": "10m"}).status_code == 200
    release = {"gprId": "vision/runs", "earlyRelease": True}
    assert client.put("/api/v1/gpr", json=release).status_code == 200
    assert "earlyRelease: true" in (site.main("slices/vision/gprs/runs.yaml") or "")
    again = client.put("/api/v1/gpr", json=release)
    assert (again.status_code, again.json()["error"]["errorKey"]) == (409, "GpuAlreadyReleased")
