"""Wait times over HTTP: D2, and the same answers as the command gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from schemas.reading.units import format_instant
from tests.reconciler.cli.rig import egs
from tests.support.portal import Site
from tests.support.world import cluster


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Somebody runs, two wait, and the second cluster has another shape."""
    pool = {"name": "a100", "gpuShape": "A100-40GB", "gpusPerNode": 4, "memoryPerGpu": 40, "nodes": 3}
    made = Site(tmp_path_factory.mktemp("site"), {"clusters/west.yaml": cluster("west", pools=[pool])})
    made.file("nlp/runs", nodes=3, duration="3h")
    made.settle()
    made.file("nlp/waits", nodes=4, duration="2h", priority=150)
    made.file("vision/runs", nodes=1, duration="1h", clusters=["east"])
    made.pass_time(4)
    yield made
    made.close()


def quoted(site: Site, **sent: Any) -> Any:
    """The answers."""
    body = {"sliceName": "vision", "numberOfGPUs": 1, "numberOfGPUNodes": 1, "exitDuration": "1h"} | sent
    answer = site.client("bo-viewer").post("/api/v1/gpr/waittime", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["items"]


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        pytest.param({}, [], id="one node anywhere"),
        pytest.param({"numberOfGPUNodes": 4}, ["--nodes", "4"], id="all of a cluster"),
        pytest.param(
            {"exitDuration": "5h", "priority": 200}, ["--duration", "5h", "--priority", "200"], id="ahead"
        ),
        pytest.param({"gpuShape": "A100-40GB"}, ["--shape", "A100-40GB"], id="one shape"),
        pytest.param({"clusterName": "east"}, ["--cluster", "east"], id="one cluster"),
        pytest.param({"memoryPerGPU": 81920}, ["--memory", "80"], id="so much memory"),
        pytest.param({"numberOfGPUNodes": 9}, ["--nodes", "9"], id="more than there is"),
    ],
)
def test_quotes_are_those_of_the_command(site: Site, sent: dict[str, Any], typed: list[str]) -> None:
    """D2: the same pools in the same order, with the same starts, waits, prices and reasons."""
    base = {"--nodes": "1", "--gpus-per-node": "1", "--duration": "1h"}
    base |= dict(zip(typed[::2], typed[1::2], strict=True))
    words = [word for option in base.items() for word in option]
    done = egs(
        "wait",
        "--slice",
        "vision",
        *words,
        "--repo",
        site.repo,
        "--now",
        format_instant(site.now),
        "-o",
        "json",
    )
    rows = done.json
    shared = {
        "clusterName": "cluster",
        "pool": "pool",
        "gpuShape": "gpuShape",
        "gpusPerNode": "gpusPerNode",
        "memoryPerGPU": "memoryPerGpu",
        "freeNodes": "freeNodes",
        "estimatedWaitSeconds": "estimatedWaitSeconds",
        "needsApproval": "needsApproval",
        "pricePerGpuHour": "pricePerGpuHour",
    }
    found = quoted(site, **sent)
    assert [{mine: one[mine] for mine in shared} for one in found] == [
        {mine: row[theirs] for mine, theirs in shared.items()} for row in rows
    ]
    assert [one["estimatedStartTime"] or None for one in found] == [row["estimatedStartTime"] for row in rows]
    assert [one["reason"] or None for one in found] == [row["reason"] for row in rows]


def test_every_shape_and_cluster_is_answered(site: Site) -> None:
    """D2: pick one before filing."""
    found = quoted(site)
    assert {(one["clusterName"], one["gpuShape"]) for one in found} == {
        ("east", "H100-80GB"),
        ("west", "A100-40GB"),
    }
    assert found[0]["estimatedStartTime"] <= found[1]["estimatedStartTime"]


def test_what_is_filed_then_starts_as_quoted(site: Site) -> None:
    """D2: a quote is what one gets."""
    body = {"numberOfGPUNodes": 2, "exitDuration": "2h", "clusterName": "west", "priority": 140}
    (answer,) = quoted(site, **body)
    ask = {"sliceName": "vision", "numberOfGPUs": 1, "name": "asked", **body}
    client = site.client("bo-editor")
    assert client.post("/api/v1/gpr", json=ask).status_code == 200
    site.settle()
    data = client.get("/api/v1/gpr?gprId=vision/asked").json()["data"]
    assert data["estimatedStartTime"] == answer["estimatedStartTime"]


@pytest.mark.parametrize(
    ("sent", "status", "word"),
    [
        pytest.param({"sliceName": "nlp"}, 404, "nlp", id="another's workspace"),
        pytest.param({"exitDuration": "soon"}, 422, "exitDuration", id="no duration"),
        pytest.param({"clusterName": "north"}, 422, "north", id="a cluster of nobody"),
        pytest.param({"numberOfGPUNodes": 0}, 422, "numberOfGPUNodes", id="no node"),
        pytest.param({"templateName": "huge"}, 422, "huge", id="a template of nobody"),
    ],
)
def test_what_cannot_be_asked(site: Site, sent: dict[str, Any], status: int, word: str) -> None:
    """A7."""
    body = {"sliceName": "vision", "numberOfGPUs": 1, "numberOfGPUNodes": 1, "exitDuration": "1h"} | sent
    answer = site.client("bo-viewer").post("/api/v1/gpr/waittime", json=body)
    assert (answer.status_code, word in answer.json()["message"]) == (status, True), answer.text
