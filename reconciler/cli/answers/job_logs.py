"""`egs job run --watch`: what the pods of a workload write, by the caller's own kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import yaml

from egs.commands.errors import Said
from egs.commands.output import Row
from egs.commands.running.job_logs import Read
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Door
from reconciler.clusters.kubernetes.workloads.pod_logs import PodLogs
from reconciler.model.pod_port import Pod
from reconciler.workloads.owners import workload_of
from schemas.errors import EgsError


def opened(job: Mapping[str, Any], kubeconfig: str | None, context: str | None) -> Read:
    """Gives new lines at each call; that and this raise Said where there is no way into the cluster."""
    slice_, cluster, namespace = job["slice"], job["cluster"], job["namespace"]
    with _as_said():
        door = member_tokens.opened(kubeconfig, context)
        if context is None:
            door = replace(door, context=_own_context(door, f"{cluster}-{slice_}-{namespace}"))
        api = member_tokens.connected(door, cluster)
    logs = PodLogs(api, cluster, namespace, partial(is_of, job))

    def read() -> list[Row]:
        with _as_said():
            return [asdict(line) for line in logs.news()]

    return read


def is_of(job: Mapping[str, Any], pod: Pod) -> bool:
    """Whether an object of the workload has made the pod, as its owner and its labels say."""
    key, own = workload_of(pod, {}).key, {(each["kind"], each["name"]) for each in job["objects"]}
    # Trainer makes a JobSet of the TrainJob's name, and pods are labelled with that.
    return (key.kind, key.name) in own or (key.kind == "JobSet" and ("TrainJob", key.name) in own)


@contextmanager
def _as_said() -> Iterator[None]:
    try:
        yield
    except EgsError as error:
        raise Said(str(error), error.reason, 1) from error


def _own_context(door: Door, name: str) -> str | None:
    """The context that `egs kubeconfig` makes for that namespace, if the file has it; None: its current one."""
    try:
        contexts = yaml.safe_load(door.text)["contexts"]
        return name if any(each["name"] == name for each in contexts) else None
    except (yaml.YAMLError, KeyError, TypeError):
        return None
