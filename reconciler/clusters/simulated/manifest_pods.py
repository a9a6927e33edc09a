"""The pods that a Kubernetes object would have, as far as a simulation needs them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.workload_port import WorkloadObject
from schemas.reading.units import parse_duration
from schemas.rules.workload_rules import SIMULATED_DURATION

GPU = "nvidia.com/gpu"
MOST_PODS = 200
"""Of one object: a simulation needs no more."""

Json = dict[str, Any]


def jobs_of(each: WorkloadObject, namespace: str) -> tuple[Job, ...]:
    """One simulated job for each pod; none for objects without pods."""
    body = json.loads(each.body)
    lasts = _duration(body)
    pods = [pod for _, pod in zip(range(MOST_PODS), _pods(each.kind, body.get("spec") or {}), strict=False)]
    return tuple(
        Job(f"{each.name}-{number}", namespace, _gpus(pod), lasts) for number, pod in enumerate(pods)
    )


def _duration(body: Json) -> timedelta | None:
    """None: it runs until it is removed."""
    text = (body["metadata"].get("annotations") or {}).get(SIMULATED_DURATION)
    try:
        return None if text is None else parse_duration(text)
    except ValueError:
        return None


def _pods(kind: str, spec: Json) -> Iterator[Json]:
    """The pod templates, each as often as it has pods."""
    match kind:
        case "Job":
            yield from _times(spec, _count(spec, "parallelism"))
        case "Deployment":
            yield from _times(spec, _count(spec, "replicas"))
        case "InferenceService":
            predictor = spec.get("predictor") or {}
            yield from (predictor for _ in range(min(_count(predictor, "minReplicas"), MOST_PODS)))
        case "PyTorchJob":
            for replica in (spec.get("pytorchReplicaSpecs") or {}).values():
                yield from _times(replica, _count(replica, "replicas"))
        case "TrainJob":
            trainer = spec.get("trainer") or {}
            each = {"containers": [{"resources": trainer.get("resourcesPerNode") or {}}]}
            yield from (each for _ in range(_count(trainer, "numNodes")))
        case "JobSet" | "LeaderWorkerSet" | "RayJob":
            yield from _GROUPED[kind](spec)


def _of_job_set(spec: Json) -> Iterator[Json]:
    for job in spec.get("replicatedJobs") or ():
        inner = (job.get("template") or {}).get("spec") or {}
        yield from _times(inner, _count(job, "replicas") * _count(inner, "parallelism"))


def _of_leaders_and_workers(spec: Json) -> Iterator[Json]:
    group = spec.get("leaderWorkerTemplate") or {}
    worker = {"template": group.get("workerTemplate")}
    leader = {"template": group.get("leaderTemplate") or group.get("workerTemplate")}
    for _ in range(_count(spec, "replicas")):
        yield from _times(leader, 1)
        yield from _times(worker, _count(group, "size") - 1)


def _of_ray(spec: Json) -> Iterator[Json]:
    cluster = spec.get("rayClusterSpec") or {}
    yield from _times(cluster.get("headGroupSpec") or {}, 1)
    for group in cluster.get("workerGroupSpecs") or ():
        yield from _times(group, _count(group, "replicas"))


_GROUPED = {"JobSet": _of_job_set, "LeaderWorkerSet": _of_leaders_and_workers, "RayJob": _of_ray}


def _times(owner: Json, count: int) -> Iterator[Json]:
    pod = (owner.get("template") or {}).get("spec") or {}
    yield from (pod for _ in range(min(count, MOST_PODS)))


def _count(owner: Json, field: str) -> int:
    found = owner.get(field, 1)
    return found if isinstance(found, int) and found >= 0 else 1


def _gpus(pod: Json) -> int:
    """GPUs of all its containers."""
    found = 0
    for container in pod.get("containers") or ():
        limits = (container.get("resources") or {}).get("limits") or {}
        text = str(limits.get(GPU, 0))
        found += int(text) if text.isdigit() else 0
    return found
