"""What some pods write: their logs, read again and again with the caller's own credentials.

Held by tests/reconciler/clusters/kubernetes/test_pod_logs.py: no line comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.workloads.pod_objects import read_pod
from reconciler.model.pod_port import Pod

MOST_BYTES = 1 << 20
"""Most that is read of one container at a time."""
_FIRST = "0"
"""Before every time that a container gives."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a container."""

    at: str
    pod: str
    container: str
    text: str


class PodLogs:
    """The logs of some pods of one namespace; remembers how far it has read."""

    def __init__(self, api: Api, cluster: str, namespace: str, is_own: Callable[[Pod], bool]) -> None:
        self._api, self._cluster, self._is_own = api, cluster, is_own
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._read: dict[tuple[str, str], str] = {}  # time of the last line, by uid of the pod and container

    def news(self) -> list[LogLine]:
        """What was written since the last look, by time. Raises Fault if the cluster does not answer, or refuses."""
        own = [item for item in self._api.items(self._pods) if self._is_own(read_pod(item, self._cluster))]
        return sorted((line for item in own for line in self._of_pod(item)), key=lambda line: line.at)

    def _of_pod(self, item: Json) -> Iterator[LogLine]:
        statuses = (item.get("status") or {}).get("containerStatuses") or ()
        for status in statuses:
            has_run = {"running", "terminated"} & {
                *(status.get("state") or {}),
                *(status.get("lastState") or {}),
            }
            if has_run:
                yield from self._of_container(item["metadata"], str(status["name"]))

    def _of_container(self, meta: Json, container: str) -> Iterator[LogLine]:
        key = (str(meta["uid"]), container)
        last = self._read.get(key, _FIRST)
        since = {} if last == _FIRST else {"sinceTime": last}
        try:
            text = self._api.text(
                f"{self._pods}/{meta['name']}/log",
                container=container,
                timestamps="true",
                limitBytes=MOST_BYTES,
                **since,
            )
        except Rejected as no:
            if no.status in (400, 404):  # it has not begun, or is gone
                return
            raise
        for line in text.splitlines():
            at, _, said = line.partition(" ")
            # The server counts whole seconds, so that it gives some lines again.
            if at > last:
                self._read[key] = at
                yield LogLine(at, str(meta["name"]), container, said)
