"""Endpoints on a real API server, with the published definitions of Gateway API and KEDA (J2)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.names import MANAGER
from reconciler.clusters.kubernetes.workloads.endpoint_states import ready_of
from reconciler.clusters.kubernetes.workloads.object_states import state_of
from reconciler.clusters.kubernetes.workloads.workload_writer import handed_over
from reconciler.endpoints.rendered import objects_of
from reconciler.model.cluster_port import Done
from reconciler.model.workload_port import ENDPOINT_LABEL, LEAST_REPLICAS
from schemas.documents.endpoint import Gateway, Scaling
from schemas.status.workload_status import ObjectState
from tests.contract.test_workload_contract import terms
from tests.reconciler.clusters.kubernetes.test_workloads_applied import Bench, new_bench
from tests.support.crds import GATEWAY_API, KEDA, install_crds
from tests.support.endpoints import spec_of, version
from tests.support.kube import Plane, eventually

__all__ = ["new_bench"]
ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/vision-train/httproutes"
PORTAL = "https://egs.example.com"
GATEWAY = Gateway(name="public", namespace="gateways", listener="https")
SPEC = spec_of(
    versions=[
        version("v1", cache="weights", secret="hub", gpusPerReplica=2, replicas={"min": 2, "max": 2}),
        version("v2", replicas={"min": 2, "max": 3}),
    ],
    weights={"v1": 90, "v2": 10},
    route={"hostnames": ["chat.example.com"]},
    scaling={"by": "keda", "authentication": "egs"},
)


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Writes of objects from now on, in order."""
    done: list[str] = []

    def noting(verb: str) -> None:
        write = getattr(Api, verb)

        def noted(api: Api, path: str, *rest: Any, **more: Any) -> Any:
            done.append(f"{verb} {'/'.join(path.split('/')[-2:])}")
            return write(api, path, *rest, **more)

        monkeypatch.setattr(Api, verb, noted)

    noting("apply")
    noting("delete")
    return done


def test_an_endpoint_is_applied_with_the_members_rights_and_its_weights_move(
    new_bench: Bench, new_kube: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is foreign to the definitions, and applying it again changes nothing."""
    install_crds(new_kube.api, GATEWAY_API)
    install_crds(new_kube.api, KEDA)
    made = objects_of("vision/chat", SPEC, {"v1": 90, "v2": 10}, GATEWAY, PORTAL)
    scaled = SPEC.edited(scaling=Scaling(by="hpa"))
    counted = objects_of("vision/chat", scaled, {"v1": 100}, None)[-1]
    for each in (*made, counted):
        group = each["apiVersion"]
        place = (
            f"/{'apis' if '/' in group else 'api'}/{group}/namespaces/vision-train/{each['kind'].lower()}s"
        )
        new_kube.api._json("POST", place, {"fieldValidation": "Strict", "dryRun": "All"}, each)

    def applied() -> bool:
        return new_bench.run(terms(*made)) == Done()

    eventually(applied, "all objects, once the API server has seen the members' rights")
    deployments = "/apis/apps/v1/namespaces/vision-train/deployments"
    assert new_kube.api.get(f"{deployments}/chat-v2")["spec"]["replicas"] == 2, (
        "the least, before a scaler is there"
    )
    states = {each.id: each.state for each in new_bench.placed().objects}
    assert not {ObjectState.CHANGED, ObjectState.MISSING, ObjectState.REFUSED} & {*states.values()}
    first, second = SPEC.versions
    scales = first.edited(replicas=first.replicas.edited(max=3))
    more = second.edited(replicas=second.replicas.edited(min=3, max=4))
    spec = SPEC.edited(versions=(scales, more))
    moved = objects_of("vision/chat", spec, {"v1": 0, "v2": 100}, GATEWAY, PORTAL)
    assert new_bench.run(terms(*moved)) == Done()
    (rule,) = new_kube.api.get(f"{ROUTES}/chat")["spec"]["rules"]
    assert [backend["weight"] for backend in rule["backendRefs"]] == [0, 100]
    counts = [
        new_kube.api.get(f"{deployments}/{name}")["spec"]["replicas"] for name in ("chat-v1", "chat-v2")
    ]
    assert counts == [2, 3], "until the scaler says otherwise"
    alone = SPEC.edited(versions=(second,))
    done = recorded(monkeypatch)
    assert new_bench.run(terms(*objects_of("vision/chat", alone, {"v2": 100}, GATEWAY, PORTAL))) == Done()
    assert done.index("apply httproutes/chat") < done.index("delete deployments/chat-v1"), (
        "no route leads nowhere"
    )


@pytest.mark.parametrize(
    ("have", "owner", "least", "want"),
    [
        pytest.param(None, "", "4", 4, id="a new one begins with the least"),
        pytest.param(2, MANAGER, "2", 2, id="ours stays until a scaler writes its own"),
        pytest.param(6, MANAGER, "4", 6, id="ours does not fall"),
        pytest.param(1, "kcm", "4", 4, id="fewer than the least wrote no scaler"),
        pytest.param(5, "kcm", "4", None, id="a scaler's number is its own"),
        pytest.param(5, MANAGER, None, None, id="a number in the document is applied with the rest"),
    ],
)
def test_how_many_replicas_are_handed_over(
    have: int | None, owner: str, least: str | None, want: int | None
) -> None:
    """J2: where the cluster has no KEDA, or KEDA refuses, `min` replicas run."""
    notes = {} if least is None else {LEAST_REPLICAS: least}
    body = {"metadata": {"labels": {ENDPOINT_LABEL: "chat"}, "annotations": notes}, "spec": {}}
    entry = {"manager": owner, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    found = {"metadata": {"managedFields": [entry]}, "spec": {"replicas": have}}
    assert handed_over(None if have is None else found, body) == want


def test_states_of_what_only_endpoints_have() -> None:
    """As Gateway API, KEDA, KServe and Kubernetes document them: their controllers do not run in tests."""

    def route(*conditions: dict[str, str]) -> tuple[ObjectState, str]:
        found = state_of("HTTPRoute", {"status": {"parents": [{"conditions": list(conditions)}]}})
        return found[0], found[1]

    accepted = {"type": "Accepted", "status": "True", "reason": "Accepted"}
    lost = {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound"}
    assert route(accepted) == (ObjectState.READY, "")
    assert route(accepted, lost) == (ObjectState.PENDING, "BackendNotFound")
    assert route() == (ObjectState.PENDING, "")
    assert state_of("HTTPRoute", {})[0] is ObjectState.PENDING
    no = {"type": "Ready", "status": "False", "reason": "TriggerError", "message": "no answer"}
    assert state_of("ScaledObject", {"status": {"conditions": [no]}}) == (
        ObjectState.PENDING,
        "TriggerError",
        "no answer",
    )
    yes = {"type": "Ready", "status": "True"}
    assert state_of("InferenceService", {"status": {"conditions": [yes]}})[0] is ObjectState.RUNNING
    active = {"type": "ScalingActive", "status": "True"}
    assert state_of("HorizontalPodAutoscaler", {"status": {"conditions": [active]}})[0] is ObjectState.READY
    assert ready_of("Deployment", {"status": {"readyReplicas": 2}}) == 2
    assert (ready_of("Deployment", {}), ready_of("InferenceService", {})) == (0, None)
