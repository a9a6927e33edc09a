"""What runs, over the API (A5, A7, H1-H6, H16, H18): a caller sees their own leases, and nothing of others leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.status.node_status import GpuReport
from tests.support.portal import Site
from tests.support.world import cluster

VALUES = ("utilisationPercent", "tempC", "powerW", "memoryUsedMib")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs a model on one node of east, nlp on another; one node is free. Everything is simulated."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file(
        "vision/train", nodes=1, duration="4h", clusters=["east"], model={"name": "llama", "framework": "jax"}
    )
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 6, made.now)
    made.running.submit("east", "nlp", "hidden-job", 8, made.now)
    made.pass_time(40)
    yield made
    made.close()


def call(site: Site, path: str, key: str = "bo-viewer") -> Any:
    answer = site.client(key).get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def nodes_of(site: Site, key: str) -> set[str]:
    held = site.view.facts.requests[key].assignment
    assert held is not None
    return set(held.nodes)


def test_a_request_says_what_it_runs(site: Site) -> None:
    """H1, H2: model, workload, GPUs, and the figures of its GPUs."""
    (row,) = call(site, "workloads")["items"]
    (run,) = row["runs"]
    assert (row["name"], run["kind"], run["name"], run["numGPUs"]) == ("vision/train", "Job", "finetune", 6)
    assert run["model"]["name"] == {"value": "llama", "source": "request"}
    summary = row["summary"]
    assert (summary["gpus"], summary["measuredGpus"], summary["idleGpus"]) == (8, 8, 2)
    assert summary["hottest"]["node"] in nodes_of(site, "vision/train")
    assert 0 < summary["averageUtilisationPercent"] < 100


def test_a_workload_is_found_by_its_id_and_by_its_requests(site: Site) -> None:
    (row,) = call(site, "workloads")["items"]
    for name in (row["runs"][0]["id"], row["gprId"]):
        one = call(site, f"workloads/{name}")
        assert one["request"] == "vision/train"
        assert one["summary"]["idleGpuSeconds"] is not None
        assert [pod["name"] for pod in one["pods"]] == ["finetune"]
    assert len(call(site, f"workloads/{row['gprId']}")["gpus"]) == 8
    assert len(call(site, f"workloads/{row['runs'][0]['id']}")["gpus"]) == 6, (
        "two GPUs of the node are nobody's"
    )


def test_pods_are_listed_with_their_gpus_and_where_their_values_are(site: Site) -> None:
    """H3."""
    (row,) = call(site, "workloads")["items"]
    (pod,) = call(site, f"workloads/{row['gprId']}/pods")["items"]
    assert (pod["name"], pod["phase"], len(pod["gpus"])) == ("finetune", "Running", 6)
    link = pod["gpus"][0]["metrics"].removeprefix("/api/v1/")
    assert call(site, link)["series"]


def test_gpus_come_by_closeness_to_their_threshold(site: Site) -> None:
    """H4."""
    rows = call(site, "metrics/gpus")["items"]
    near = [row["closeness"] for row in rows]
    assert near == sorted(near, reverse=True)
    assert len(rows) == 8
    assert {row["node"] for row in rows} == nodes_of(site, "vision/train")
    assert len(call(site, "metrics/gpus?q=finetune")["items"]) == 6
    assert call(site, "metrics/gpus?hot=true")["items"] == [row for row in rows if row["hot"]]


def test_pages_continue_where_they_ended(site: Site) -> None:
    first = call(site, "metrics/gpus?limit=3")
    second = call(site, f"metrics/gpus?limit=5&cursor={first['next']}")
    everything = [row["uuid"] for row in call(site, "metrics/gpus")["items"]]
    assert [row["uuid"] for row in (*first["items"], *second["items"])] == everything


@pytest.mark.parametrize(
    "path",
    [
        "workloads",
        "metrics/gpus",
        "metrics/gpus?q=hidden",
        "metrics/range",
        "alerts",
        "metrics/range?since=7d&metrics=xid,utilisation_percent",
        "workloads/vision%2Ftrain/diagnosis",
    ],
)
def test_nothing_of_another_slice_leaks(site: Site, path: str) -> None:
    """By names, by nodes, by GPUs, or by counts."""
    own = json.dumps(call(site, path)) if "%2F" not in path else ""
    foreign = call(site, "metrics/gpus?sliceName=nlp", "ada-owner")["items"]
    for word in (
        "nlp",
        "secret-model",
        "hidden-job",
        *nodes_of(site, "nlp/secret-model"),
        *(g["uuid"] for g in foreign),
    ):
        assert word not in own, word


def test_what_belongs_to_others_is_as_if_it_were_not_there(site: Site) -> None:
    foreign = call(site, "metrics/gpus?sliceName=nlp", "ada-owner")["items"][0]
    theirs = next(row for row in call(site, "workloads", "ada-owner")["items"] if row["sliceName"] == "nlp")
    for path in (
        f"metrics/range?gpu={foreign['uuid']}",
        f"metrics/range?workload={theirs['gprId']}",
        f"workloads/{theirs['gprId']}",
        f"workloads/{theirs['runs'][0]['id']}/pods",
        f"workloads/{theirs['gprId']}/diagnosis",
        "metrics/gpus?sliceName=nlp",
    ):
        answer = site.client("bo-viewer").get(f"/api/v1/{path}")
        assert answer.status_code == 404, path
        assert "secret-model" not in answer.text


def test_values_begin_with_the_lease(site: Site) -> None:
    """The time before belongs to whoever had the node then; an admin sees it."""
    start = site.view.facts.requests["vision/train"].start_time
    assert start is not None
    since = f"{start:%Y-%m-%dT%H:%M:%SZ}"
    (node,) = nodes_of(site, "vision/train")
    own = call(site, "metrics/range?since=6h&metrics=power_w")["series"]
    assert own
    first = min(point[0] for one in own for point in one["points"])
    assert first > since, "a point summarises the time before it, all of which is in the lease"
    every = call(site, "metrics/range?since=6h&metrics=power_w", "ada-owner")["series"]
    before = [point for one in every if one["node"] == node for point in one["points"] if point[0] < since]
    assert before


def test_an_admin_sees_free_nodes_too(site: Site) -> None:
    """G1: also GPUs without a lease."""
    rows = call(site, "metrics/gpus?limit=1000", "ada-owner")["items"]
    assert len({(row["cluster"], row["node"]) for row in rows}) == 6
    assert {row["request"] for row in rows} == {None, "vision/train", "nlp/secret-model"}


def test_idle_gpus_of_a_lease_are_an_alert_with_advice(site: Site) -> None:
    """H6."""
    alerts = call(site, "alerts")["items"]
    idle = [row for row in alerts if row["kind"] == "IdleGpu"]
    assert len(idle) == 2
    assert all(row["request"] == "vision/train" and row["advice"] for row in idle)


def test_a_diagnosis_counts_what_works(site: Site) -> None:
    """H18."""
    (row,) = call(site, "workloads")["items"]
    found = call(site, f"workloads/{row['gprId']}/diagnosis")
    assert found["findings"][0]["cause"] == "PartlyUsed"
    assert found["findings"][0]["sentence"].startswith("8 GPUs are allocated, 6 work")
    assert "its pods ask for 6" in found["findings"][0]["evidence"][0]


def test_ranges_have_steps_marks_and_bounds(site: Site) -> None:
    """H5."""
    found = call(site, "metrics/range?since=30m&metrics=temp_c")
    assert {one["metric"] for one in found["series"]} == {"temp_c"}
    assert found["series"][0]["unit"] == "°C"
    assert found["stepSeconds"] in (15, 30)
    for query, word in [
        ("since=8d", "7 days"),
        ("metrics=speed", "there is no metric speed"),
        ("since=soon", "write a time"),
    ]:
        answer = site.client("bo-viewer").get(f"/api/v1/metrics/range?{query}")
        assert answer.status_code == 422
        assert word in answer.json()["error"]["message"]


def test_a_cluster_that_does_not_answer_leaves_the_rest(site: Site) -> None:
    """It says so; no number is made up."""
    site.running.silent = {"east"}
    try:
        (row,) = call(site, "workloads")["items"]
        assert (row["runs"], row["podsUnknown"]) == ([], "cluster east does not answer")
        assert row["summary"]["measuredGpus"] == 8
        found = call(site, f"workloads/{row['gprId']}/diagnosis")
        assert "NoPodsSeen" in [one["cause"] for one in found["findings"]]
    finally:
        site.running.silent = set()


def test_devices_that_agents_report_are_shown_while_healthy(site: Site) -> None:
    """G1: serial, driver and MIG come from the agent."""
    (node,) = nodes_of(site, "vision/train")
    one = call(site, "metrics/gpus")["items"][0]
    report = GpuReport(
        uuid=one["uuid"],
        index=one["index"],
        product="NVIDIA H100",
        memory_mib=81559,
        healthy=True,
        serial="1650",
        driver="575.57",
        mig_enabled=False,
        links=18,
        links_up=18,
    )
    site.running.devices = {("east", node): (report,)}
    try:
        row = next(row for row in call(site, "metrics/gpus")["items"] if row["uuid"] == one["uuid"])
        assert (row["product"], row["memoryMib"], row["healthy"]) == ("NVIDIA H100", 81559, True)
        assert (row["serial"], row["driver"], row["migEnabled"], row["linksUp"]) == (
            "1650",
            "575.57",
            False,
            18,
        )
        assert all(row[name] == one[name] for name in VALUES)
    finally:
        site.running.devices = {}


def test_the_inventory_has_every_device_and_the_network(site: Site) -> None:
    """G1, G2: of healthy nodes too, and of nodes that others have."""
    (node,) = nodes_of(site, "nlp/secret-model")
    report = GpuReport(
        uuid="GPU-1", index=0, product="NVIDIA H100", memory_mib=81559, healthy=True, serial="1650"
    )
    site.running.devices = {("east", node): (report,)}
    try:
        nodes = call(site, "inventory/list")["managedNodes"]
        rows = {row["gpuNodeName"]: row for row in nodes if row["clusterName"] == "east"}
        (device,) = rows[node]["devices"]
        assert (device["serial"], device["memoryMib"], device["driver"]) == ("1650", 81559, None)
        assert (rows[node]["gpuPowerThreshold"], rows[node]["gpuTempThreshold"]) == (609, 87)
        assert rows[node]["allocation"][0]["gprName"] == ""
    finally:
        site.running.devices = {}


def test_a_node_shows_its_network_where_it_tells(tmp_path: Path) -> None:
    pool = {
        "name": "h100",
        "gpuShape": "H100-80GB",
        "gpusPerNode": 8,
        "memoryPerGpu": 80,
        "nodes": 1,
        "rdma": True,
    }
    made = Site(tmp_path, {"clusters/east.yaml": cluster("east", pools=[pool])})
    try:
        made.settle()
        (row,) = [row for row in call(made, "inventory/list")["managedNodes"] if row["clusterName"] == "east"]
        assert row["network"] == {"rdmaSubnet": "east-h100-rdma"}
    finally:
        made.close()
