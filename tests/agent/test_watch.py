"""An agent at work on a simulated node: readings in, a report on its branch out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent.release import from_file
from agent.report import PATH, Identity, Reporter, from_text
from agent.simulated import SimulatedReader, file_source
from agent.watch import Manifest, Watch
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import GpuFails, NodeDies
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import LeaseRef, SliceTerms, Stamp
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from tests.support.memory_remote import MemoryRemote

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
TICK, MINUTE = timedelta(seconds=10), timedelta(minutes=1)
NODE = "h100-1"
BRANCH = f"egs/agents/east/{NODE}"
MANIFEST = """apiVersion: egs.dev/v1alpha1
kind: Cluster
metadata: {{name: east}}
spec:
  driver: embedded
  pools:
  - {{name: h100, gpuShape: H100-80GB, gpusPerNode: {gpus}, memoryPerGpu: 80, nodes: 2}}
  health: {{readingsToFail: {patience}, readingsToClear: 2}}
"""


def spec() -> ClusterSpec:
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2}
    return ClusterSpec.model_validate({"driver": "embedded", "pools": (pool,)})


class World:
    """A repository, a simulated cluster and an agent on one of its nodes."""

    def __init__(self, *faults) -> None:
        self.remote = MemoryRemote()
        self.cluster = EmbeddedCluster("east", spec(), faults=faults)
        self.now = NOW
        self.commit_manifest(gpus=8)
        self.start()

    def start(self, boot: str = "boot-1") -> None:
        """A new life of the agent."""
        who = Identity("east", NODE, NODE, "w", boot)
        store = MemoryStore(self.remote)
        reader = SimulatedReader(lambda now: self.cluster.gpu_readings(NODE, now))
        self.watch = Watch(reader, Reporter(store, who), Manifest(store, "main", who, 5 * MINUTE), who)

    def use_gpus(self, since: datetime) -> None:
        """A slice has the node, and a job of it runs there."""
        stamp, lease = Stamp(1, 1), LeaseRef("u", "a/x", "a", since + timedelta(days=1))
        self.cluster.ensure_slice(SliceTerms("a", ("a",)), stamp, since)
        self.cluster.add(NODE, lease, stamp, since)
        self.cluster.submit(Job("train", "a", 8), since)

    def commit_manifest(
        self, gpus: int = 8, patience: int = 3, text: str | None = None, project: str | None = None
    ) -> None:
        store = MemoryStore(self.remote)
        tip = store.fetch(["main"]).get("main")
        content = (text or MANIFEST.format(gpus=gpus, patience=patience)).encode()
        author = Person("Ada", "ada@example.com")
        changes = {"clusters/east.yaml": content}
        if project is not None:
            head = "apiVersion: egs.dev/v1alpha1\nkind: Project\nmetadata: {name: default}\n"
            changes["project.yaml"] = f"{head}spec: {project}\n".encode()
        draft = Draft(changes, "manifest", author, NOW, base=tip, parent=tip)
        assert store.push("main", store.write(draft), tip) is Outcome.COMMITTED

    def cycles(self, count: int):
        """So many readings, ten seconds apart; the last verdict."""
        for _ in range(count):
            verdict = self.watch.cycle(self.now)
            self.now += TICK
        return verdict

    def reports(self):
        """Everything that was reported, oldest first."""
        store = MemoryStore(self.remote)
        tip = store.fetch([BRANCH]).get(BRANCH)
        log = reversed(store.log(tip, 100)) if tip else ()
        return [from_text(store.read_path(c.oid, PATH) or b"") for c in log]


def test_a_quiet_node_is_reported_once():
    world = World()
    world.cycles(30)
    (report,) = world.reports()
    assert (report.healthy, report.at, len(report.gpus), report.idle_since) == (True, NOW, 8, None)


def test_a_node_that_rests_is_reported_idle_once_and_again_when_it_is_used():
    """E8: five minutes of rest are idleness, and the first reading of use ends it."""
    world = World()
    world.cycles(60)
    world.use_gpus(world.now)
    world.cycles(60)
    told = [((r.at - NOW).total_seconds(), r.idle_since) for r in world.reports()]
    assert told == [(0, None), (300, NOW), (600, None)]


def test_the_threshold_of_idleness_is_the_projects():
    """E8: `scheduling.idle.below`; what a simulated GPU at work shows is less than 50 only where it is told so."""
    world = World()
    world.commit_manifest(project="{admins: [{email: ada@example.com}], scheduling: {idle: {below: 50}}}")
    world.start()
    world.watch.cycle(world.now)
    assert world.watch._manifest.orders(world.now).idle_below == 50
    world.commit_manifest(project="{admins: [{email: ada@example.com}], scheduling: {idle: {below: 99}}}")
    world.now += 5 * MINUTE
    assert world.watch._manifest.orders(world.now).idle_below == 50  # invalid: the last valid one stays


def test_a_gpu_that_fails_and_is_repaired_is_told_each_time():
    """H14, H15: bad at once, well again after the driver was content for some readings."""
    fault = GpuFails(node=NODE, gpu=3, at=NOW + MINUTE, until=NOW + 3 * MINUTE, xid=95)
    world = World(fault)
    world.cycles(29)
    told = [(r.healthy, r.reason, (r.at - NOW).total_seconds()) for r in world.reports()]
    assert told == [(True, None, 0), (False, "RecoveryAction1", 60), (True, None, 190)]
    bad = world.reports()[1].gpus[3]
    assert (bad.healthy, bad.reasons) == (False, ("RecoveryAction1", "Xid95"))
    assert world.reports()[1].faults == (NOW + MINUTE,)


@pytest.mark.parametrize(
    ("boot", "healthy"),
    [
        pytest.param("boot-1", False, id="a restart of the agent forgets nothing"),
        pytest.param("boot-2", True, id="a reboot of the node resets its GPUs"),
    ],
)
def test_what_held_before_a_restart(boot, healthy):
    """A driver that cannot say whether the GPU is well again."""
    world = World(GpuFails(node=NODE, gpu=0, at=NOW, xid=79))
    readings = world.cluster.gpu_readings

    def mute(node, now):
        return tuple({k: v for k, v in r.items() if k != "recovery_action"} for r in readings(node, now))

    world.cluster.gpu_readings = mute
    world.cycles(2)
    assert world.reports()[-1].reason == "Xid79"
    world.cluster = EmbeddedCluster("east", spec())
    world.cluster.gpu_readings, readings = mute, world.cluster.gpu_readings
    world.start(boot)
    assert world.cycles(20).healthy is healthy
    assert world.reports()[-1].faults == (NOW,)


def test_thresholds_come_from_the_manifest_as_last_valid():
    """The file decides how long a GPU may be too hot; a broken file changes nothing."""
    world = World(GpuFails(node=NODE, gpu=0, at=NOW, temp_c=99))
    world.commit_manifest(patience=100)
    assert world.cycles(10).healthy
    world.commit_manifest(patience=3)
    assert world.cycles(60).reason == "MemoryTooHot"
    world.commit_manifest(text="kind: [")
    assert world.cycles(60).reason == "MemoryTooHot"


def test_the_manifest_says_how_many_gpus_a_node_has():
    world = World()
    world.commit_manifest(gpus=9)
    assert world.cycles(12).reason == "GpuCountLow"


def test_a_node_that_cannot_be_read_is_no_end_of_its_agent(caplog):
    world = World(NodeDies(node=NODE, at=NOW, until=NOW + MINUTE))
    assert world.cycles(1) is None
    assert "node not read" in caplog.text
    assert world.cycles(10).healthy


def test_a_repository_that_is_away_is_no_end_of_the_agent(caplog):
    world = World()
    world.cycles(1)

    def away(*_):
        raise Fault("the remote did not answer", "RemoteUnreachable")

    store = world.watch._reporter._store
    push, store.push = store.push, away
    world.cluster.inject(GpuFails(node=NODE, gpu=0, at=world.now, lost=True))
    assert world.cycles(8).reason == "GpuLost"
    assert len(world.reports()) == 1
    store.push = push
    world.cycles(1)
    assert [r.reason for r in world.reports()] == [None, "GpuLost"]


def test_faults_that_pile_up_are_told_to_people_once(caplog):
    """H14: the trend, with its instants, for the reconciler's quarantine."""
    faults = [
        GpuFails(node=NODE, gpu=0, at=NOW + i * 10 * MINUTE, until=NOW + (i * 10 + 2) * MINUTE, lost=True)
        for i in range(4)
    ]
    world = World(*faults)
    assert world.cycles(4 * 60).healthy
    assert caplog.text.count("faults pile up") == 1
    assert world.reports()[-1].faults == tuple(NOW + (i * 10 + 1) * MINUTE for i in range(4))


# --- the simulated reader ---


def test_an_xid_is_handed_out_once():
    cluster = EmbeddedCluster("east", spec(), faults=[GpuFails(node=NODE, gpu=0, at=NOW, xid=48)])
    reader = SimulatedReader(lambda now: cluster.gpu_readings(NODE, now))
    assert [x.xid for x in reader.read(NOW)[0].xids] == [48]
    assert reader.read(NOW + TICK)[0].xids == ()


def test_a_file_says_what_it_knows_and_the_rest_is_absent(tmp_path):
    path = tmp_path / "gpus.json"
    path.write_text('[{"uuid": "GPU-b", "index": 1, "product": "H100", "memory_mib": 81920, "temp_c": 50}]')
    (reading,) = SimulatedReader(file_source(path)).read(NOW)
    assert (reading.temp_c, reading.power_w, reading.recovery_action) == (50, None, None)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        pytest.param("[", "cannot be read as JSON", id="no JSON"),
        pytest.param("{}", "not a list", id="no list"),
        pytest.param("[3]", "field 0", id="no object"),
        pytest.param('[{"uuid": "GPU-a"}]', "field 0.index", id="a field is missing"),
        pytest.param('[{"temperature": 3}]', "no field 'temperature'", id="a field of no such name"),
        pytest.param(None, "cannot be read as JSON", id="no file"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place(tmp_path, content, names):
    path = tmp_path / "gpus.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=names):
        SimulatedReader(file_source(path)).read(NOW)


# --- letting go of the driver ---


def test_while_it_is_asked_to_the_agent_lets_go_of_the_driver_and_judges_nothing():
    """H14: the report says so; after it the GPUs are read again, and a fault that was reset away is over."""
    world = World(GpuFails(node=NODE, gpu=0, at=NOW, until=NOW + 3 * MINUTE, xid=95))
    asked = (NOW + MINUTE, NOW + 4 * MINUTE)
    released = []
    world.watch._release = lambda now: asked[0] <= now < asked[1]
    world.watch._reader.release = lambda: released.append(world.now)
    world.cycles(40)
    told = [((r.at - NOW).total_seconds(), r.healthy, r.released_at) for r in world.reports()]
    assert released == [asked[0]]
    assert told == [
        (0, False, None),
        (60, False, asked[0]),
        (240, False, None),
        (250, True, None),
    ]


def test_an_agent_that_cannot_let_go_says_nothing_and_judges_on(caplog):
    """A call that hangs in the driver holds it; a reset would hang too."""
    world = World()

    def hangs():
        raise Fault("a call hangs in the GPU driver", "GpuDriverWedged")

    world.watch._release, world.watch._reader.release = (lambda _: True), hangs
    assert world.cycles(2).healthy
    assert world.reports()[-1].released_at is None
    assert "gpu driver not released" in caplog.text


@pytest.mark.parametrize(
    ("content", "asked", "told"),
    [
        pytest.param(None, False, False, id="no file"),
        pytest.param("", False, False, id="an empty file: the pod has no such annotation"),
        pytest.param("2026-11-21T08:00:01Z\n", True, False, id="until later"),
        pytest.param(
            "2026-11-21T08:00:00Z", False, False, id="until now: a controller that is gone holds no agent"
        ),
        pytest.param("yes", False, True, id="no time"),
    ],
)
def test_a_file_asks_the_agent_to_let_go(tmp_path, caplog, content, asked, told):
    """H14."""
    path = tmp_path / "until"
    if content is not None:
        path.write_text(content)
    assert from_file(path)(NOW) is asked
    assert ("release not understood" in caplog.text) is told


def test_a_crossing_is_one_report_when_it_begins_and_one_when_it_is_over():
    """H6: thresholds come from the manifest, the node stays healthy, and a new process says nothing twice."""
    world = World()
    text = (
        MANIFEST.format(gpus=8, patience=3)
        + "  alerts: {temperature: 99, shapes: [{gpuShape: H100-80GB, SET}]}\n"
    )
    world.commit_manifest(text=text.replace("SET", "powerPercent: 20"))
    world.use_gpus(world.now)
    world.cycles(90)
    world.start()
    world.cycles(30)
    reports = world.reports()
    assert [{r.gpus[0].watched for r in reports}, {r.healthy for r in reports}] == [
        {(), ("PowerHigh",)},
        {True},
    ]
    assert len([r for r in reports if r.gpus[0].watched]) == 1
    world.commit_manifest(text=text.replace("SET", "powerPercent: 100"))
    world.cycles(120)
    assert world.reports()[-1].gpus[0].watched == ()
