"""What is the simulation's own: time, scripted faults, the fleet, and the GPUs behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.open_cluster import DriverOptions, open_cluster
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import (
    CheckFails,
    DrainHangs,
    GpuFails,
    NodeCordoned,
    NodeDies,
)
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.clusters.simulated.simulated_writes import CHECK, DRAIN
from reconciler.model.cluster_port import Busy, Done, LeaseRef, SliceTerms, Stamp
from schemas.documents.cluster import Access, ClusterSpec
from schemas.errors import Fault, UserError

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=s) for s in (1, 60, 3600, 86400))
STAMP = Stamp(1, 1)
LEASE = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + HOUR)
A, B = "h100-1", "h100-2"


def spec(nodes: int | list[str] = 2, driver: str = "embedded") -> ClusterSpec:
    """One pool of nodes with eight GPUs."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    names = nodes if isinstance(nodes, int) else tuple(nodes)
    return ClusterSpec.model_validate({"driver": driver, "pools": (pool | {"nodes": names},)})


def cluster(*faults, leased=(A,), state=None) -> EmbeddedCluster:
    """A cluster whose slice `vision` holds the nodes `leased`."""
    made = EmbeddedCluster("east", spec(), state, faults)
    made.ensure_slice(SliceTerms("vision", ("vision-train",)), STAMP, NOW)
    for node in leased:
        made.add(node, LEASE, STAMP, NOW)
    return made


def job(name: str, gpus: int = 8, minutes: int | None = None) -> Job:
    return Job(name, "vision-train", gpus, None if minutes is None else minutes * MINUTE)


def phases(c: EmbeddedCluster, now: datetime) -> dict[str, str]:
    return {w.name: w.phase for w in c.observe(now).workloads}


def results(c: EmbeddedCluster, stage="pre", node=A, now=NOW, lease=LEASE):
    """Name -> passed of a finished stage."""
    busy = c.check(node, stage, lease, STAMP, now)
    assert isinstance(busy, Busy)
    done = c.check(node, stage, lease, STAMP, busy.until)
    assert not isinstance(done, Busy)
    return done


# --- time ---


def test_a_workload_runs_for_its_duration_and_makes_room_for_the_next():
    """J1 in small: one look after an hour tells what many looks would have told."""
    c = cluster()
    for name in ("first", "second", "third"):
        c.submit(job(name, minutes=25), NOW)
    assert phases(c, NOW + 49 * MINUTE) == {"first": "Succeeded", "second": "Running", "third": "Pending"}
    assert phases(c, NOW + 50 * MINUTE) == {"first": "Succeeded", "second": "Succeeded", "third": "Running"}


@pytest.mark.parametrize("step_minutes", [1, 7, 60])
def test_how_often_one_looks_changes_nothing(step_minutes):
    """The same script, watched closely or rarely, ends in the same world."""
    c = cluster(
        NodeDies(node=A, at=NOW + 20 * MINUTE, until=NOW + 40 * MINUTE),
        NodeCordoned(node=B, at=NOW + 10 * MINUTE, until=NOW + 30 * MINUTE),
        leased=(A, B),
    )
    for i in range(4):
        c.submit(job(f"job-{i}", gpus=4 + i, minutes=11 + i), NOW)
    for minute in range(0, 421, step_minutes):
        view = c.observe(NOW + minute * MINUTE)
    seen = [(w.job.name, w.phase, w.node, w.since) for w in c._state._world.workloads]
    assert view.at == NOW + 420 * MINUTE
    assert seen == [
        ("job-0", "Succeeded", A, NOW + 11 * MINUTE),
        ("job-1", "Succeeded", B, NOW + 12 * MINUTE),
        ("job-2", "Succeeded", B, NOW + 43 * MINUTE),
        ("job-3", "Succeeded", A, NOW + 54 * MINUTE),
    ]


def test_finished_workloads_are_forgotten_after_a_day():
    c = cluster()
    c.submit(job("short", minutes=1), NOW)
    assert phases(c, NOW + DAY) == {"short": "Succeeded"}
    assert phases(c, NOW + DAY + MINUTE) == {}


def test_a_late_look_by_a_person_does_not_delay_what_went_before():
    c = cluster()
    c.submit(job("first", minutes=10), NOW)
    c.submit(job("second", minutes=10), NOW)
    c.submit(job("third"), NOW + 15 * MINUTE)
    assert phases(c, NOW + 20 * MINUTE) == {"first": "Succeeded", "second": "Succeeded", "third": "Running"}


def test_nothing_starts_before_it_was_submitted():
    """The node was free an hour before; what was submitted since then is not run in the past."""
    died = NodeDies(node=A, at=NOW + MINUTE, until=NOW + 2 * MINUTE)
    c = cluster(died, NodeCordoned(node=A, at=NOW + 30 * MINUTE))
    c.submit(job("train"), NOW + HOUR)
    assert phases(c, NOW + HOUR) == {"train": "Pending"}


def test_gpus_of_a_node_are_never_given_twice():
    c = cluster()
    for i in range(5):
        c.submit(job(f"job-{i}", gpus=3), NOW)
    assert list(phases(c, NOW).values()) == ["Running", "Running", "Pending", "Pending", "Pending"]


def test_a_clock_that_steps_back_undoes_nothing():
    c = cluster()
    c.submit(job("train", minutes=10), NOW)
    assert phases(c, NOW + HOUR) == {"train": "Succeeded"}
    assert phases(c, NOW) == {"train": "Succeeded"}


# --- what people do ---


def test_a_withdrawn_workload_makes_room():
    c = cluster()
    c.submit(job("train"), NOW)
    c.submit(job("next"), NOW)
    c.withdraw("vision-train", "train", NOW + MINUTE)
    assert phases(c, NOW + MINUTE) == {"next": "Running"}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        pytest.param(Job("train", "elsewhere", 8), "NamespaceMissing", id="a namespace of no slice"),
        pytest.param(Job("taken", "vision-train", 8), "WorkloadExists", id="a name that is taken"),
    ],
)
def test_a_workload_that_cannot_be_submitted_is_refused(wrong, reason):
    c = cluster()
    c.submit(job("taken"), NOW)
    with pytest.raises(UserError) as caught:
        c.submit(wrong, NOW)
    assert caught.value.reason == reason


def test_a_namespace_that_leaves_its_slice_loses_its_gpus():
    """C2, C6."""
    c = cluster()
    c.submit(job("train"), NOW)
    c.ensure_slice(SliceTerms("vision", ("other",)), STAMP, NOW)
    assert phases(c, NOW) == {"train": "Pending"}


# --- trouble ---


def test_workloads_of_a_dying_node_wait_and_start_anew_when_it_is_back():
    """H15: what a lost node does to what ran there."""
    c = cluster(NodeDies(node=A, at=NOW + 10 * MINUTE, until=NOW + 20 * MINUTE))
    c.submit(job("train", minutes=30), NOW)
    assert phases(c, NOW + 15 * MINUTE) == {"train": "Pending"}
    assert phases(c, NOW + 49 * MINUTE) == {"train": "Running"}
    assert phases(c, NOW + 50 * MINUTE) == {"train": "Succeeded"}


def test_a_dead_node_is_free_at_once():
    c = cluster(NodeDies(node=A, at=NOW + MINUTE))
    c.submit(job("train"), NOW)
    assert c.remove(A, LEASE.uid, STAMP, NOW + MINUTE) == Done()


def test_a_drain_is_bounded_and_needs_no_time_on_an_idle_node():
    c = cluster(leased=(A, B))
    c.submit(job("train"), NOW)
    assert c.remove(B, LEASE.uid, STAMP, NOW) == Done()
    assert c.remove(A, LEASE.uid, STAMP, NOW) == Busy(NOW + DRAIN, "node h100-1 is draining")


def test_removal_does_not_wait_for_a_notice_that_ends_later():
    """D11: an early release after the notice was given."""
    c = cluster()
    c.submit(job("train"), NOW)
    c.evict(A, LEASE.uid, NOW + HOUR, STAMP, NOW)
    assert c.remove(A, LEASE.uid, STAMP, NOW) == Busy(NOW + DRAIN, "node h100-1 is draining")


def test_workloads_of_a_hanging_drain_keep_their_gpus():
    c = cluster(DrainHangs(node=A, at=NOW, until=NOW + HOUR))
    c.submit(job("train"), NOW)
    c.evict(A, LEASE.uid, NOW + MINUTE, STAMP, NOW)
    assert phases(c, NOW + 59 * MINUTE) == {"train": "Running"}
    assert phases(c, NOW + HOUR) == {"train": "Pending"}


def test_a_hang_that_begins_after_the_drain_is_no_matter():
    c = cluster(DrainHangs(node=A, at=NOW + HOUR, until=NOW + 2 * HOUR))
    c.submit(job("train"), NOW)
    c.evict(A, LEASE.uid, NOW + MINUTE, STAMP, NOW)
    assert phases(c, NOW + MINUTE) == {"train": "Pending"}
    assert c.remove(A, LEASE.uid, STAMP, NOW + MINUTE) == Done()


def test_a_check_that_fails_once_passes_for_the_next_lease():
    """F4: the node is skipped, not condemned."""
    c = cluster(CheckFails(node=A, check="NcclLatency", at=NOW, times=1))
    other = LeaseRef("gpr-00000002-bbbb", "speech/tune", "speech", NOW + HOUR)
    assert [r.name for r in results(c) if not r.passed] == ["NcclLatency"]
    assert all(r.passed for r in results(c, lease=other))


def test_old_results_are_not_given_out():
    """F4: a request that comes back to a node after a while finds it checked as it is now."""
    c = cluster(CheckFails(node=A, check="NcclLatency", at=NOW, times=1))
    first = results(c)
    assert c.check(A, "pre", LEASE, STAMP, NOW + 10 * MINUTE) == first
    assert all(r.passed for r in results(c, now=NOW + 30 * MINUTE))


def test_checks_that_nobody_asked_about_for_long_begin_anew():
    c = cluster(leased=())
    c.check(A, "pre", LEASE, STAMP, NOW)
    assert c.check(A, "pre", LEASE, STAMP, NOW + HOUR) == Busy(
        NOW + HOUR + CHECK, "pre checks of node h100-1 run"
    )


def test_a_check_that_always_fails_fails_in_its_stage_only():
    """F10."""
    c = cluster(CheckFails(node=A, check="Network", stage="post", at=NOW), leased=())
    assert all(r.passed for r in results(c))
    assert [r.name for r in results(c, "post") if not r.passed] == ["Network"]
    assert [r.name for r in results(c, "post", now=NOW + HOUR, lease=LeaseRef("u", "a/b", "a", NOW))
            if not r.passed] == ["Network"]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "log"),
    [
        pytest.param({"xid": 79}, "recovery action 1, Xid 79", id="an Xid that asks for a reset"),
        pytest.param({"temp_c": 95}, "95 °C", id="too hot"),
        pytest.param({"lost": True}, "lost", id="lost"),
        pytest.param({"remap_failure": True}, "row remapping failed", id="no spare row left"),
        pytest.param({"ecc_uncorrectable": 2}, "2 uncorrectable memory errors", id="memory errors"),
    ],
)
def test_node_health_really_looks_at_the_gpus(fault, log):
    """F4: a bad GPU fails the node's health check, and the log says which one and why."""
    c = cluster(GpuFails(node=A, gpu=3, at=NOW, **fault))
    health = results(c)[0]
    assert (health.name, health.passed, health.value) == ("NodeHealth", False, "7/8 GPUs well")
    assert health.log.startswith("GPU 3 (GPU-")
    assert health.log.endswith(log)


def test_an_xid_of_an_application_does_not_fail_a_node():
    assert all(r.passed for r in results(cluster(GpuFails(node=A, gpu=3, at=NOW, xid=31))))


# --- GPUs ---


def test_readings_follow_what_runs():
    """G1: what the agent on the node will see."""
    c = cluster()
    c.submit(job("train", gpus=3), NOW)
    readings = c.gpu_readings(A, NOW)
    assert [r["utilisation_percent"] != 0 for r in readings] == [True] * 3 + [False] * 5
    assert [r["uuid"] for r in readings] == [g.uuid for g in c.observe(NOW).nodes[A].gpus]
    assert all(r["recovery_action"] == 0 and r["xids"] == [] for r in readings)


def test_a_lost_gpu_answers_nothing_and_is_no_zero():
    c = cluster(GpuFails(node=A, gpu=0, at=NOW, until=NOW + HOUR, xid=79, lost=True))
    lost, well = c.gpu_readings(A, NOW)[:2]
    assert lost["lost"] is True
    assert lost["xids"] == [{"xid": 79, "at": "2026-11-21T08:00:00Z"}]
    assert "temp_c" not in lost
    assert well["lost"] is False
    assert c.gpu_readings(A, NOW + HOUR)[0]["lost"] is False


def test_no_agent_answers_on_a_dead_node():
    c = cluster(NodeDies(node=A, at=NOW))
    with pytest.raises(Fault) as caught:
        c.gpu_readings(A, NOW)
    assert caught.value.reason == "NodeNotReady"


# --- the fleet and the state ---


def test_a_changed_manifest_moves_nodes_and_not_leases():
    c = cluster()
    c.submit(job("train"), NOW)
    c.follow(spec([B, "new"]))
    view = c.observe(NOW)
    assert list(view.nodes) == [B, "new"]
    assert phases(c, NOW) == {"train": "Pending"}
    c.follow(spec())
    assert c.observe(NOW).nodes[A].lease == LEASE
    assert phases(c, NOW) == {"train": "Running"}


def test_a_lease_on_a_node_that_left_can_be_ended():
    c = cluster()
    c.follow(spec([B]))
    assert c.remove(A, LEASE.uid, STAMP, NOW) == Done()
    c.follow(spec())
    assert c.observe(NOW).nodes[A].lease is None


def test_scripted_faults_survive_a_restart_and_are_not_doubled(tmp_path):
    script = (
        NodeDies(node=B, at=NOW + HOUR),
        GpuFails(node=A, gpu=1, at=NOW, xid=48),
        CheckFails(node=B, check="Network", at=NOW, stage="post", times=2),
    )
    state = tmp_path / "east.json"
    cluster(*script, state=state)
    again = EmbeddedCluster("east", spec(), state, script)
    assert again._state._world.faults == script
    assert not again.observe(NOW + HOUR).nodes[B].ready


def test_a_spent_fault_stays_spent_after_a_restart(tmp_path):
    script = CheckFails(node=A, check="NcclLatency", at=NOW, times=1)
    state = tmp_path / "east.json"
    results(cluster(script, state=state))
    again = EmbeddedCluster("east", spec(), state, (script,))
    other = LeaseRef("gpr-00000002-bbbb", "speech/tune", "speech", NOW + HOUR)
    assert all(r.passed for r in results(again, lease=other))


def test_a_quiet_look_writes_nothing(tmp_path):
    state = tmp_path / "east.json"
    c = cluster(state=state)
    before = state.stat().st_mtime_ns, state.stat().st_ino
    c.observe(NOW + HOUR)
    c.add(A, LEASE, STAMP, NOW + HOUR)
    assert (state.stat().st_mtime_ns, state.stat().st_ino) == before
    c.evict(A, LEASE.uid, NOW, STAMP, NOW + HOUR)
    before = state.stat().st_mtime_ns, state.stat().st_ino
    c.evict(A, LEASE.uid, NOW, STAMP, NOW + 2 * HOUR)
    assert (state.stat().st_mtime_ns, state.stat().st_ino) == before


def test_a_crash_before_the_file_is_replaced_leaves_the_state_as_it_was(tmp_path):
    state = tmp_path / "east.json"
    before = cluster(state=state).observe(NOW)
    state.with_name("east.json.new").write_text('{"format": 1, "wor')
    assert EmbeddedCluster("east", spec(), state).observe(NOW) == before


@pytest.mark.parametrize("content", ['{"format": 1', '{"format": 2, "world": {}}', "{}"])
def test_a_file_that_is_no_state_is_named_and_left_alone(tmp_path, content):
    state = tmp_path / "east.json"
    state.write_text(content)
    with pytest.raises(Fault, match=r"east\.json") as caught:
        EmbeddedCluster("east", spec(), state).observe(NOW)
    assert caught.value.reason == "StateUnreadable"
    assert state.read_text() == content


def test_the_driver_follows_from_the_manifest(tmp_path):
    options = DriverOptions(tmp_path)
    assert open_cluster("east", spec(), options).observe(NOW).nodes[A].ready
    for access, reason in (
        (None, "ClusterAccessMissing"),  # no cluster runs us
        (Access(secret="west"), "ClusterAccessMissing"),
        (Access(kubeconfig="west"), "ClusterAccessMissing"),
        (Access(pull=True), "DriverMissing"),
    ):
        west = spec(driver="kubernetes").model_copy(update={"access": access})
        with pytest.raises(UserError) as caught:
            open_cluster("west", west, options)
        assert caught.value.reason == reason


def test_a_workload_shows_when_its_node_is_drained_if_that_is_sooner():
    """J4: a node that is taken out of a running lease."""
    c = cluster()
    c.submit(job("train"), NOW)
    c.evict(A, LEASE.uid, NOW + MINUTE, STAMP, NOW)
    assert c.show_end(LEASE, STAMP, NOW) == Done()
    assert [w.ends_at for w in c.observe(NOW).workloads] == ["2026-11-21T08:01:00Z"]
