"""GPUs cut for a request and put back together (F12). The tests play the GPU operator's MIG manager."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.clusters.kubernetes.names import MIG_BEFORE, MIG_CONFIG, MIG_STATE
from reconciler.clusters.kubernetes.nodes.mig import (
    Change,
    Failed,
    Ready,
    Waiting,
    layout_of,
    resource_of,
    settle,
    step,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, read_node
from reconciler.clusters.kubernetes.nodes.node_marks import Marks
from reconciler.clusters.kubernetes.nodes.node_writer import NODES, NodeWriter
from reconciler.model.cluster_port import Busy, Refused
from tests.reconciler.clusters.kubernetes.checking import (
    FIRST,
    HOUR,
    LATER,
    MINUTE,
    NOW,
    SECOND,
    SPEECH,
    VISION,
    Bench,
    node,
    spec,
)
from tests.support.kube import gpu_node

CUT = replace(VISION, mig="1g.10gb")
SLICES = "nvidia.com/mig-1g.10gb"


def seen(
    layout: str | None = None,
    state: str = "",
    before: str | None = None,
    resources: dict[str, int] | None = None,
    **more,
) -> Node:
    """A node as an informer would know it."""
    item = gpu_node("h100-1")
    item["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    labels = {MIG_CONFIG: layout, MIG_STATE: state or None, **more}
    item["metadata"]["labels"] |= {k: v for k, v in labels.items() if v is not None}
    item["metadata"]["annotations"] = {} if before is None else {MIG_BEFORE: before}
    counted = {"nvidia.com/gpu": 8} if resources is None else resources
    item["status"]["allocatable"] = {name: str(count) for name, count in counted.items()}
    return read_node(item)


WORD = {
    "change": Change,
    "wait": Waiting,
    "fail": Failed,
    "ready": Ready,
}


@pytest.mark.parametrize(
    ("found", "profile", "word"),
    [
        pytest.param(seen("all-disabled", "success"), "", "ready", id="whole and wanted whole"),
        pytest.param(seen("all-disabled", "success"), "1g.10gb", "change", id="whole and to be cut"),
        pytest.param(seen(None), "1g.10gb", "change", id="never configured"),
        pytest.param(
            seen("all-1g.10gb", "pending", "all-disabled"), "1g.10gb", "wait", id="the manager is at it"
        ),
        pytest.param(seen("all-1g.10gb", "rebooting", "x"), "1g.10gb", "wait", id="the node reboots for it"),
        pytest.param(seen("all-1g.10gb", "", "x"), "1g.10gb", "wait", id="the manager has not begun"),
        pytest.param(seen("all-1g.10gb", "failed", "x"), "1g.10gb", "fail", id="the manager could not"),
        pytest.param(
            seen("all-1g.10gb", "success", "x"),
            "1g.10gb",
            "wait",
            id="cut, and the device plugin lags behind",
        ),
        pytest.param(
            seen("all-1g.10gb", "success", "x", {SLICES: 56}),
            "1g.10gb",
            "ready",
            id="cut, and offered to pods",
        ),
        pytest.param(
            seen("all-1g.10gb", "success", None, {SLICES: 56}), "1g.10gb", "ready", id="it was so before us"
        ),
        pytest.param(
            seen(
                "all-1g.10gb",
                "success",
                "x",
                {"nvidia.com/gpu": 56},
                **{
                    "nvidia.com/mig.strategy": "single",
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                },
            ),
            "1g.10gb",
            "ready",
            id="cut, and offered as GPUs under the strategy single",
        ),
        pytest.param(
            seen("all-disabled", **{"nvidia.com/mig.capable": "false"}),
            "1g.10gb",
            "fail",
            id="GPUs that cannot be cut",
        ),
        pytest.param(
            seen("all-2g.20gb", "success", "all-disabled"), "1g.10gb", "change", id="cut for the lease before"
        ),
        pytest.param(
            seen("all-1g.10gb", "success", "all-disabled", {SLICES: 56}),
            "",
            "change",
            id="to be put back together",
        ),
        pytest.param(
            seen("all-disabled", "pending", "all-disabled"), "", "wait", id="being put back together"
        ),
        pytest.param(seen("all-disabled", "failed", "all-disabled"), "", "fail", id="not put back together"),
        pytest.param(
            seen("all-disabled", "success", "all-disabled", {}),
            "",
            "wait",
            id="whole, and no GPU is offered yet",
        ),
        pytest.param(
            seen("all-disabled", "success", "all-disabled"),
            "",
            "change",
            id="whole again: the memory of it goes",
        ),
        pytest.param(
            seen("custom", "success", "custom", {}), "", "change", id="back to a layout of the people's own"
        ),
    ],
)
def test_what_comes_next(found, profile, word):
    assert type(step(found, profile)) is WORD[word]


def test_what_was_before_is_remembered_from_the_first_lease_on():
    """Two leases in a row: the second must not take the first one's layout for the people's."""
    assert step(seen("mine"), "1g.10gb").annotations == {MIG_BEFORE: "mine"}
    assert step(seen(None), "1g.10gb").annotations == {MIG_BEFORE: "all-disabled"}
    assert step(seen("all-2g.20gb", "", "mine"), "1g.10gb").annotations == {MIG_BEFORE: "mine"}


@pytest.mark.parametrize(
    ("profile", "layout", "resource"),
    [
        pytest.param("1g.10gb", "all-1g.10gb", "nvidia.com/mig-1g.10gb", id="plain"),
        pytest.param("1g.10gb+me", "all-1g.10gb.me", "nvidia.com/mig-1g.10gb.me", id="with an attribute"),
    ],
)
def test_names_are_those_of_the_mig_manager_and_the_device_plugin(profile, layout, resource):
    assert (layout_of(profile), resource_of(profile)) == (layout, resource)


@pytest.fixture
def bench(kube):
    made = Bench(kube, spec())
    made.add(node(**{MIG_CONFIG: "all-disabled"}))
    yield made
    made.stop()


def manager(bench: Bench, state: str, **resources: int | None) -> None:
    """The MIG manager reports, and the device plugin with it."""
    bench.label("h100-1", **{MIG_STATE: state})
    if resources:
        counted = {f"nvidia.com/{n}": None if c is None else str(c) for n, c in resources.items()}
        bench.status("h100-1", {"allocatable": counted, "capacity": counted})


def labels(bench: Bench) -> dict[str, str]:
    return bench.plane.api.get(f"{NODES}/h100-1")["metadata"]["labels"]


def test_a_node_is_cut_before_its_checks_and_put_back_after_its_end(bench):
    """F12, the whole way round."""
    manager(bench, "success")
    bench.ask(lease=CUT)
    assert isinstance(bench.ask(NOW + SECOND, lease=CUT), Busy)
    assert labels(bench)[MIG_CONFIG] == "all-1g.10gb"
    assert MIG_STATE not in labels(bench), "the state before must not pass for the new one"
    manager(bench, "pending")
    assert "(pending)" in bench.ask(NOW + 3 * SECOND, lease=CUT).message
    manager(bench, "success", **{"gpu": 0, "mig-1g.10gb": 56})
    results, _ = bench.answer(NOW + 10 * SECOND, lease=CUT)
    assert [(r.name, r.passed) for r in results[:2]] == [("MigLayout", True), ("NodeHealth", True)]
    assert "NcclLatency" not in [r.name for r in results]
    assert isinstance(bench.ask(NOW + HOUR, "post", lease=CUT), Busy)
    assert isinstance(bench.ask(NOW + HOUR + SECOND, "post", lease=CUT), Busy)
    assert labels(bench)[MIG_CONFIG] == "all-disabled"
    manager(bench, "success", **{"gpu": 8, "mig-1g.10gb": None})
    results, _ = bench.answer(NOW + HOUR + MINUTE, "post", lease=CUT)
    assert all(r.passed for r in results)
    assert MIG_BEFORE not in bench.nodes.items()["h100-1"].annotations


def test_a_node_that_reboots_to_be_cut_is_waited_for(bench):
    bench.ask(lease=CUT)
    bench.ask(NOW + SECOND, lease=CUT)
    manager(bench, "rebooting")
    bench.status("h100-1", {"conditions": [{"type": "Ready", "status": "Unknown"}]})
    assert isinstance(bench.ask(NOW + MINUTE, lease=CUT), Busy)


@pytest.mark.parametrize(
    ("state", "at", "log"),
    [
        pytest.param("failed", 2 * SECOND, "could not apply layout all-1g.10gb", id="the manager gave up"),
        pytest.param("pending", 5 * MINUTE, "(pending) after 5 min", id="it takes too long"),
    ],
)
def test_a_layout_that_does_not_come_fails_the_checks_and_is_rolled_back(bench, state, at, log):
    bench.ask(lease=CUT)
    bench.ask(NOW + SECOND, lease=CUT)
    manager(bench, state)
    results = bench.ask(NOW + at, lease=CUT)
    failed = {r.name: r.log for r in results if not r.passed}
    assert log in failed["MigLayout"]
    assert labels(bench)[MIG_CONFIG] == "all-disabled"


def test_a_node_cut_for_a_lease_that_never_began_is_swept_back(bench):
    """The request was cancelled after its checks."""
    bench.ask(lease=CUT)
    bench.ask(NOW + SECOND, lease=CUT)
    bench.checks.sweep(bench.fleet(), FIRST, NOW + MINUTE)
    assert labels(bench)[MIG_CONFIG] == "all-1g.10gb"
    bench.checks.sweep(bench.fleet(), FIRST, NOW + HOUR)
    assert labels(bench)[MIG_CONFIG] == "all-disabled"
    assert bench.checks.left_over(bench.fleet(), NOW + HOUR) == (), "the manager's turn"
    manager(bench, "success")
    bench.checks.sweep(bench.fleet(), FIRST, NOW + HOUR)
    assert MIG_BEFORE not in bench.fleet()[0].annotations


def test_the_next_lease_waits_until_the_node_is_whole(bench):
    """Whoever finds it cut puts it back."""
    bench.ask(lease=CUT)
    bench.ask(NOW + SECOND, lease=CUT)
    manager(bench, "success", **{"gpu": 0, "mig-1g.10gb": 56})
    bench.ask(NOW + MINUTE, lease=SPEECH)
    assert isinstance(bench.ask(NOW + MINUTE + SECOND, lease=SPEECH), Busy)
    assert labels(bench)[MIG_CONFIG] == "all-disabled"


def test_a_node_that_serves_is_never_cut(bench):
    """It would evict what runs there."""
    writer = NodeWriter(bench.plane.api, bench.nodes, "default")
    writer.change("h100-1", FIRST, lambda _, marks: replace(marks, lease=SPEECH))
    bench.ask(lease=CUT)
    bench.ask(NOW + SECOND, lease=CUT)
    assert labels(bench)[MIG_CONFIG] == "all-disabled"


def test_an_older_controller_cuts_nothing(bench):
    writer = NodeWriter(bench.plane.api, bench.nodes, "default")
    writer.change("h100-1", LATER, lambda _, marks: Marks())
    answer = settle(writer, bench.nodes.items()["h100-1"], "1g.10gb", FIRST)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert labels(bench)[MIG_CONFIG] == "all-disabled"
