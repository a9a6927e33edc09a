"""Two control planes, one repository: what a data scientist and an admin live through in a day.

A14, C3, C6, C8, C11, D7, D12, F2, F6, F7, F9, H13, H15, J1: on real API servers, schedulers and controllers.
"""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.api.api_client import Rejected
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.names import SLICE
from schemas.status.gpr_status import Phase
from tests.e2e.fleet import fleet
from tests.support.kube import ON_NEW, ON_OLD, control_plane, eventually
from tests.support.world import cluster, project, slice_

EAST, WEST = ("e1", "e2", "e3"), ("w1",)


@pytest.fixture(
    params=[
        pytest.param(("kube", "EGS_TEST_KUBE"), id="old", marks=ON_OLD),
        pytest.param(("new_kube", "EGS_TEST_KUBE_NEW"), id="new", marks=ON_NEW),
    ]
)
def planes(request):
    """Two control planes of one version: an old one, or one whose API server places pods by policies."""
    shared, variable = request.param
    with control_plane(variable) as west:
        yield {"east": request.getfixturevalue(shared), "west": west}


@pytest.fixture
def world(planes, tmp_path):
    """Cluster east with three nodes, west with one; slice vision in both, speech in west."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    files = {"project.yaml": project()}
    nodes = {"east": EAST, "west": WEST}
    for name, names in nodes.items():
        # The old server would need our webhook for it; without, people place their pods themselves.
        places = discover(planes[name].api).mutating_policies
        more = {
            "pools": [{**pool, "nodes": list(names)}],
            "admission": {"mode": "auto" if places else "none"},
        }
        files[f"clusters/{name}.yaml"] = cluster(name, driver="kubernetes", **more)
    for name, where in (("vision", ("east", "west")), ("speech", ("west",))):
        files[f"slices/{name}/slice.yaml"] = slice_(name, where)
    with fleet(tmp_path, planes, nodes, files) as made:
        yield made


def refusal(api, pod):
    """What the server says against a pod; empty: it would be let in."""
    try:
        api.create("/api/v1/namespaces/vision/pods?dryRun=All&x=", pod)
    except Rejected as no:
        return str(no)
    return ""


def test_a_day(world):
    east, west = world.sites["east"], world.sites["west"]

    # New slices have namespaces and no GPU: GPU pods wait, CPU pods run.
    world.run(0)
    east.submit("vision", "train", gpus=8, replicas=2)
    east.submit("vision", "web", gpus=0)
    west.submit("speech", "tune", gpus=4)
    east.settle(world.now)
    west.settle(world.now)
    assert east.pods("vision") == {"train-0": None, "train-1": None, "web-0": "cpu-1"}

    # Where the server places pods, the ways around are closed.
    for around in ({"nodeName": "e1"}, {"tolerations": [{"operator": "Exists"}]}) if east.places else ():
        spec = {**around, "containers": [{"name": "x", "image": "example.com/x"}]}
        sneaky = {"metadata": {"name": "sneaky"}, "spec": spec}
        said = "spec.nodeName" if "nodeName" in around else "toleration"
        # A server learns its policies a moment after they were written.
        eventually(lambda sneaky=sneaky, said=said: said in refusal(east.api, sneaky), f"refused for {said}")

    # Requests start: waiting pods run by themselves, on the slice's nodes and nowhere else.
    world.file("vision/first", nodes=2, duration="1h")
    world.file("speech/first", duration="1h")
    world.run(10)
    held = world.status("vision/first")
    assert held.phase is Phase.PROVISIONED
    assert held.assignment is not None
    assert held.assignment.cluster == "east"
    assert {n for p, n in east.pods("vision").items() if p.startswith("train")} == set(held.assignment.nodes)
    assert west.pods("speech") == {"tune-0": "w1"}
    (free,) = set(EAST) - set(held.assignment.nodes)
    assert [t["key"] for t in east.node(free)["spec"]["taints"]] == [SLICE]

    # What somebody changes is put right, and told.
    bad = held.assignment.nodes[0]
    east.api.merge(f"/api/v1/nodes/{bad}", {"metadata": {"labels": {SLICE: None}}})
    east.api.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings/egs-members")
    world.run(12)
    assert east.node(bad)["metadata"]["labels"][SLICE] == "vision"
    assert east.api.find("/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings/egs-members")
    assert "DriftRepaired" in world.told()

    # A node falls silent: the spare comes first, then the bad one goes; the end stays.
    east.kubelets.kill(bad, world.now)
    world.run(25)
    now_held = world.status("vision/first")
    assert now_held.assignment is not None
    assert set(now_held.assignment.nodes) == {free, held.assignment.nodes[1]}
    assert now_held.end_time == held.end_time
    assert {n for p, n in east.pods("vision").items() if p.startswith("train")} == set(
        now_held.assignment.nodes
    )
    assert SLICE not in east.node(bad)["metadata"]["labels"]

    # Another controller takes over in the middle; the first one does no harm any more.
    old, world.controller = world.controller, world.start()
    world.run(30)
    assert not old.cycle(world.now).leading
    assert world.status("vision/first").phase is Phase.PROVISIONED

    # The strict end: GPU pods are back in the queue, the others never noticed.
    world.run(70)
    assert world.status("vision/first").phase is Phase.COMPLETED
    assert east.pods("vision") == {"train-0": None, "train-1": None, "web-0": "cpu-1"}
    assert west.pods("speech") == {"tune-0": None}
    for node in (*now_held.assignment.nodes,):
        found = east.node(node)
        assert SLICE not in found["metadata"]["labels"]
        assert not found["spec"].get("unschedulable")
