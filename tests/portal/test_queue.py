"""The queue, the plan, inventory and what runs over HTTP: D14, D15, G5, H16, H17, A5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from schemas.reading.units import format_instant
from tests.reconciler.cli.rig import egs
from tests.support.portal import Site
from tests.support.world import cluster, slice_


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Each workspace runs one and waits with others; nlp may use the first cluster alone."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("nlp/runs", nodes=2, duration="3h")
    made.file("vision/runs", nodes=1, duration="2h", model={"name": "llama", "parameters": {"rank": "16"}})
    made.settle()
    made.file("nlp/first", nodes=2, priority=150)
    made.file("vision/second", nodes=2, priority=140, clusters=["east"])
    made.file("vision/third", nodes=1, duration="2h", priority=90)
    made.file("vision/over", nodes=9, duration="2h")
    made.pass_time(62)
    yield made
    made.close()


def call(site: Site, path: str, who: str = "bo-viewer") -> Any:
    """The answer's data; it must be a success."""
    answer = site.client(who).get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def command(site: Site, *words: str) -> Any:
    """The same by the command."""
    return egs(*words, "--repo", site.repo, "--now", format_instant(site.now), "-o", "json").json


def without_ids(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the command has them; every id is there."""
    assert all(row["gprId"].startswith("gpr-") for row in rows)
    return [{name: value for name, value in row.items() if name != "gprId"} for row in rows]


def test_the_queue_is_that_of_the_command(site: Site) -> None:
    """D15: an admin sees everybody, with the same rows."""
    found = call(site, "queue", "ada-owner")["items"]
    assert without_ids(found) == command(site, "get", "queue")
    assert [row["name"] for row in found][:2] == ["first", "second"]


def test_people_see_their_own_with_the_true_rank(site: Site) -> None:
    """D15, B10: another's place counts, and is not shown."""
    rows = call(site, "queue")["items"]
    assert {row["slice"] for row in rows} == {"vision"}
    assert rows[0]["rank"] == 2
    assert call(site, "queue?sliceName=vision&limit=1")["items"] == rows[:1]
    assert call(site, "queue?cluster=west", "ada-owner")["items"] == [
        row for row in call(site, "queue", "ada-owner")["items"] if row["cluster"] == "west"
    ]
    assert site.client("bo-viewer").get("/api/v1/queue?sliceName=nlp").status_code == 404


def test_the_plan_is_that_of_the_command(site: Site) -> None:
    """A7: and a caller's part of it has no other's rows."""
    found, same = call(site, "plan", "ada-owner"), command(site, "plan")
    assert without_ids(found["requests"]) == same["requests"]
    assert without_ids(found["refused"]) == same["refused"]
    assert {row["slice"] for row in call(site, "plan")["requests"]} == {"vision"}


def test_inventory_shows_what_the_caller_may_use(site: Site) -> None:
    """G5: nodes of clusters that no workspace of theirs spans are not there, names of others neither."""
    mine, all_ = call(site, "inventory/list"), call(site, "inventory/list", "ada-owner")
    theirs = call(site, "inventory/list", "cy-editor")
    assert {node["clusterName"] for node in theirs["managedNodes"]} == {"east"}
    assert len(mine["managedNodes"]) == len(all_["managedNodes"]) == 6
    taken = [node for node in mine["managedNodes"] if node["gpuNodeStatus"] == "NODE_RESERVED"]
    names = {node["allocation"][0]["gprName"] for node in taken}
    assert names == {"runs", ""}
    assert {node["allocation"][0]["sliceName"] for node in taken} == {"vision", ""}
    assert all(node["availableGPUs"] == 0 for node in taken)
    free = next(node for node in mine["managedNodes"] if not node["allocation"])
    assert (free["gpuShape"], free["memory"], free["gpuCount"], free["availableGPUs"]) == (
        "H100-80GB",
        80,
        8,
        8,
    )
    assert (free["nodeHealth"], free["gpuNodeStatus"]) == ("Healthy", "NODE_AVAILABLE")


def test_a_workspaces_inventory_is_counted(site: Site) -> None:
    """G5."""
    rows = call(site, "inventory?sliceName=vision")["workspaceInventory"]
    assert [(row["clusterName"], row["gpuPerNode"], row["totalGpuNodes"]) for row in rows] == [
        ("east", 8, 4),
        ("west", 8, 2),
    ]
    assert site.client("bo-viewer").get("/api/v1/inventory?sliceName=nlp").status_code == 404


def test_workloads_have_model_nodes_health_and_cost(site: Site) -> None:
    """H16, A5, H17: of the caller's workspaces alone."""
    (one,) = call(site, "workloads")["items"]
    assert (one["name"], one["model"]["name"], one["model"]["parameters"]) == (
        "vision/runs",
        "llama",
        {"rank": "16"},
    )
    assert (one["numGPUs"], one["healthy"], one["cost"], one["elapsedSeconds"]) == (
        8,
        True,
        "20.00 USD",
        3600,
    )
    assert [node["state"] for node in one["nodes"]] == ["Ready"]
    assert [row["name"] for row in call(site, "workloads", "ada-owner")["items"]] == [
        "nlp/runs",
        "vision/runs",
    ]


def test_usage_counts_what_runs(site: Site) -> None:
    """H17: cost by workspace, with what has not ended yet."""
    (mine,) = call(site, "usage")["items"]
    assert (mine["sliceName"], mine["runningCost"], mine["cost"], mine["runningGpuHours"]) == (
        "vision",
        20.0,
        20.0,
        8.0,
    )
    assert {row["sliceName"] for row in call(site, "usage", "ada-owner")["items"]} == {"nlp", "vision"}


def test_insights_are_those_of_the_command(site: Site) -> None:
    """A7: of slices only the caller's."""
    found, same = call(site, "insights?days=7", "ada-owner"), command(site, "insights", "--days", "7")
    assert found == same
    assert set(call(site, "insights")["bySlice"]) <= {"vision"}


def test_the_promise_ledger_is_that_of_the_command(site: Site) -> None:
    """E9: counts and causes for anybody, starts by name for those who may see them."""
    found, same = call(site, "promises?months=2", "ada-owner"), command(site, "promises", "--months", "2")
    assert found == same
    assert {row["slice"] for row in found["recent"]} == {"nlp", "vision"}
    assert {row["slice"] for row in call(site, "promises")["recent"]} == {"vision"}
    strangers = site.client(None).get("/api/v1/promises").json()["data"]
    assert strangers == {**call(site, "promises"), "recent": []}
    assert "nlp" not in str(strangers)
    assert "vision" not in str(strangers)


def test_a_shape_that_a_workspace_may_not_use_is_not_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    """G5: limits of the workspace count."""
    pool = {"name": "a100", "gpuShape": "A100-40GB", "gpusPerNode": 4, "memoryPerGpu": 40, "nodes": 3}
    files = {
        "clusters/west.yaml": cluster("west", pools=[pool]),
        "slices/vision/slice.yaml": slice_("vision", ("east", "west"), limits={"gpuShapes": ["A100-40GB"]}),
    }
    made = Site(tmp_path_factory.mktemp("barred"), files)
    try:
        mine = call(made, "inventory/list")["managedNodes"]
        assert {node["gpuShape"] for node in mine} == {"A100-40GB"}
        (row,) = call(made, "inventory?sliceName=vision")["workspaceInventory"]
        assert (row["clusterName"], row["totalGpuNodes"]) == ("west", 3)
        assert len(call(made, "inventory/list", "ada-owner")["managedNodes"]) == 7
    finally:
        made.close()
