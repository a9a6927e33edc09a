"""Reports of appliers: what is written is read back, however large; what is no report is refused (A2; principle 8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.applier_report import (
    FILE_BYTES,
    HEAD,
    MOST_FILES,
    Rendering,
    Report,
    is_ours,
    report_from,
    rows_of,
)
from reconciler.model.cluster_port import (
    Busy,
    CheckResult,
    ClusterView,
    Difference,
    GpuView,
    LeaseRef,
    NodeView,
    Refused,
    Stamp,
    UnmanagedNode,
    WorkloadView,
)
from reconciler.model.workload_port import ObjectView, PlacedWorkload, WorkloadRun
from schemas.errors import Fault
from schemas.status.workload_status import ObjectState

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LEASE = LeaseRef("gpr-1", "vision/train", "vision", NOW + timedelta(hours=1), "1g.10gb")


SERVED = PlacedWorkload(
    "vision/endpoint.chat",
    "vision-dev",
    WorkloadRun("gpr-1", NOW),
    "sha256:0",
    (ObjectView("Deployment", "chat-v1", ObjectState.RUNNING, ready=2),),
)


def node(name: str, gpus: int = 8, **more: object) -> NodeView:
    cards = tuple(GpuView(f"GPU-{name}-{i}", i, "H100-80GB", 81920) for i in range(gpus))
    return NodeView(name, "h100", True, gpus=cards, attributes={"zone": "a"}, **more)  # type: ignore[arg-type]


def report(nodes: int = 3, pods: int = 2, gpus: int = 8) -> Report:
    """A cluster of that size in which everything there is has something to say."""
    found = {f"n-{i:05}": node(f"n-{i:05}", gpus) for i in range(nodes)}
    found["n-00000"] = replace(
        found["n-00000"], lease=LEASE, stamp=Stamp(3, 7), draining=True, foreign=("x/y",), unfit="yes: #1"
    )
    view = ClusterView(
        NOW,
        found,
        {"vision": ("vision-train", "vision-dev"), "empty": ()},
        tuple(WorkloadView(f"pod-{i}", "vision-dev", "vision", 1, "Pending") for i in range(pods)),
        (UnmanagedNode("other", "NVIDIA-L4", 1),),
        frozenset({("gpr-1", NOW)}),
        placed={SERVED.key: SERVED},
    )
    return Report(
        at=NOW,
        every=timedelta(minutes=5),
        acted=Stamp(3, 9),
        view=view,
        checks={
            ("gpr-1", "n-00001", "pre"): (CheckResult("nccl", False, "12 GB/s", "line 1\nline 2"),),
            ("gpr-1", "n-00002", "pre"): Busy(NOW + timedelta(seconds=30), "running"),
        },
        refusals={("ADD", "n-00001", "gpr-1"): Refused("NodeHeld", "another one has it")},
        differences=(Difference("vision", "Role vision-dev/egs", "changed", "rules, by kubectl"),),
        terms={"vision": "0badf00d"},
    )


def read(cluster: str, files: dict[str, bytes]) -> Report:
    return report_from(cluster, {path: rows_of(path, data) for path, data in files.items()})


def test_what_is_written_is_read_back():
    got, want = read("east", Rendering().files("east", report())), report()
    assert got == want
    assert all(is_ours(path) for path in Rendering().files("east", want))


def test_a_cluster_that_cannot_be_seen_says_why():
    said = Report(NOW, timedelta(minutes=5), trouble="its API server does not answer: \x1b[31mtimeout")
    got = read("east", Rendering().files("east", said))
    assert got.view is None
    assert got.trouble == "its API server does not answer: \ufffd[31mtimeout"


def test_five_thousand_nodes_and_twenty_thousand_pods_are_many_small_files():
    files = Rendering().files("east", report(5_000, 20_000, gpus=2))
    assert max(map(len, files.values())) < FILE_BYTES
    folders = [path.partition("/")[0] for path in files]
    assert max(folders.count(folder) for folder in set(folders)) <= MOST_FILES
    assert len(read("east", files).view.nodes) == 5_000  # type: ignore[union-attr]


def test_one_changed_node_is_one_changed_file():
    rendering, said = Rendering(), report(2_000, gpus=4)
    before = rendering.files("east", said)
    assert said.view is not None
    nodes = {**said.view.nodes, "n-00777": replace(said.view.nodes["n-00777"], ready=False)}
    after = rendering.files("east", replace(said, view=replace(said.view, nodes=nodes)))
    changed = [path for path in after if after[path] != before.get(path)]
    assert len(changed) == 1
    assert changed[0].startswith("nodes/")
    assert before.keys() == after.keys()


HEADED = "apiVersion: egs.dev/v1alpha1\nkind: ClusterReport\ncluster: east\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(
            "nodes/000.yaml", "- {name: ../../main, pool: h100, ready: true}", id="a name that climbs"
        ),
        pytest.param(
            "nodes/000.yaml", '- {name: "a\\nb", pool: h100, ready: true}', id="a name of two lines"
        ),
        pytest.param(
            "nodes/000.yaml", f"- {{name: {'a' * 254}, pool: h100, ready: true}}", id="an endless name"
        ),
        pytest.param("nodes/000.yaml", "- {name: a, pool: h100, ready: perhaps}", id="no truth"),
        pytest.param("nodes/000.yaml", "- {name: a}", id="a field that is missing"),
        pytest.param("nodes/000.yaml", "name: a", id="no list"),
        pytest.param("nodes/000.yaml", "- &a {name: a, pool: b, ready: true}\n- *a", id="an alias"),
        pytest.param("nodes/000.yaml", "- !!python/object:os.system {}", id="a tag"),
        pytest.param("nodes/000.yaml", "[" * 5000, id="too deep"),
        pytest.param("nodes/000.yaml", "- a\n" * 400_000, id="too large"),
        pytest.param(
            "nodes/000.yaml",
            "- {name: a, pool: p, ready: true, lease: {uid: u, request: a/b, slice: a, end: '2026-11-21T08:00:00'}}",
            id="an end without a zone",
        ),
        pytest.param(
            "nodes/000.yaml",
            "- {name: a, pool: p, ready: true, lease: {uid: u, request: a, slice: a, end: '2026-11-21T08:00:00Z'}}",
            id="a request without a slice",
        ),
        pytest.param("slices/000.yaml", "- {name: a, namespaces: ['..']}", id="a namespace that is none"),
        pytest.param(
            "checks/000.yaml",
            "- {uid: u, node: a, stage: pre, until: '9999-12-31T23:59:59Z'}",
            id="an instant that overflows",
        ),
        pytest.param("checks/000.yaml", "- {uid: u, node: a, stage: never}", id="a stage that there is not"),
        pytest.param(
            "served/000.yaml", "- {uid: u, start: '2026-11-21T08:00:00'}", id="a start without a zone"
        ),
        pytest.param(HEAD, HEADED + "at: soon\nevery: 60", id="a head without an instant"),
        pytest.param(HEAD, HEADED + "at: '2026-11-21T08:00:00Z'\nevery: [1]", id="no number of seconds"),
        pytest.param(HEAD, HEADED + "at: '2026-11-21T08:00:00Z'\nevery: 60\nacted: 3", id="no stamp"),
        pytest.param(HEAD, "[]", id="a head that is a list"),
    ],
)
def test_what_is_no_report_is_refused_with_a_sentence(path, text):
    """The branch is written by a machine that may be anybody's by now."""
    with pytest.raises(Fault) as caught:
        rows_of(path, text.encode())
    assert caught.value.reason == "ClusterReportBroken"
    assert path in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_report_of_another_cluster_is_refused():
    with pytest.raises(Fault, match=r"no report\.yaml of cluster west"):
        read("west", Rendering().files("east", report()))


def test_nobody_promises_silence_for_longer_than_an_hour():
    head = HEADED + "at: '2026-11-21T08:00:00Z'\nevery: 999999999999\n"
    assert rows_of(HEAD, head.encode())["every"] == timedelta(hours=1)


@pytest.mark.parametrize("path", ["README.md", "nodes/../x.yaml", "nodes/0000.yaml", "other/000.yaml"])
def test_other_files_do_not_count(path):
    assert not is_ours(path)
