"""Work that loses its nodes early keeps its progress: Jobs continue, and pods have time to write. Pure.

A Job counts an evicted pod as a failed one. At its limit it fails, and its other pods are deleted with their
own grace period, however long the notice was. So a slice's GPU Job whose pods never restart is made to ignore
disruptions when it is created (an existing Job's policy cannot change); and a GPU pod gets at least the
notice as grace period. User-written failure policies stay.

Both exist in Python for our webhook and next to it in CEL for policies (made by `admission_policies`). Held by
tests/reconciler/clusters/kubernetes/tenancy/test_disruptions.py, which compares both, and an API server, on
the same objects.
"""

from __future__ import annotations

from reconciler.clusters.kubernetes.admission.pod_review import GPUS, asks_gpus
from reconciler.clusters.kubernetes.api.api_client import Json

JOBS_PATH = "/jobs"
"""Path of our webhook for Jobs."""
POLICY: Json = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
"""Added to GPU Jobs: pods that are evicted, preempted or lost with their node do not count as failed."""
REPLACED = "Failed"
"""The only `podReplacementPolicy` allowed with a `podFailurePolicy`; servers set another default first."""


def sparing(job: Json) -> list[Json]:
    """JSON Patch that makes a new Job ignore disruptions; empty if not applicable."""
    spec = job["spec"]
    pods = spec["template"]["spec"]
    if spec.get("podFailurePolicy") or pods.get("restartPolicy") != "Never" or not asks_gpus(pods):
        return []
    patch: list[Json] = [{"op": "add", "path": "/spec/podFailurePolicy", "value": POLICY}]
    if spec.get("podReplacementPolicy", REPLACED) != REPLACED:
        patch.append({"op": "add", "path": "/spec/podReplacementPolicy", "value": REPLACED})
    return patch


def granting(pod: Json, grace_s: int) -> list[Json]:
    """JSON Patch that gives a new GPU pod at least this grace period."""
    spec = pod["spec"]
    given = spec.get("terminationGracePeriodSeconds")
    if not asks_gpus(spec) or (given is not None and given >= grace_s):
        return []
    return [{"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": grace_s}] if grace_s else []


def granting_cel(grace_s: int) -> str:
    """CEL: the result of `granting` for a pod that asks for GPUs."""
    field = "object.spec.terminationGracePeriodSeconds"
    return (
        f"(has({field}) && {field} >= {grace_s} ? []"
        f" : [JSONPatch{{op: 'add', path: '/spec/terminationGracePeriodSeconds', value: {grace_s}}}])"
    )


SPARED = (
    "!has(object.spec.podFailurePolicy) && has(object.spec.template.spec.restartPolicy)"
    " && object.spec.template.spec.restartPolicy == 'Never'"
    f" && ({GPUS.replace('object.spec.', 'object.spec.template.spec.')})"
)
"""CEL: a Job that `sparing` changes. Uses `object` only, so webhook conditions can contain it."""
_TYPE = "Object.spec.podFailurePolicy"
SPARING = (
    f"[JSONPatch{{op: 'add', path: '/spec/podFailurePolicy', value: {_TYPE}{{rules: [{_TYPE}.rules{{"
    f"action: 'Ignore', onPodConditions: [{_TYPE}.rules.onPodConditions{{type: 'DisruptionTarget', "
    "status: 'True'}]}]}}]"
    f" + (has(object.spec.podReplacementPolicy) && object.spec.podReplacementPolicy != '{REPLACED}'"
    f" ? [JSONPatch{{op: 'add', path: '/spec/podReplacementPolicy', value: '{REPLACED}'}}] : [])"
)
"""CEL: the result of `sparing` for such a Job."""
