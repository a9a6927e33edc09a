"""`egs get` and `egs describe` on a repository whose controller has been at work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.reconciler.cli.rig import NOW, Control, egs, fleet, folder, minutes, repository, request, worktree
from tests.support.repos import commit, git
from tests.support.world import cluster, slice_

LATER = "2026-11-21T08:12:00Z"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`a/run` holds two nodes, `b/soft` was delayed by `b/hard`, `a/over` waits for an admin."""
    path = tmp_path_factory.mktemp("busy")
    files = fleet(
        **request("a/run", nodes=2, duration="2h", displayName="The run"),
        **request("b/soft", nodes=3, displayName="Soft"),
        **request("a/over", nodes=3),
    )
    repo = repository(path / "r.git", files)
    control = Control(repo, path / "state")
    control.run(minutes(5))
    commit(repo, request("b/hard", nodes=3, duration="3h", priority=300))
    control.run(minutes(6))
    return repo


def _get(repo: Path, kind: str, *args: str) -> object:
    done = egs(
        "get",
        kind,
        "--repo",
        repo,
        "-o",
        "json",
        *(() if kind in ("events", "problems") else ("--now", LATER)),
        *args,
    )
    assert done.code == 0, done.err
    return done.json


def test_gprs_have_their_phase_times_nodes_and_counters(busy: Path) -> None:
    """D14, D15, D18."""
    rows = {row["name"]: row for row in _get(busy, "gprs")}  # type: ignore[attr-defined]
    assert rows["run"] == {
        "slice": "a", "name": "run", "displayName": "The run", "phase": "Provisioned",
        "reason": rows["run"]["reason"], "message": rows["run"]["message"], "priority": 101, "nodes": 2,
        "gpusPerNode": 1, "gpuShapes": [], "duration": "0d2h0m", "estimatedStartTime": "2026-11-21T08:02:00Z",
        "estimatedEndTime": "2026-11-21T10:02:00Z", "startTime": "2026-11-21T08:02:00Z",
        "endTime": "2026-11-21T10:02:00Z", "cluster": "east", "pool": "h100", "nodeNames": ["h100-1", "h100-2"],
        "retryCount": 0, "delayedCount": 0, "warnedAt": None, "checkpointedAt": None, "currency": "USD",
        "cost": rows["run"]["cost"], "forecast": None,
    }  # fmt: skip
    assert rows["run"]["cost"] > 0, "so far"
    assert (rows["soft"]["delayedCount"], rows["soft"]["nodeNames"]) == (1, None)
    assert rows["over"]["phase"] == "PendingApproval"


def test_gprs_can_be_narrowed(busy: Path) -> None:
    """D15: per slice for its people."""
    assert [row["name"] for row in _get(busy, "gprs", "--slice", "b")] == ["hard", "soft"]  # type: ignore[attr-defined]
    assert [row["name"] for row in _get(busy, "gprs", "--phase", "Queued")] == ["hard", "soft"]  # type: ignore[attr-defined]
    assert egs("get", "gprs", "--repo", busy, "--slice", "c").code == 1
    assert egs("get", "gprs", "--repo", busy, "--phase", "Waiting").code == 2


def test_the_queue_is_derived_from_the_status_and_the_clock(busy: Path) -> None:
    """D15: the same promise, a shorter wait as time goes by."""
    first, second, last = _get(busy, "queue")  # type: ignore[misc]
    assert first == {
        "rank": 1, "position": 1, "slice": "b", "name": "hard", "phase": "Queued", "priority": 300, "nodes": 3,
        "estimatedStartTime": "2026-11-21T10:09:00Z", "estimatedWaitSeconds": 7020, "cluster": "east",
        "pool": "h100", "promised": True, "delayedCount": 0, "reason": None,
    }  # fmt: skip
    assert (second["name"], second["rank"], second["position"], second["delayedCount"]) == ("soft", 2, 2, 1)
    assert (last["name"], last["rank"], last["estimatedStartTime"]) == ("over", None, None)
    later = egs("get", "queue", "--repo", busy, "-o", "json", "--now", "2026-11-21T09:09:00Z").json
    assert (later[0]["estimatedStartTime"], later[0]["estimatedWaitSeconds"]) == (
        "2026-11-21T10:09:00Z",
        3600,
    )


def test_nodes_have_state_lease_and_schedule(busy: Path) -> None:
    """E10, G3: no two entries of one node overlap; what is not decided yet is only likely."""
    rows = {row["name"]: row for row in _get(busy, "nodes")}  # type: ignore[attr-defined]
    assert list(rows) == ["h100-1", "h100-2", "h100-3", "h100-4"]
    assert (rows["h100-1"]["state"], rows["h100-1"]["lease"]) == ("Ready", "a/run")
    assert rows["h100-1"]["schedule"][0] == {
        "request": "a/run", "begin": rows["h100-1"]["schedule"][0]["begin"], "end": "2026-11-21T10:07:00Z",
        "tentative": False,
    }  # fmt: skip
    for row in rows.values():
        ends = [entry["end"] for entry in row["schedule"]]
        begins = [entry["begin"] for entry in row["schedule"]]
        assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))
    likely = [entry["request"] for row in rows.values() for entry in row["schedule"] if entry["tentative"]]
    assert sorted(likely) == ["b/hard"] * 3 + ["b/soft"] * 3


@pytest.mark.parametrize(
    ("mode", "is_said"),
    [pytest.param("none", True, id="nothing closes them"), pytest.param("auto", False, id="they are closed")],
)
def test_nodes_that_are_open_to_other_pods_are_said_to_be(tmp_path: Path, mode: str, is_said: bool) -> None:
    real = cluster(driver="kubernetes", access={"pull": True}, admission={"mode": mode})
    repo = folder(tmp_path / "f", fleet(**{"clusters/east.yaml": real}))
    told = egs("get", "nodes", "--repo", repo)
    assert ("may run on these nodes" in told.err) is is_said
    assert told.code == 0


def test_gpu_nodes_of_no_pool_are_shown_at_the_end_until_a_pool_has_them(tmp_path: Path) -> None:
    """A12: as the inventory on the status branch has them."""
    repo = repository(tmp_path / "r.git", fleet())
    Control(repo, tmp_path / "state").run(minutes(0))
    path = "clusters/east/inventory.yaml"
    outside = (
        "unmanaged:\n- {name: h100-5, product: NVIDIA-H100, gpus: 8}\n- {name: old, product: V100, gpus: 4}\n"
    )
    commit(repo, {path: git(repo, "show", f"egs/status:{path}") + f"\n{outside}"}, "egs/status")
    assert [row["name"] for row in _get(repo, "nodes")[4:]] == ["h100-5", "old"]  # type: ignore[index]
    assert _get(repo, "nodes", "--cluster", "east")[-1] == {  # type: ignore[index]
        "cluster": "east", "pool": None, "name": "old", "state": "Unmanaged", "reason": None,
        "message": "4 x V100, in no pool", "since": None, "lease": None, "schedule": [],
    }  # fmt: skip
    assert len(_get(repo, "nodes", "--pool", "h100")) == 4  # type: ignore[arg-type]
    assert "4 x V100, in no pool" in egs("get", "nodes", "--repo", repo).out
    assert "Unmanaged" in egs("describe", "node", "east/old", "--repo", repo).out
    commit(repo, {"clusters/east.yaml": cluster(nodes=5)})
    found = {row["name"]: row["state"] for row in _get(repo, "nodes")}  # type: ignore[attr-defined]
    assert (found["h100-5"], found["old"], len(found)) == ("Ready", "Unmanaged", 6)


def test_maintenance_is_in_the_schedule(tmp_path: Path) -> None:
    """G3."""
    window = {"begin": "2026-11-22T08:00:00Z", "end": "2026-11-22T10:00:00Z", "nodes": ["h100-1"]}
    repo = folder(tmp_path / "f", fleet(**{"clusters/east.yaml": cluster(maintenance=[window])}))
    first, second = _get(repo, "nodes")  # type: ignore[misc]
    assert first["schedule"] == [
        {"request": None, "begin": window["begin"], "end": window["end"], "tentative": False}
    ]
    assert second["schedule"] == []


def test_clusters_say_how_fresh_they_are(busy: Path) -> None:
    """G4."""
    (row,) = _get(busy, "clusters")  # type: ignore[misc]
    assert (row["name"], row["mode"], row["reachable"], row["since"]) == ("east", "manage", True, NOW)
    assert row["statusTime"].startswith("2026-11-21T08:0")
    (pool,) = row["pools"]
    assert (pool["nodes"], pool["leased"], pool["free"], pool["out"]) == (4, 2, 2, 0)


def test_slices_have_what_they_hold(busy: Path) -> None:
    rows = {row["name"]: row for row in _get(busy, "slices")}  # type: ignore[attr-defined]
    assert (rows["a"]["waiting"], rows["a"]["holding"], rows["a"]["gpusHeld"]) == (1, 1, 16)
    assert (rows["a"]["quotaGpus"], rows["b"]["quotaGpus"]) == (16, None)


def test_events_are_newest_first_and_can_be_searched(busy: Path) -> None:
    """H10, D14: by slice, request, node and reason."""
    rows = _get(busy, "events")
    times = [row["at"] for row in rows]  # type: ignore[attr-defined]
    assert times == sorted(times, reverse=True)
    assert set(rows[0]) == {"at", "reason", "type", "request", "cluster", "node", "message"}  # type: ignore[index]
    (delayed,) = _get(busy, "events", "--reason", "GPRDelayed")  # type: ignore[misc]
    assert (delayed["request"], delayed["type"]) == ("b/soft", "Warning")
    assert {row["request"] for row in _get(busy, "events", "--slice", "a")} == {"a/run", "a/over"}  # type: ignore[attr-defined]
    assert {row["request"] for row in _get(busy, "events", "--gpr", "run")} == {"a/run"}  # type: ignore[attr-defined]
    assert _get(busy, "events", "--gpr", "a/soft") == []
    assert len(_get(busy, "events", "--limit", "2")) == 2  # type: ignore[arg-type]
    assert _get(busy, "events", "--node", "east/h100-9") == []
    done = egs("get", "events", "--repo", busy, "--reason", "GPRDelay")
    assert (done.code, "GPRDelayed" in done.err) == (2, True)


def test_problems_are_those_of_validate(busy: Path) -> None:
    want = egs("validate", busy, "-o", "json").json["problems"]
    assert _get(busy, "problems") == want
    assert [problem["rule"] for problem in want] == ["NeedsApproval"]


def test_a_request_is_described_with_its_checks_slips_and_events(busy: Path) -> None:
    """F5, H17, D18."""
    run = egs("describe", "gpr", "a/run", "--repo", busy, "--now", LATER, "-o", "json").json
    assert run["file"] == "slices/a/gprs/run.yaml"
    checks = run["status"]["checks"]
    assert {check["node"] for check in checks} == {"h100-1", "h100-2"}
    assert all(check["passed"] and check["stage"] == "pre" for check in checks)
    assert "GPRProvisioned" in {event["reason"] for event in run["events"]}
    soft = egs("describe", "gpr", "b/soft", "--repo", busy, "--now", LATER, "-o", "json").json
    (slip,) = soft["status"]["slips"]
    assert (slip["cause"], slip["by"], soft["rank"], soft["position"]) == (
        "HigherRankArrived",
        "b/hard",
        2,
        2,
    )
    page = egs("describe", "gpr", "a/run", "--repo", busy, "--now", LATER).out
    assert "phase: Provisioned" in page
    assert "  displayName: The run" in page


def test_slice_cluster_and_node_are_described(busy: Path) -> None:
    """G3, G4."""
    node = egs("describe", "node", "east/h100-1", "--repo", busy, "--now", LATER, "-o", "json").json
    assert (node["lease"], node["heldUntil"]) == ("a/run", "2026-11-21T10:07:00Z")
    east = egs("describe", "cluster", "east", "--repo", busy, "--now", LATER, "-o", "json").json
    assert [row["request"] for row in east["schedule"]] == ["a/run", "b/hard", "b/soft"]
    found = egs("describe", "slice", "a", "--repo", busy, "--now", LATER, "-o", "json").json
    assert [row["name"] for row in found["requests"]] == ["over", "run"]
    assert found["queues"] == []


def test_a_slice_that_wants_queues_is_described_with_them(tmp_path: Path) -> None:
    """A9: by cluster, with what it does now."""
    files = fleet(**{"slices/a/slice.yaml": slice_("a", queues={"kueue": True})}, **request("a/run", 2))
    repo = repository(tmp_path / "r.git", files)
    Control(repo, tmp_path / "state").run(minutes(10))
    found = egs("describe", "slice", "a", "--repo", repo, "--now", "2026-11-21T08:10:00Z", "-o", "json").json
    want = {"cluster": "east", "gpus": 16, "stop": "None", "mig": "", "state": "Kept", "message": ""}
    assert found["queues"] == [want]


def test_a_slice_is_described_with_the_names_of_its_exported_services(tmp_path: Path) -> None:
    """C7: by cluster; a Service of a workload counts as any other."""
    spec = {"selector": {"app": "db"}, "ports": [{"port": 80}]}
    meta = {"name": "db", "labels": {"egs.dev/export": "true"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    told = {"slice": "a", "gpr": "run", "manifests": [service]}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "db"}}
    files = fleet(
        **{
            "slices/a/slice.yaml": slice_("a", services={"across": "mcs"}),
            "slices/a/workloads/db.yaml": yaml.safe_dump({**head, "spec": told}),
        },
        **request("a/run", 2),
    )
    repo = repository(tmp_path / "r.git", files)
    Control(repo, tmp_path / "state").run(minutes(10))
    found = egs("describe", "slice", "a", "--repo", repo, "--now", "2026-11-21T08:10:00Z", "-o", "json").json
    export = {
        "namespace": "a",
        "name": "db",
        "state": "Exported",
        "message": "",
        "dns": "db.a.svc.clusterset.local",
    }
    assert found["services"] == [
        {
            "cluster": "east",
            "state": "Kept",
            "policy": "None",
            "message": "the slice has no other cluster",
            "exports": [export],
        }
    ]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["gpr", "a/ran"], 1),
        (["slice", "c"], 1),
        (["cluster", "west"], 1),
        (["node", "east/h100-9"], 1),
        (["node", "h100-1"], 2),
    ],
)
def test_what_is_not_there_is_answered_with_what_is_near(busy: Path, args: list[str], code: int) -> None:
    done = egs("describe", *args, "--repo", busy)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)


@pytest.mark.parametrize("kind", ["gprs", "slices", "clusters", "nodes", "queue", "events", "problems"])
def test_every_kind_is_a_table_and_data(busy: Path, kind: str) -> None:
    assert len(egs("get", kind, "--repo", busy).out.splitlines()) > 1
    assert egs("get", kind, "--repo", busy, "-o", "yaml").out.startswith("- ")


def test_a_work_tree_shows_the_status_of_its_origin(busy: Path, tmp_path: Path) -> None:
    """Documents as they lie there, the status from the remote's branch."""
    git(tmp_path, "clone", "--quiet", str(busy), "w")
    rows = _get(tmp_path / "w", "gprs", "--phase", "Provisioned")
    assert [row["name"] for row in rows] == ["run"]  # type: ignore[attr-defined]


def test_a_work_tree_without_origin_has_its_own_status_or_none(busy: Path, tmp_path: Path) -> None:
    tree = worktree(tmp_path / "w", fleet(**request("a/run")))
    assert _get(tree, "gprs", "--phase", "Provisioned") == []
    git(tree, "fetch", "--quiet", str(busy), "egs/status:egs/status")
    assert [row["name"] for row in _get(tree, "gprs", "--phase", "Provisioned")] == ["run"]  # type: ignore[attr-defined]


def test_an_origin_that_cannot_be_read_yet_is_told_and_no_obstacle(tmp_path: Path) -> None:
    tree = worktree(tmp_path / "w", fleet(**request("a/run")))
    git(tree, "remote", "add", "origin", "git@forge.example.com:fleet.git")
    done = egs("get", "gprs", "--repo", tree, "-o", "json")
    assert (done.code, [row["phase"] for row in done.json]) == (0, ["Queued"])
    assert "the status is at origin, which cannot be used" in done.err


def test_a_plain_folder_has_no_events(tmp_path: Path) -> None:
    assert _get(folder(tmp_path / "f", fleet()), "events") == []


def test_a_node_that_left_its_pool_is_listed_while_somebody_has_it(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("b/run", nodes=4, duration="2h")))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(5))
    commit(repo, {"clusters/east.yaml": cluster(nodes=2)})
    control.run(minutes(6))
    rows = _get(repo, "nodes")
    assert [(row["name"], row["pool"], row["lease"]) for row in rows] == [  # type: ignore[attr-defined]
        (f"h100-{number}", "h100", "b/run") for number in (1, 2, 3, 4)
    ]


RENTED = {
    "name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2,
    "reserved": [
        {"begin": "2026-11-21T12:00:00Z", "end": "2026-11-22T12:00:00Z"},
        {"begin": "2026-11-20T12:00:00Z", "end": "2026-11-21T12:00:00Z", "nodes": 1},
        {"begin": "2026-11-24T12:00:00Z", "end": "2026-11-25T12:00:00Z"},
    ],
}  # fmt: skip


def test_nodes_outside_of_their_reservations_are_told_from_free_ones(tmp_path: Path) -> None:
    """F13: and their calendar shows announced maintenance and no other."""
    window = {"begin": "2026-11-22T08:00:00Z", "end": "2026-11-22T10:00:00Z"}
    files = {"clusters/east.yaml": cluster(pools=[RENTED], maintenance=[window])}
    repo = folder(tmp_path / "f", fleet(**files))
    first, second = _get(repo, "nodes")  # type: ignore[misc]
    assert (first["state"], first["message"]) == ("Ready", None)
    assert (second["state"], second["message"]) == ("Unreserved", "reserved from 2026-11-21T12:00:00Z")
    for row in (first, second):
        assert row["schedule"] == [{"request": None, **window, "tentative": False}]
    (row,) = _get(repo, "clusters")  # type: ignore[misc]
    (pool,) = row["pools"]
    assert (pool["nodes"], pool["free"], pool["out"]) == (2, 1, 1)
