"""Tell the people of a slice in their cluster: one event for each note, where `kubectl get events` shows it (H10, H11).

The event's name follows from the note's key, so the API server itself sees to it that a note is told once, whoever
tells it and however often. Events live for an hour there; the record is Git's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC
from hashlib import sha256

from reconciler.clusters.kubernetes.api import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER
from reconciler.clusters.port import Note

log = logging.getLogger(__name__)

CONTROLLER = "egs.dev/reconciler"
LONGEST_NOTE = 1024
"""Bytes of an event's text that the API server takes."""
EVERYBODYS = "default"
"""Where events about what has no namespace live."""

Namespaces = Mapping[str, tuple[str, ...]]
"""Those of each slice, in order."""


def announce(api: Api, notes: Iterable[Note], slices: Namespaces, instance: str = MANAGER) -> None:
    """Tell all of them; one that the server refuses stops no other, and the first such refusal is raised at the end."""
    refused: Rejected | None = None
    for note in notes:
        body = event(note, slices, instance)
        try:
            api.create(f"/apis/events.k8s.io/v1/namespaces/{body['metadata']['namespace']}/events", body)
        except Rejected as no:
            if no.status == 409:
                continue
            log.debug("note refused key=%s reason=%s message=%s", note.key, no.reason, no)
            refused = refused or (None if _namespace_goes(no) else no)
    if refused is not None:
        raise refused


def event(note: Note, slices: Namespaces, instance: str) -> Json:
    """The event; it lives in its slice's first namespace, or in `default` where no slice is concerned."""
    namespace = next(iter(slices.get(_slice_of(note), ())), EVERYBODYS)
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
    """What fits into an event; a character is never cut in two."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST_NOTE:
        return text
    return data[: LONGEST_NOTE - 3].decode("utf-8", "ignore") + "…"


def _slice_of(note: Note) -> str:
    return note.slice or note.request.partition("/")[0]


def _regarding(note: Note, namespace: str) -> Json:
    """The request as it would be found by name, else the node, else the slice's namespace."""
    if note.request:
        name = note.request.partition("/")[2]
        return {"apiVersion": "egs.dev/v1alpha1", "kind": "GPR", "namespace": namespace, "name": name}
    if note.node:
        return _node(note.node)
    return {"apiVersion": "v1", "kind": "Namespace", "namespace": namespace, "name": namespace}


def _node(name: str) -> Json:
    # The kubelet's own events bear the node's name as uid, and kubectl looks for that. A node has no namespace, but
    # API servers of 1.20 refuse an event whose subject is not of its own namespace.
    return {"apiVersion": "v1", "kind": "Node", "namespace": EVERYBODYS, "name": name, "uid": name}


def _namespace_goes(no: Rejected) -> bool:
    causes = (no.body.get("details") or {}).get("causes") or ()
    return no.status == 404 or any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
