"""What a check's pod is read as: the most telling thing that its status says (F5)."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.checks.check_jobs import read_check_pod
from reconciler.clusters.kubernetes.names import JOB

UNPLACED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        pytest.param({}, "", id="a pod of which nothing is known yet"),
        pytest.param({"conditions": [UNPLACED]}, "Unschedulable: 0/1 nodes", id="no node takes it"),
        pytest.param(
            {"containerStatuses": [{"state": PULLING}]},
            "ImagePullBackOff: not found",
            id="its image cannot be had",
        ),
        pytest.param(
            {"containerStatuses": [{"state": KILLED}]}, "OOMKilled, exit code 137", id="it was killed"
        ),
        pytest.param(
            {"conditions": [UNPLACED], "containerStatuses": [{"state": KILLED}]},
            "OOMKilled, exit code 137",
            id="a container that ended was placed, whatever an older condition says",
        ),
        pytest.param(
            {"reason": "Evicted", "message": "disk", "containerStatuses": [{"state": KILLED}]},
            "Evicted: disk",
            id="the pod's own reason comes before its container's",
        ),
    ],
)
def test_what_is_wrong_with_the_pod(status: Json, trouble: str) -> None:
    pod = read_check_pod({"metadata": {"name": "p", "labels": {JOB: "check-1"}}, "status": status})
    assert pod is not None
    assert pod.trouble == trouble
