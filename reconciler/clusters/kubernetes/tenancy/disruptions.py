"""Work that loses its nodes before it is done keeps what it has done: Jobs go on, and pods have time to write. Pure.

A Job counts a pod that was evicted as one that failed. At its limit it fails as a whole, and its other pods are deleted
with their own grace, however long the notice was. So a GPU Job of a slice whose pods never restart is told to ignore
disruptions, as it is made (the policy of a living Job cannot change); and a GPU pod gets the notice as grace at least.
What people wrote themselves about failures of pods stays.

Both stand in Python for our webhook and beside it in CEL for policies (`policies` makes them). Held by
tests/reconciler/clusters/kubernetes/tenancy/test_disruptions.py, which asks both, and an API server, about the same
objects.
"""

from __future__ import annotations

from reconciler.clusters.kubernetes.admission.pod_review import GPUS, asks_gpus
from reconciler.clusters.kubernetes.api.api_client import Json

JOBS_PATH = "/jobs"
"""Of our webhook, for Jobs."""
POLICY: Json = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
"""What GPU Jobs are given: pods that are evicted, preempted or lost with their node do not count as failed."""
REPLACED = "Failed"
"""The only `podReplacementPolicy` that a Job with a `podFailurePolicy` may have; servers write another one first."""


def sparing(job: Json) -> list[Json]:
    """JSON Patch that has a new Job ignore disruptions; empty where that is not ours to say."""
    spec = job["spec"]
    pods = spec["template"]["spec"]
    if spec.get("podFailurePolicy") or pods.get("restartPolicy") != "Never" or not asks_gpus(pods):
        return []
    patch: list[Json] = [{"op": "add", "path": "/spec/podFailurePolicy", "value": POLICY}]
    if spec.get("podReplacementPolicy", REPLACED) != REPLACED:
        patch.append({"op": "add", "path": "/spec/podReplacementPolicy", "value": REPLACED})
    return patch


def granting(pod: Json, grace_s: int) -> list[Json]:
    """JSON Patch that gives a new GPU pod so much grace at least."""
    spec = pod["spec"]
    given = spec.get("terminationGracePeriodSeconds")
    if not asks_gpus(spec) or (given is not None and given >= grace_s):
        return []
    return [{"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": grace_s}] if grace_s else []


def granting_cel(grace_s: int) -> str:
    """CEL: what `granting` answers for a pod that asks for GPUs."""
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
"""CEL: a Job that `sparing` changes. Reads nothing but `object`, so that webhooks can be matched by it too."""
_TYPE = "Object.spec.podFailurePolicy"
SPARING = (
    f"[JSONPatch{{op: 'add', path: '/spec/podFailurePolicy', value: {_TYPE}{{rules: [{_TYPE}.rules{{"
    f"action: 'Ignore', onPodConditions: [{_TYPE}.rules.onPodConditions{{type: 'DisruptionTarget', "
    "status: 'True'}]}]}}]"
    f" + (has(object.spec.podReplacementPolicy) && object.spec.podReplacementPolicy != '{REPLACED}'"
    f" ? [JSONPatch{{op: 'add', path: '/spec/podReplacementPolicy', value: '{REPLACED}'}}] : [])"
)
"""CEL: what `sparing` answers for such a Job."""
