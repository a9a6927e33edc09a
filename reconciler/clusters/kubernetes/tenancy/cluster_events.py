"""Shows events to a slice's users in their cluster: one event per note, in `kubectl get events` (H10, H11); a note for
everywhere is an event in each of the slice's namespaces (J4).

The event's name is derived from the note's key, so that the API server itself prevents duplicates, whichever
process writes it. Events are kept for an hour there; the lasting record is in Git.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC
from hashlib import sha256

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER
from reconciler.model.cluster_port import Note

log = logging.getLogger(__name__)

CONTROLLER = "egs.dev/reconciler"
LONGEST_NOTE = 1024
"""The API server's limit for an event's text, in bytes."""
MOST_HEARD = 2000
"""Notes remembered for one cluster: several times as many as ever wait for it."""
EVERYBODYS = "default"
"""The namespace of events about objects without one."""

Namespaces = Mapping[str, tuple[str, ...]]
"""Each slice's namespaces, in order."""


class Heard:
    """Notes, by key, that one API server has accepted or will never accept. One owner."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}  # in order of arrival

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        self._keys[key] = None
        while len(self._keys) > MOST_HEARD:
            del self._keys[next(iter(self._keys))]


def announce(
    api: Api, notes: Iterable[Note], slices: Namespaces, heard: Heard, instance: str = MANAGER
) -> None:
    """Writes the notes not in `heard` yet. A refused note is dropped; other failures are raised.

    If the server fails on one note, the others are tried first; if it rejects our credentials, forbids events
    or is busy, it is not called again. The next call continues with the rest.
    """
    failed: Rejected | None = None
    for note in notes:
        if note.key in heard:
            continue
        missed = [no for body in events(note, slices, instance) if (no := _written(api, note, body))]
        if missed:
            failed = failed or missed[0]
            continue
        heard.add(note.key)
    if failed is not None:
        raise failed


def _written(api: Api, note: Note, body: Json) -> Rejected | None:
    """Writes one event; returns a failure of the server, after which it is tried again."""
    try:
        api.create(f"/apis/events.k8s.io/v1/namespaces/{body['metadata']['namespace']}/events", body)
    except Rejected as no:
        if no.status >= 500:
            return no
        if _of_us(no):
            raise
        if no.status != 409 and not _namespace_goes(no):
            log.warning(
                "note dropped key=%s told=%s reason=%s message=%s", note.key, note.reason, no.reason, no
            )
    return None


def events(note: Note, slices: Namespaces, instance: str) -> list[Json]:
    """In its slice's first namespace, or in all of them; in `default` without a slice."""
    namespaces = slices.get(_slice_of(note), ()) or (EVERYBODYS,)
    return [
        event(note, namespace, instance) for namespace in (namespaces if note.everywhere else namespaces[:1])
    ]


def event(note: Note, namespace: str, instance: str) -> Json:
    """The event in that namespace."""
    regarding = _regarding(note, namespace)
    found: Json = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": event_name(note),
            "namespace": regarding["namespace"],
            "labels": {MANAGED_BY: MANAGER},
        },
        "eventTime": f"{note.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "type": "Warning" if note.warning else "Normal",
        "reason": note.reason,
        "action": note.reason,
        "note": shortened(note.text),
        "regarding": regarding,
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:128],
    }
    if note.node and regarding["kind"] != "Node":
        found["related"] = _node(note.node)
    return found


def event_name(note: Note) -> str:
    """The same for the same key."""
    return f"egs-{sha256(note.key.encode()).hexdigest()[:32]}"


def shortened(text: str) -> str:
    """The part that fits into an event, cut between characters."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST_NOTE:
        return text
    return data[: LONGEST_NOTE - 3].decode("utf-8", "ignore") + "…"


def _slice_of(note: Note) -> str:
    return note.slice or note.request.partition("/")[0]


def _regarding(note: Note, namespace: str) -> Json:
    """The object the event is about: the request by name, else the node, else the slice's namespace."""
    if note.request:
        name = note.request.partition("/")[2]
        return {"apiVersion": "egs.dev/v1alpha1", "kind": "GPR", "namespace": namespace, "name": name}
    if note.node:
        return _node(note.node)
    return {"apiVersion": "v1", "kind": "Namespace", "namespace": namespace, "name": namespace}


def _node(name: str) -> Json:
    # The kubelet's own events have the node's name as uid, and kubectl looks for that. A node has no
    # namespace, but API servers of 1.20 refuse an event whose subject is in another namespace.
    return {"apiVersion": "v1", "kind": "Node", "namespace": EVERYBODYS, "name": name, "uid": name}


def _of_us(no: Rejected) -> bool:
    """True if it is about our credentials, not about this note. Quotas and policies also answer 403, but for
    objects.
    """
    return no.status in {401, 429} or (no.status == 403 and "is forbidden: User" in str(no))


def _namespace_goes(no: Rejected) -> bool:
    causes = (no.body.get("details") or {}).get("causes") or ()
    return no.status == 404 or any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
