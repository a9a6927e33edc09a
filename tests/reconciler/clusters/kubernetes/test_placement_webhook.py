"""Our webhook changes and judges pods of slices on an API server that has policies, where the manifest asks for it.

The server of 1.20 falls at a webhook's patch (see `test_placement`), so what our webhook writes is tested on this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.clusters.kubernetes.api.api_features import ADMISSION, discover
from reconciler.clusters.kubernetes.names import SLICE
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judged import CASES, OURS, Case, gpu_pod, pod
from tests.reconciler.clusters.kubernetes.judging import Judged, judged
from tests.support.kube import Plane


@pytest.fixture(scope="module")
def asked(new_plane: Plane) -> Iterator[Judged]:
    """1.36, all by our webhook."""
    new_plane.wipe()
    api = new_plane.api
    with judged(api, discover(api), Admission(mode="webhook"), patches=True) as found:
        yield found


@pytest.mark.parametrize("case", CASES)
def test_a_new_pod(case: Case, asked: Judged) -> None:
    """Every rule that it breaks is told; what is missing in a GPU pod, it has been given."""
    told = asked.verdict(case.pod)
    refused = [reason for reason in case.refused if reason != "NotPlaced"]
    assert bool(told) == bool(refused), told
    assert all(f"{reason}: " in told for reason in refused), told


def test_what_the_webhook_writes_comes_beside_what_the_user_wrote(asked: Judged) -> None:
    other = {"key": "spot", "operator": "Exists"}
    item = gpu_pod(nodeSelector={"zone": "a"}, tolerations=[other])
    item["metadata"]["annotations"] = {"mine": "kept"}
    made = asked.trial(item)
    assert made["spec"]["nodeSelector"] == {"zone": "a", SLICE: "vision"}
    assert [t for t in made["spec"]["tolerations"] if not t["key"].startswith("node.kubernetes.io")] == [
        other,
        OURS,
    ]
    assert made["metadata"]["annotations"]["mine"] == "kept"
    assert "nodeSelector" not in asked.trial(pod())["spec"]


def test_a_pod_that_claims_devices_is_given_its_slices_nodes(asked: Judged) -> None:
    """Dynamic resource allocation; by the policies of this server too, see `test_placement`."""
    made = asked.trial(pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]))
    assert made["spec"]["nodeSelector"] == {SLICE: "vision"}


def test_no_policy_does_it(asked: Judged) -> None:
    for plural in ("mutatingadmissionpolicies", "validatingadmissionpolicies"):
        assert not [
            item["metadata"]["name"]
            for item in asked.api.items(f"{ADMISSION}/{plural}")
            if item["metadata"]["name"].startswith("egs-default-")
        ]
