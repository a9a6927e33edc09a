"""Parses the status branch's files: the inverse of `reconciler.status.render`. Pure.

A broken file raises one of `UNREADABLE` and affects only itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from reconciler.model.facts import Facts, Reachability
from schemas.documents.base import Document
from schemas.errors import UserError
from schemas.reading.strict_yaml import load
from schemas.status.cards import CardsRecord
from schemas.status.endpoint_status import EndpointRecord
from schemas.status.gpr_status import TERMINAL, ControllerRecord, GPRRecord, GPRStatus, WorkspaceRecord
from schemas.status.gpu_alerts import AlertsRecord
from schemas.status.insights import EndedRecord, Insights
from schemas.status.inventory import Inventory, PoolNodes
from schemas.status.judgements import SpentRecord, TrustRecord
from schemas.status.node_status import NodeRecord
from schemas.status.outbox import OutboxRecord
from schemas.status.promises import PromisesRecord
from schemas.status.remedies import RemediesRecord, Remedy
from schemas.status.usage import UsageRecord
from schemas.status.workload_status import WorkloadRecord

OWN_BYTES = 1_000_000
"""Size limit of our own files; people's files are smaller."""
Record = (
    GPRRecord
    | NodeRecord
    | UsageRecord
    | Insights
    | EndedRecord
    | PromisesRecord
    | ControllerRecord
    | Inventory
    | PoolNodes
    | WorkspaceRecord
    | SpentRecord
    | TrustRecord
    | OutboxRecord
    | CardsRecord
    | AlertsRecord
    | RemediesRecord
    | WorkloadRecord
    | EndpointRecord
)
"""A parsed file of facts."""
UNREADABLE = (UserError, ValueError)
"""Raised for a broken file."""

_KINDS: tuple[tuple[str, type[Record]], ...] = (
    (r"slices/[^/]+/gprs/[^/]+", GPRRecord),
    (r"nodes/[^/]+/[^/]+", NodeRecord),
    (r"usage/[^/]+", UsageRecord),
    (r"insights\.yaml", Insights),
    (r"insights/[^/]+", EndedRecord),
    (r"promises/[^/]+", PromisesRecord),
    (r"approvals/[^/]+", SpentRecord),
    (r"requests/[^/]+", WorkspaceRecord),
    (r"clusters/[^/]+/inventory\.yaml", Inventory),
    (r"clusters/[^/]+/pools/[^/]+/[^/]+", PoolNodes),
    (r"controller\.yaml", ControllerRecord),
    (r"trust\.yaml|trust/[^/]+", TrustRecord),
    (r"outbox/[^/]+", OutboxRecord),
    (r"cards/[^/]+", CardsRecord),
    (r"alerts/[^/]+", AlertsRecord),
    (r"remedies/[^/]+", RemediesRecord),
    (r"slices/[^/]+/workloads/[^/]+", WorkloadRecord),
    (r"slices/[^/]+/endpoints/[^/]+", EndpointRecord),
)
_PATHS = tuple((re.compile(pattern), kind) for pattern, kind in _KINDS)
"""The kind of record at each path."""
RECORDS = re.compile("|".join(f"(?:{pattern})" for pattern, _ in _KINDS))
"""Paths of all records."""

Kind = TypeVar("Kind", bound=Document)

_PHASE = re.compile(rb"^status:\n  phase: ([A-Za-z]+)$", re.MULTILINE)
"""Where our writer puts a request's phase: the first field of its status."""
_OVER = frozenset(str(phase).encode() for phase in TERMINAL)


def record_from(path: str, data: bytes) -> Record | None:
    """The record in one file of a status tree; None if the path has no record. Raises `UNREADABLE`.

    Fields that we do not know are left out: a newer controller wrote them before people went back to this version.
    """
    kind = next((kind for pattern, kind in _PATHS if pattern.fullmatch(path)), None)
    return None if kind is None else kind.model_validate_json(_json(data), extra="ignore")


def tells_over(data: bytes) -> bool:
    """True if the text of a request's record clearly says that the request is finished; nothing else is checked."""
    found = _PHASE.search(data)
    return found is not None and found[1] in _OVER


def request_status(data: bytes) -> GPRStatus:
    return GPRRecord.model_validate_json(_json(data), extra="ignore").status


def facts_of(records: Mapping[str, Record], at: datetime, intent: str) -> Facts:
    """The facts that these records (by path) form; with `record_from` the inverse of `render`."""
    sorted_out: dict[type, list[tuple[str, Any]]] = {}
    for path, record in sorted(records.items()):
        sorted_out.setdefault(type(record), []).append((path, record))

    def of(kind: type[Kind]) -> list[tuple[str, Kind]]:
        return sorted_out.get(kind, [])

    facts = Facts(
        at,
        intent,
        requests={f"{_part(path, 1)}/{r.metadata.name}": r.status for path, r in of(GPRRecord)},
        nodes={(_part(path, 1), r.metadata.name): r for path, r in of(NodeRecord)},
        usage={r.metadata.name: r for _, r in of(UsageRecord)},
        found=_found(of(PoolNodes)),
        trust=_trust_of([r for _, r in of(TrustRecord)]),
        used_approvals={r.metadata.name: r.spent for _, r in of(SpentRecord)},
        workspaces={r.metadata.name: r for _, r in of(WorkspaceRecord)},
        insights=next((r for _, r in of(Insights)), None),
        ended={r.metadata.name: r for _, r in of(EndedRecord)},
        promises={r.metadata.name: r for _, r in of(PromisesRecord)},
        outbox={r.metadata.name: r for _, r in of(OutboxRecord)},
        cards={card.serial: card for _, r in of(CardsRecord) for card in r.cards},
        alerts={r.metadata.name: r.alerts for _, r in of(AlertsRecord)},
        workloads={f"{_part(path, 1)}/{r.metadata.name}": r.status for path, r in of(WorkloadRecord)},
        endpoints={f"{_part(path, 1)}/{r.metadata.name}": r.status for path, r in of(EndpointRecord)},
        remedies=_remedies_of([r for _, r in of(RemediesRecord)]),
    )
    return _with_controller(_with_inventories(facts, of(Inventory)), of(ControllerRecord))


def _remedies_of(records: Sequence[RemediesRecord]) -> dict[tuple[str, str], tuple[Remedy, ...]]:
    found: dict[tuple[str, str], tuple[Remedy, ...]] = {}
    for remedy in (remedy for record in records for remedy in record.remedies):
        key = (remedy.cluster, remedy.node)
        found[key] = (*found.get(key, ()), remedy)
    return found


def _found(records: Sequence[tuple[str, PoolNodes]]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for path, record in records:
        key = (_part(path, 1), _part(path, 3))
        found[key] = (*found.get(key, ()), *record.nodes)
    return found


def _with_inventories(facts: Facts, records: Sequence[tuple[str, Inventory]]) -> Facts:
    for path, record in records:
        name = _part(path, 1)
        facts = replace(
            facts,
            unmanaged={**facts.unmanaged, **({name: record.unmanaged} if record.unmanaged else {})},
            scales={**facts.scales, **{(name, p.name): p.scale for p in record.pools if p.scale is not None}},
            queues={**facts.queues, **({name: record.queues} if record.queues else {})},
            services={**facts.services, **({name: record.services} if record.services else {})},
            faults={**facts.faults, **{(name, node.name): node.at for node in record.faults}},
        )
    return facts


def _with_controller(facts: Facts, records: Sequence[tuple[str, ControllerRecord]]) -> Facts:
    for _, own in records:
        clusters = {c.name: Reachability(c.reachable, c.since) for c in own.clusters}
        held, unread = own.held_deletions, frozenset(own.unread)
        facts = replace(facts, clusters=clusters, held_deletions=held, unread=unread)
    return facts


def _part(path: str, place: int) -> str:
    return path.split("/")[place]


def _trust_of(parts: Sequence[TrustRecord]) -> TrustRecord | None:
    """The record's parts combined; None: there is none."""
    held = sorted((change for part in parts for change in part.held), key=lambda change: change.path)
    return parts[0].edited(held=tuple(held)) if parts else None


def events_from(data: bytes) -> list[dict[str, str]]:
    content = load(data, OWN_BYTES)
    rows = content.get("events", []) if isinstance(content, dict) else []
    return [row for row in rows if isinstance(row, dict)]


def _json(data: bytes) -> bytes:
    return json.dumps(load(data, OWN_BYTES)).encode()
