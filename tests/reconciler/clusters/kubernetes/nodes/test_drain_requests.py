"""What is read of a DrainRequest, and which of its pods must still leave (H14)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.clusters.kubernetes.nodes.drain_requests import read_drain_request, still_there
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod


def item(status: Any = None, **spec: Any) -> dict[str, Any]:
    meta = {"namespace": "nvsentinel", "name": "event-1", "resourceVersion": "7"}
    return {
        "metadata": meta,
        "spec": {"nodeName": "gpu-1", **spec},
        **({} if status is None else {"status": status}),
    }


def pod(name: str, **more: Any) -> Pod:
    found = {"node": "gpu-1", "gpus": 0, "phase": "Running", "ends": None, "owner": "", "ours": False, **more}
    return Pod(namespace="a", name=name, uid=name, **found)


def test_a_request_is_read_with_its_pods() -> None:
    found = read_drain_request(item(podsToDrain={"a": ["x", "y"], "b": ["x"], "c": None}))
    assert found is not None
    assert (found.node, sorted(found.pods), found.is_complete) == ("gpu-1", ["a/x", "a/y", "b/x"], False)
    assert found.conditions is None


@pytest.mark.parametrize(
    ("conditions", "complete"),
    [
        ([], False),
        ([{"type": "DrainComplete", "status": "True"}], True),
        ([{"type": "DrainComplete", "status": "False"}], False),
        ([{"type": "DrainDeferred", "status": "True"}], False),
    ],
)
def test_it_is_complete_by_its_condition(conditions: list[dict[str, str]], complete: bool) -> None:
    found = read_drain_request(item({"conditions": conditions}))
    assert found is not None
    assert found.is_complete == complete


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeName": ""}, id="it names no node"),
        pytest.param({"podsToDrain": ["x"]}, id="its pods are in another shape"),
        pytest.param({"podsToDrain": {"a": 1}}, id="its names are no list"),
    ],
)
def test_one_that_cannot_be_read_is_not_answered(spec: dict[str, Any]) -> None:
    assert read_drain_request(item(**spec)) is None


def test_one_that_is_being_deleted_is_over() -> None:
    found = item()
    found["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z"
    assert read_drain_request(found) is None


@pytest.mark.parametrize(
    ("action", "want"), [("COMPONENT_RESET", "COMPONENT_RESET"), ("a\nb", ""), ("x" * 64, ""), (None, "")]
)
def test_only_a_word_is_shown_as_its_action(action: str | None, want: str) -> None:
    found = read_drain_request(item(recommendedAction=action))
    assert found is not None
    assert found.action == want


def test_pods_that_must_leave_are_listed_and_run_on_that_node() -> None:
    request = read_drain_request(
        item(podsToDrain={"a": ["here", "moved", "daemon", "done", "stopped", "gone"]})
    )
    assert request is not None
    pods = (
        pod("here"),
        pod("unlisted"),
        pod("moved", node="gpu-2"),
        pod("daemon", owner="apps/DaemonSet"),
        pod("done", gpus=8, phase="Succeeded"),
        pod("stopped", stopped=True),
    )
    assert [found.name for found in still_there([request], {one.key: one for one in pods})] == ["here"]
