"""Which workload a person means: an id, a request, or the name of a workload. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.statuses import live
from reconciler.queries.running.sight import Sight
from reconciler.sources.command_errors import NotFound
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Chosen:
    """A request with all that it runs, or one workload."""

    name: str
    slice: str
    request: str  # slice/name; empty: its slice has no nodes there now
    workloads: tuple[Workload, ...]
    is_whole: bool  # the whole request
    waiting: str = ""  # slice/name of a request that has no nodes yet

    def gpus(self, seen: Sight) -> tuple[Gpu, ...]:
        """Its GPUs, the nearest to their limits first."""
        if self.is_whole:
            return seen.gpus_of_request(self.request)
        keys = {workload.key for workload in self.workloads}
        return tuple(gpu for gpu in seen.gpus if any(one.key in keys for one in gpu.workloads))


def chosen(seen: Sight, name: str) -> Chosen:
    """The request of an id or of `slice/name`; a workload by id, `namespace/name`, or name. Raises NotFound."""
    for key, status in seen.requests.items():
        if name in (key, status.uid):
            runs = tuple(one for one in seen.workloads if seen.request_of(one) == key)
            return Chosen(key, key.partition("/")[0], key, runs, is_whole=True)
    if (waiting := _waiting(seen, name)) is not None:
        return waiting
    found = [one for one in seen.workloads if name in names_of(one)]
    if not found:
        raise NotFound("workload", name, {*seen.requests, *(names_of(one)[1] for one in seen.workloads)})
    one = found[0]
    return Chosen(names_of(one)[1], one.slice, seen.request_of(one), (one,), is_whole=False)


def _waiting(seen: Sight, name: str) -> Chosen | None:
    """A live request without nodes, with the pods that wait for it."""
    for key, status in live(seen.facts.requests).items():
        slice_ = key.partition("/")[0]
        if name in (key, status.uid) and seen.viewer.may_see(slice_):
            runs = tuple(one for one in seen.workloads if one.slice == slice_ and not seen.request_of(one))
            return Chosen(key, slice_, "", runs, is_whole=True, waiting=key)
    return None


def names_of(workload: Workload) -> tuple[str, str, str]:
    """Its id, `namespace/name`, and name; the first workload by cluster, namespace and kind has the name."""
    key = workload.key
    return key.id, f"{key.namespace}/{key.name}", key.name
