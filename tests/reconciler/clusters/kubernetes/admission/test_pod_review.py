"""Pods of a slice are judged alike by our webhook and by the API server's own policies (C3, C6, F6, J1)."""

from __future__ import annotations

import re

import cel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.kubernetes.admission.admission_policies import PLACING, SUSPECT, rules
from reconciler.clusters.kubernetes.admission.pod_review import (
    GPUS,
    VARIABLES,
    Subject,
    placing,
    refusals,
    subject,
    unplaced,
)
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod
from tests.reconciler.clusters.kubernetes.judged import (
    CASES,
    CHANGES,
    GPU,
    OURS,
    PLACED,
    Case,
    Change,
    container,
    gpu_pod,
    namespace,
    patched,
    pod,
)

STRICT = rules("Fail")


def in_python(found: Subject) -> tuple[str, ...]:
    """Reasons of the rules that are broken."""
    return tuple(rule.reason for rule in refusals(found, STRICT))


def in_cel(after: Json, before: Json | None) -> tuple[str, ...]:
    """The same by the text that policies carry."""
    known = evaluated(after, before)
    return tuple(rule.reason for rule in STRICT if cel.evaluate(rule.cel, known))


def evaluated(after: Json, before: Json | None) -> Json:
    """What an expression sees, variables worked out one after the other."""
    known: Json = {
        "object": after,
        "oldObject": before,
        "namespaceObject": namespace(),
        "request": {"operation": "CREATE" if before is None else "UPDATE"},
        "variables": {},
    }
    for name, expression in VARIABLES.items():
        known["variables"][name] = cel.evaluate(expression, known)
    return known


@pytest.mark.parametrize("judge", [in_python, in_cel])
@pytest.mark.parametrize("case", CASES)
def test_a_new_pod(case: Case, judge: object) -> None:
    got = in_python(subject(case.pod, "vision")) if judge is in_python else in_cel(case.pod, None)
    assert got == case.refused


@pytest.mark.parametrize("judge", [in_python, in_cel])
@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_pod(case: Change, judge: object) -> None:
    found = subject(case.after, "vision", case.before)
    assert (in_python(found) if judge is in_python else in_cel(case.after, case.before)) == case.refused


@pytest.mark.parametrize("case", CASES)
def test_a_pod_that_breaks_no_rule_and_asks_for_no_gpu_does_not_depend_on_the_webhook(case: Case) -> None:
    """C3: CPU pods start whatever becomes of us, where the server can tell them apart."""
    known = {"object": case.pod, "oldObject": None, "request": {"operation": "CREATE"}}
    assert cel.evaluate(SUSPECT, known) == (bool(case.refused) or cel.evaluate(GPUS, known))


def placed_in_cel(item: Json) -> list[Json]:
    """The policy's expression; only its objects are written another way."""
    text = re.sub(r"JSONPatch\{op: (.*?), path: (.*?), value: ", r"{'op': \1, 'path': \2, 'value': ", PLACING)
    found: list[Json] = cel.evaluate(text, evaluated(item, None))
    return found


OTHER = {"key": "spot", "operator": "Exists"}
PLACINGS = [
    pytest.param(gpu_pod(), PLACED, id="a bare GPU pod is given both"),
    pytest.param(
        gpu_pod(nodeSelector={"zone": "a"}, tolerations=[OTHER]),
        {"nodeSelector": {"zone": "a", SLICE: "vision"}, "tolerations": [OTHER, OURS]},
        id="what the user wrote stays",
    ),
    pytest.param(gpu_pod(**PLACED), PLACED, id="one that has both is left alone"),
    pytest.param(
        pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]),
        PLACED,
        id="one that claims devices is a GPU pod",
    ),
    pytest.param(
        gpu_pod(tolerations=[{"key": SLICE, "value": "vision"}]),
        {"nodeSelector": {SLICE: "vision"}, "tolerations": [{"key": SLICE, "value": "vision"}]},
        id="a shorter word for the same toleration counts",
    ),
    pytest.param(
        gpu_pod(tolerations=[{**OURS, "effect": "NoExecute"}]),
        {"nodeSelector": {SLICE: "vision"}, "tolerations": [{**OURS, "effect": "NoExecute"}, OURS]},
        id="one for another effect does not",
    ),
    pytest.param(
        gpu_pod(nodeSelector={SLICE: "audio"}),
        {"nodeSelector": {SLICE: "audio"}, "tolerations": [OURS]},
        id="a selector that contradicts ours stays, to be refused",
    ),
]


@pytest.mark.parametrize(("given_", "want"), PLACINGS)
def test_a_gpu_pod_is_given_its_slices_nodes(given_: Json, want: Json) -> None:
    """F6: selector and toleration, and nothing else."""
    patch = placing(given_, "vision")
    after = patched(given_, patch)["spec"]
    assert after == {**given_["spec"], **want}
    assert placed_in_cel(given_) == patch


@pytest.mark.parametrize(
    "given_",
    [
        pytest.param(pod(), id="a plain one"),
        pytest.param(pod(nodeSelector={"zone": "a"}, tolerations=[OTHER]), id="one with wishes of its own"),
        pytest.param(pod(container(resources={"limits": {"cpu": "1"}})), id="one that asks for CPUs"),
        pytest.param(
            pod(container(resources={"limits": {"nvidia.com/gpu": "0"}})), id="one that asks for 0 GPUs"
        ),
    ],
)
def test_a_cpu_pod_is_never_changed(given_: Json) -> None:
    """C3."""
    assert placing(given_, "vision") == []
    assert not cel.evaluate(GPUS, {"object": given_})


@given(st.sets(st.sampled_from(["nodeSelector", "tolerations"])), st.booleans())
def test_a_pod_that_was_given_its_nodes_is_never_changed_again(has: set[str], gpus: bool) -> None:
    """Webhooks are asked again after others changed a pod."""
    spec = {field: PLACED[field] for field in sorted(has)}
    item = gpu_pod(**spec) if gpus else pod(**spec)
    once = patched(item, placing(item, "vision"))
    assert placing(once, "vision") == []


def waiting(**more: object) -> Pod:
    """A GPU pod that nobody judged."""
    given_: Json = {
        "namespace": "vision-train",
        "name": "p",
        "uid": "u",
        "node": None,
        "gpus": 1,
        "phase": "Pending",
        "ends": None,
        "owner": "Job",
        "ours": False,
    }
    return Pod(**{**given_, **more})


SLICES = {"vision-train": "vision"}
SAME = {"op": "test", "path": "/metadata/uid", "value": "u"}


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(
            waiting(),
            (SAME, {"op": "add", "path": "/spec/tolerations", "value": [OURS]}),
            id="without any it is given ours",
        ),
        pytest.param(
            waiting(tolerations=(OTHER,)),
            (
                SAME,
                {"op": "test", "path": "/spec/tolerations", "value": [OTHER]},
                {"op": "add", "path": "/spec/tolerations/-", "value": OURS},
            ),
            id="beside others it is added",
        ),
    ],
)
def test_a_pod_that_nobody_judged_is_repaired(one: Pod, want: tuple[Json, ...]) -> None:
    (repair,) = unplaced([one], SLICES)
    assert repair.path == "/api/v1/namespaces/vision-train/pods/p"
    assert repair.patch == want


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(waiting(tolerations=(OURS,)), id="one that was judged"),
        pytest.param(waiting(gpus=0), id="a CPU pod"),
        pytest.param(waiting(node="gpu-1"), id="one that found a node"),
        pytest.param(waiting(phase="Failed"), id="one that is over"),
        pytest.param(waiting(namespace="default"), id="one of no slice"),
    ],
)
def test_no_other_pod_is_repaired(one: Pod) -> None:
    assert unplaced([one], SLICES) == ()


def test_gpus_are_seen_on_either_side() -> None:
    """Requests alone are refused by API servers, limits alone imply them; we count both."""
    for side in ("limits", "requests"):
        assert placing(pod(container(resources={side: GPU["limits"]})), "vision")
