"""Which pods use which GPUs, as the kubelet says it (pod-resources API, v1).

Devices come from the device plugin (`GPU-…`, replicas of a shared GPU as `GPU-…::3`, MIG devices) or from Dynamic
Resource Allocation, which names a GPU by its number (`gpu-3`, `gpu-3-mig-…`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.port import GpuReading
from agent.telemetry.protobuf import Fields, fields_of, messages, text, texts
from agent.telemetry.unary_call import unary
from reconciler.telemetry.telemetry_port import PodRef
from schemas.errors import Fault

log = logging.getLogger(__name__)

METHOD = "/v1.PodResourcesLister/List"
DEADLINE_S = 1.0
"""The kubelet answers from memory; a slower one must not delay a scrape."""
KEPT_S = 10.0
"""Pods live longer, and the kubelet limits calls."""
VENDOR = "nvidia.com/"
DRIVER = "gpu.nvidia.com"
DRA_DEVICE = re.compile(r"gpu-(\d+)(?:-mig-.*)?")
OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-f-]+)/\d+/\d+")


@dataclass(frozen=True, slots=True)
class Use:
    """A container and a device that it got: an id of the device plugin, or the name of a claimed one."""

    pod: PodRef
    device: str = ""
    claimed: str = ""


Lister = Callable[[], Sequence[Use]]


def lister(socket: Path) -> Lister:
    """Asks the kubelet behind that socket; raises `Fault`."""
    return lambda: uses_from(unary(socket, METHOD, b"", DEADLINE_S))


def uses_from(response: bytes) -> tuple[Use, ...]:
    """The uses in a ListPodResourcesResponse. Raises `Fault` (`BadMessage`)."""
    return tuple(
        use
        for pod in map(fields_of, messages(fields_of(response), 1))
        for container in map(fields_of, messages(pod, 3))
        for use in _of_container(PodRef(text(pod, 2), text(pod, 1), text(container, 1)), container)
    )


def _of_container(pod: PodRef, container: Fields) -> Iterator[Use]:
    for devices in map(fields_of, messages(container, 2)):
        if text(devices, 1).startswith(VENDOR):
            yield from (Use(pod, device=device) for device in texts(devices, 2))
    for resource in map(fields_of, messages(container, 5)):
        for claimed in map(fields_of, messages(resource, 4)):
            if text(claimed, 2) == DRIVER:
                yield Use(pod, claimed=text(claimed, 4))


def pods_of(uses: Sequence[Use], readings: Sequence[GpuReading]) -> Mapping[str, tuple[PodRef, ...]]:
    """The containers of each GPU, by uuid, sorted; each once, also with several parts of a GPU."""
    found: dict[str, set[PodRef]] = {}
    for use in uses:
        uuid = _gpu_of(use, readings)
        if uuid is not None:
            found.setdefault(uuid, set()).add(use.pod)
    return {uuid: tuple(sorted(pods)) for uuid, pods in found.items()}


def _gpu_of(use: Use, readings: Sequence[GpuReading]) -> str | None:
    """The uuid of the GPU that a device is or is a part of; None: not one of these."""
    claimed = DRA_DEVICE.fullmatch(use.claimed)
    if claimed is not None:
        return next((r.uuid for r in readings if r.index == int(claimed[1])), None)
    device = use.device.partition("::")[0]
    old = OLD_MIG.fullmatch(device)
    if old is not None:
        device = old[1]
    found = next((r.uuid for r in readings if device == r.uuid or device in r.mig_uuids), None)
    if found is not None:
        return found
    cut = [r.uuid for r in readings if r.mig_enabled]
    # The driver did not tell of this part yet: its GPU is certain only where one GPU is cut.
    return cut[0] if device.startswith("MIG-") and len(cut) == 1 else None


class PodsOfGpus:
    """The containers of GPUs, asked for at most once in `KEPT_S`; none while the kubelet does not answer."""

    def __init__(self, ask: Lister, monotonic_s: Callable[[], float]) -> None:
        self._ask, self._monotonic_s = ask, monotonic_s
        self._uses: Sequence[Use] = ()
        self._asked_s: float | None = None
        self._failed = False

    def __call__(self, readings: Sequence[GpuReading]) -> Mapping[str, tuple[PodRef, ...]]:
        now_s = self._monotonic_s()
        if self._asked_s is None or now_s - self._asked_s >= KEPT_S:
            self._asked_s = now_s
            self._uses = self._asked()
        return pods_of(self._uses, readings)

    def _asked(self) -> Sequence[Use]:
        try:
            uses = self._ask()
        except Fault as error:
            if not self._failed:
                log.warning("pods not known reason=%s error=%s", error.reason, error)
            self._failed = True
            return ()
        if self._failed:
            log.info("pods known again")
        self._failed = False
        return uses
