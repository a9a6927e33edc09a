"""What some pods write: their logs, read again and again with the caller's own credentials.

Held by tests/reconciler/clusters/kubernetes/test_pod_logs.py: no line comes twice, and a container that
cannot be read keeps no line of the others back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.workloads.pod_objects import read_pod
from reconciler.model.pod_port import Pod

MOST_BYTES = 1 << 20
"""Most that is read of one container at a time."""
_FIRST = "0"
"""Before every time that a container gives."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_Key = tuple[str, str]
"""The uid of a pod, and a container."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a container; `at` is UTC with nanoseconds, so that it sorts as text."""

    at: str
    pod: str
    container: str
    text: str


class PodLogs:
    """The logs of some pods of one namespace; remembers how far it has read."""

    def __init__(self, api: Api, cluster: str, namespace: str, is_own: Callable[[Pod], bool]) -> None:
        self._api, self._cluster, self._is_own = api, cluster, is_own
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._read: dict[_Key, str] = {}  # time of the last line, or begin of the second from which to read
        self._refused: dict[_Key, str] = {}  # what was said about it

    def news(self) -> list[LogLine]:
        """What was written since the last look, by time; a line says which container is refused, once.

        Raises Fault if the cluster does not answer, or refuses all of them; the lines come with the next look then.
        """
        own = [item for item in self._api.items(self._pods) if self._is_own(read_pod(item, self._cluster))]
        found: list[LogLine] = []
        read, refused = dict(self._read), dict[_Key, LogLine]()
        no, answered = None, False
        for meta, container in (each for item in own for each in _containers(item)):
            key = (str(meta["uid"]), container)
            last = read.get(key, _FIRST)
            try:
                text = self._text(str(meta["name"]), container, last)
            except Rejected as error:
                no = error
                refused[key] = LogLine(last, str(meta["name"]), container, f"(its log cannot be read: {no})")
                continue
            answered = True
            times, read[key] = _since(text, last)
            found += [LogLine(at, str(meta["name"]), container, said) for at, said in times]
        if no is not None and not answered:
            raise no
        found += [line for key, line in refused.items() if self._refused.get(key) != line.text]
        self._read, self._refused = read, {key: line.text for key, line in refused.items()}
        return sorted(found, key=lambda line: line.at)

    def _text(self, pod: str, container: str, last: str) -> str:
        """What the server gives from that second on; empty if the container has not begun, or is gone."""
        since = {} if last == _FIRST else {"sinceTime": f"{last[:19]}Z"}
        try:
            return self._api.text(
                f"{self._pods}/{pod}/log",
                container=container,
                timestamps="true",
                limitBytes=MOST_BYTES,
                **since,
            )
        except Rejected as no:
            if no.status in (400, 404):
                return ""
            raise


def _containers(item: Json) -> Iterator[tuple[Json, str]]:
    """Those of a pod that have run, with the pod's metadata."""
    status = item.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if {"running", "terminated"} & {*(each.get("state") or {}), *(each.get("lastState") or {})}:
            yield item["metadata"], str(each["name"])


def _since(text: str, last: str) -> tuple[list[tuple[str, str]], str]:
    """The lines of an answer after `last` with their times, and how far it has been read now."""
    is_full = len(text.encode()) >= MOST_BYTES
    # Nothing else ends a line: a bar of progress has \r in it. Times are the server's, at the begin of each.
    parts = [line.partition(" ") for line in text.split("\n")]
    cut = parts.pop() if is_full else ("", "", "")
    # The server counts whole seconds, so that it gives some lines again.
    lines = [(at, said) for time, _, said in parts if (at := _moment(time)) is not None and at > last]
    if lines or not is_full:
        return lines, max((at for at, _ in lines), default=last)
    begun = (_moment(cut[0]) or last)[:19]
    if begun > last[:19]:  # a long line begins in a later second: read from there
        return [], begun
    if last == _FIRST:
        return [], last
    after = datetime.fromisoformat(f"{last[:19]}Z") + timedelta(seconds=1)
    note = f"(lines left out: more than {MOST_BYTES >> 20} MiB within this second)"
    return [(last, note)], f"{after:%Y-%m-%dT%H:%M:%S}"


def _moment(time: str) -> str | None:
    """A time of a line as UTC with nine digits; None if it is none, or was cut."""
    found = _TIME.fullmatch(time)
    if found is None:
        return None
    seconds = datetime.fromisoformat(f"{found[1]}{found[3]}").astimezone(UTC)
    return f"{seconds:%Y-%m-%dT%H:%M:%S}.{found[2] or '':0<9}Z"
