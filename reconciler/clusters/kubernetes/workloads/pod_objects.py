"""Reads pods, their owners and warnings about them from API objects. Pure.

Held by tests/reconciler/clusters/kubernetes/test_pods_read.py, on objects as clusters give them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.nodes.node_inventory import asked_gpus, gpus_of
from reconciler.model.pod_port import Container, OwnerObject, OwnerRef, Pod, PodTrouble
from schemas.reading.units import parse_instant

MOST_WORDS = 400
"""Words of a container's command line that are kept."""
LONGEST_WORD = 4000
SPECS = frozenset({"InferenceService", "LLMInferenceService"})
"""Kinds whose spec names their model."""
OWN_ANNOTATIONS = "egs.dev/"


def read_pod(item: Json, cluster: str) -> Pod:
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    return Pod(
        cluster=cluster,
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta.get("uid", ""),
        phase=status.get("phase", "Pending"),
        node=spec.get("nodeName") or None,
        gpus=gpus_of(spec),
        owners=read_owners(meta),
        labels=dict(meta.get("labels") or {}),
        annotations=_own(meta),
        containers=tuple(_containers(spec, status)),
        created=_time(meta.get("creationTimestamp")),
        started=_time(status.get("startTime")),
        unplaced=_unplaced(status),
        gates=tuple(gate.get("name", "") for gate in spec.get("schedulingGates") or ()),
        ending="deletionTimestamp" in meta,
    )


def read_owner(item: Json) -> OwnerObject:
    """An owner; of its spec only what names a model."""
    meta, kind = item["metadata"], item.get("kind", "")
    group, _, version = item.get("apiVersion", "").rpartition("/")
    return OwnerObject(
        OwnerRef(group, kind, meta["name"], meta.get("uid", ""), version),
        meta.get("namespace", ""),
        read_owners(meta),
        _own(meta),
        dict(meta.get("labels") or {}),
        _model_spec(kind, item.get("spec") or {}),
    )


def read_owners(meta: Mapping[str, Any]) -> tuple[OwnerRef, ...]:
    """Its owners, the controller first."""
    refs = sorted(meta.get("ownerReferences") or (), key=lambda ref: not ref.get("controller"))
    return tuple(map(_owner_ref, refs))


def _owner_ref(ref: Json) -> OwnerRef:
    group, _, version = ref.get("apiVersion", "").rpartition("/")
    return OwnerRef(group, ref["kind"], ref["name"], ref.get("uid", ""), version)


def read_trouble(item: Json) -> PodTrouble | None:
    """A warning about a pod or about what makes pods; None for anything else."""
    if item.get("type") != "Warning":
        return None
    about = item.get("involvedObject") or item.get("regarding") or {}
    last = item.get("lastTimestamp") or item.get("eventTime") or item.get("firstTimestamp")
    return PodTrouble(
        about.get("namespace") or item["metadata"].get("namespace", ""),
        f"{about.get('kind', '')}/{about.get('name', '')}",
        str(item.get("reason") or ""),
        " ".join(str(item.get("message") or item.get("note") or "").split())[:500],
        _time(last),
    )


def _own(meta: Mapping[str, Any]) -> dict[str, str]:
    annotations = meta.get("annotations") or {}
    return {name: str(value) for name, value in annotations.items() if name.startswith(OWN_ANNOTATIONS)}


def _model_spec(kind: str, spec: Json) -> Json:
    if kind not in SPECS:
        return {}
    return {part: spec[part] for part in ("model", "predictor") if isinstance(spec.get(part), Mapping)}


def _containers(spec: Json, status: Json) -> Iterator[Container]:
    """Main containers; an init container only while it is what keeps the pod from running."""
    told = {one["name"]: one for one in status.get("containerStatuses") or ()}
    early = {one["name"]: one for one in status.get("initContainerStatuses") or ()}
    for item in spec.get("containers") or ():
        yield _container(item, told.get(item["name"]) or {})
    for item in spec.get("initContainers") or ():
        state = early.get(item["name"]) or {}
        if (state.get("state") or {}).get("waiting") or state.get("restartCount"):
            yield _container(item, state)


def _container(item: Json, told: Json) -> Container:
    state, last = told.get("state") or {}, told.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    return Container(
        name=item["name"],
        image=item.get("image", ""),
        command=tuple(_command(item)),
        env={one["name"]: str(one["value"]) for one in item.get("env") or () if one.get("value") is not None},
        gpus=asked_gpus(item),
        restarts=int(told.get("restartCount") or 0),
        waiting=waiting.get("reason", ""),
        waiting_message=" ".join(str(waiting.get("message") or "").split())[:300],
        ended=ended.get("reason", ""),
        exit_code=ended.get("exitCode"),
        ended_at=_time(ended.get("finishedAt")),
    )


def _command(item: Json) -> Iterable[str]:
    words = [*(item.get("command") or ()), *(item.get("args") or ())]
    return (str(word)[:LONGEST_WORD] for word in words[:MOST_WORDS])


def _unplaced(status: Json) -> str:
    """Why the scheduler finds no node."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return " ".join(str(condition.get("message") or condition.get("reason") or "").split())[:500]
    return ""


def _time(text: str | None) -> datetime | None:
    """An instant of the API, which may have fractions of seconds."""
    if not text:
        return None
    try:
        return parse_instant(text.split(".")[0].rstrip("Z") + "Z")
    except ValueError:
        return None
