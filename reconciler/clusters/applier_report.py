"""The report of an applier inside a cluster, as files of its branch and back. Pure.

report.yaml has the time, when the next one is due, the last decision acted on, and trouble with the API
server; nodes/000.yaml … and likewise workloads, placed, slices, unmanaged, checks, refusals, differences, sizes and
served have the rows.

Rows are spread over a folder's files by a hash of their key, so that one changed row changes one file however
large the cluster is; no file exceeds 1 MB and no folder 1,000 entries.

Readers trust nothing: strict loader, bounded sizes, validated names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from pydantic import TypeAdapter, ValidationError

from reconciler.model.cluster_port import (
    EARLIEST,
    LATEST,
    Busy,
    CheckResult,
    ClusterView,
    Difference,
    NodeView,
    QueueView,
    Refused,
    SliceTerms,
    Stamp,
    Topic,
    UnmanagedNode,
    WorkloadView,
)
from reconciler.model.service_port import ExportsView
from reconciler.model.workload_port import PlacedWorkload
from schemas.documents.base import API_VERSION
from schemas.errors import Fault, UserError
from schemas.reading.strict_yaml import FORBIDDEN, load
from schemas.reading.units import LONG_NAME_PATTERN, NAME_PATTERN, format_instant, parse_instant
from schemas.reading.yaml_text import dump

Files = dict[str, bytes]
CheckKey = tuple[str, str, Topic]
"""Uid of the lease, node, stage."""
RefusalKey = tuple[str, str, str]
"""The action (`ADD`), its node or slice, and its lease (empty: none)."""

HEAD = "report.yaml"
FILE_BYTES = 1_000_000
"""Read limit of one file."""
FULL_BYTES = 400_000
"""Write limit of one file, except for a single larger row."""
MOST_FILES = 512
"""Per folder."""
MOST_BYTES = 128_000_000
"""Per report: 100,000 nodes of 8 GPUs with their pods."""
TEXT = 2_000
"""Longest text of a log or a message; the rest is cut."""
LONGEST_EVERY = timedelta(hours=1)
_PATH = re.compile(
    r"(nodes|workloads|placed|slices|unmanaged|checks|refusals|differences|served|sizes)/[0-9]{3}\.yaml"
)
_LONG_NAME, _NAME = re.compile(LONG_NAME_PATTERN), re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report; `view` None: the cluster's API server does not answer, `trouble` says why."""

    at: datetime
    every: timedelta  # the next report follows within this time
    acted: Stamp | None = None  # the stamp of the last decision that it acted on
    view: ClusterView | None = None
    checks: Mapping[CheckKey, Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    refusals: Mapping[RefusalKey, Refused] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    """By slice: `digest_of` the terms that it was compared with."""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class SliceRow:
    """A slice, its namespaces, the digest of the terms that it was compared with, its queue, its exports."""

    name: str
    namespaces: tuple[str, ...] = ()
    terms: str = ""
    queue: QueueView | None = None
    exports: ExportsView | None = None


@dataclass(frozen=True, slots=True)
class CheckRow:
    """Checks of a node: their results, or until when they run."""

    uid: str
    node: str
    stage: Topic
    results: tuple[CheckResult, ...] = ()
    until: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """An action that the cluster refused."""

    do: str
    target: str
    uid: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class SizeRow:
    """The target size of an elastic pool."""

    pool: str
    nodes: int


@dataclass(frozen=True, slots=True)
class ServedRow:
    """A lease that has had all its nodes at some time."""

    uid: str
    start: datetime


def digest_of(terms: SliceTerms) -> str:
    """The digest of a slice's terms; the same in every process."""
    return f"{crc32(repr(replace(terms, paused=False)).encode()):08x}"


Row = (
    NodeView
    | WorkloadView
    | SliceRow
    | UnmanagedNode
    | CheckRow
    | RefusalRow
    | Difference
    | ServedRow
    | SizeRow
    | PlacedWorkload
)


@dataclass(frozen=True, slots=True)
class Kind:
    """How the rows of one folder are parsed and identified."""

    adapter: TypeAdapter[Any]
    key: Callable[[Any], str]


def _kind(row: type[Row], key: Callable[[Any], str]) -> Kind:
    return Kind(TypeAdapter(tuple[row, ...]), key)  # type: ignore[valid-type]


KINDS: Mapping[str, Kind] = {
    "nodes": _kind(NodeView, lambda r: r.name),
    "workloads": _kind(WorkloadView, lambda r: f"{r.namespace}/{r.name}"),
    "placed": _kind(PlacedWorkload, lambda r: r.key),
    "slices": _kind(SliceRow, lambda r: r.name),
    "unmanaged": _kind(UnmanagedNode, lambda r: r.name),
    "checks": _kind(CheckRow, lambda r: f"{r.uid}/{r.node}/{r.stage}"),
    "refusals": _kind(RefusalRow, lambda r: f"{r.do}/{r.target}/{r.uid}"),
    "differences": _kind(Difference, lambda r: f"{r.slice}/{r.object}/{r.found}"),
    "sizes": _kind(SizeRow, lambda r: r.pool),
    "served": _kind(ServedRow, lambda r: f"{r.uid}/{r.start}"),
}


# -- writing -------------------------------------------------------------------------------------------------


class Rendering:
    """Renders successive reports; unchanged rows are taken from a cache."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[Row, bytes]]] = {}

    def files(self, cluster: str, report: Report) -> Files:
        files = {HEAD: _head(cluster, report)}
        for folder, rows in _rows(report).items():
            files |= _spread(folder, self._written(folder, rows))
        return files

    def _written(self, folder: str, rows: Iterable[Row]) -> dict[str, bytes]:
        kind, before = KINDS[folder], self._known.get(folder, {})
        now: dict[str, tuple[Row, bytes]] = {}
        for row in rows:
            key = kind.key(row)
            last = before.get(key)
            now[key] = last if last is not None and last[0] == row else (row, _text(kind, row))
        self._known[folder] = now
        return {key: text for key, (_, text) in sorted(now.items())}


def _rows(report: Report) -> dict[str, list[Row]]:
    view = report.view
    rows: dict[str, list[Row]] = {
        "checks": [_check_row(key, found) for key, found in report.checks.items()],
        "refusals": [RefusalRow(*key, no.reason, no.message) for key, no in report.refusals.items()],
        "differences": [*report.differences],
    }
    if view is not None:
        rows["nodes"] = [*view.nodes.values()]
        rows["workloads"] = [*view.workloads]
        rows["placed"] = [*view.placed.values()]
        rows["slices"] = [
            SliceRow(n, spaces, report.terms.get(n, ""), view.queues.get(n), view.exports.get(n))
            for n, spaces in view.slices.items()
        ]
        rows["unmanaged"] = [*view.unmanaged]
        rows["sizes"] = [SizeRow(pool, nodes) for pool, nodes in sorted(view.sizes.items())]
        rows["served"] = [ServedRow(uid, start) for uid, start in view.served]
    return rows


def _check_row(key: CheckKey, found: Busy | tuple[CheckResult, ...]) -> CheckRow:
    if isinstance(found, Busy):
        return CheckRow(*key, until=found.until, message=found.message)
    return CheckRow(*key, results=found)


def _text(kind: Kind, row: Row) -> bytes:
    (plain,) = kind.adapter.dump_python((row,), mode="json", exclude_defaults=True)
    return dump([_clean(plain)]).encode()


def _clean(value: Any) -> Any:
    """Valid for our own reader: texts cut to their limit, without refused characters."""
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return FORBIDDEN.sub("\ufffd", value[:TEXT]) if isinstance(value, str) else value


def _spread(folder: str, rows: Mapping[str, bytes]) -> Files:
    """The rows in as few files as fit; their number is a power of two, so that most rows stay in place."""
    count = 1
    while True:
        files: dict[int, list[bytes]] = {}
        for key, text in rows.items():
            files.setdefault(crc32(key.encode()) % count, []).append(text)
        if count == MOST_FILES or all(sum(map(len, texts)) <= FULL_BYTES for texts in files.values()):
            return {f"{folder}/{number:03}.yaml": b"".join(texts) for number, texts in sorted(files.items())}
        count *= 2


def _head(cluster: str, report: Report) -> bytes:
    content: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "ClusterReport",
        "cluster": cluster,
        "at": format_instant(report.at),
        "every": int(report.every.total_seconds()),
    }
    if report.acted is not None:
        content["acted"] = {"term": report.acted.term, "seq": report.acted.seq}
    if report.trouble or report.view is None:
        content["trouble"] = _clean(report.trouble or "nothing has been seen yet")
    return dump(content).encode()


# -- reading -------------------------------------------------------------------------------------------------


def is_ours(path: str) -> bool:
    """True if a path belongs to a report; others are ignored."""
    return path == HEAD or _PATH.fullmatch(path) is not None


def rows_of(path: str, data: bytes) -> Any:
    """The content of one file: the rows of a folder, or the mapping of the head. Raises Fault `ClusterReportBroken`."""
    try:
        content = load(data, FILE_BYTES)
        if path == HEAD:
            return _checked_head(content)
        folder = path.partition("/")[0]
        rows = KINDS[folder].adapter.validate_json(json.dumps(content))
        for row in rows:
            _check(row)
    except (UserError, ValidationError, ValueError, TypeError, KeyError, RecursionError) as error:
        what = str(error).splitlines()[0][:200]
        raise Fault(f"{path} of the report cannot be read: {what}", "ClusterReportBroken") from error
    return rows


def _checked_head(content: Any) -> Mapping[str, Any]:
    head = {
        "cluster": str(content["cluster"]),
        "at": parse_instant(content["at"]),
        "every": timedelta(seconds=min(max(int(content["every"]), 1), LONGEST_EVERY.total_seconds())),
        "acted": None,
        "trouble": str(content.get("trouble", ""))[:TEXT],
    }
    if (acted := content.get("acted")) is not None:
        head["acted"] = Stamp(int(acted["term"]), int(acted["seq"]))
    return head


def _check(row: Row) -> None:
    """Names become paths and objects of ours, and times are compared: both must be valid."""
    match row:
        case NodeView():
            _named(_LONG_NAME, row.name)
            _named(_NAME, *([row.pool] if row.pool else []))
            if row.lease is not None:
                slice_, _, request = row.lease.request.partition("/")
                _named(_NAME, slice_, request, row.lease.slice)
                _timed(row.lease.end, *([] if row.lease.start is None else [row.lease.start]))
        case UnmanagedNode():
            _named(_LONG_NAME, row.name)
        case WorkloadView():
            _named(_LONG_NAME, row.name, row.namespace)
            _named(_NAME, row.slice)
            _timed(*([row.checkpointed_at] if row.checkpointed_at is not None else []))
        case PlacedWorkload():
            slice_, _, name = row.key.partition("/")
            _named(_NAME, slice_, row.namespace)
            _named(_LONG_NAME, name, *(each.name for each in row.objects))
            _timed(row.run.start)
        case SliceRow():
            _named(_NAME, row.name, *row.namespaces, *(row.exports.names if row.exports else ()))
        case CheckRow():
            _named(_LONG_NAME, row.node)
            _timed(*([row.until] if row.until is not None else []))
        case SizeRow():
            _named(_NAME, row.pool)
        case ServedRow():
            _timed(row.start)
        case _:
            pass  # free texts


def _named(pattern: re.Pattern[str], *names: str) -> None:
    for name in names:
        if len(name) > 253 or pattern.fullmatch(name) is None:
            raise ValueError(f"{name[:60]!r} is not a name")


def _timed(*instants: datetime) -> None:
    for instant in instants:
        if instant.tzinfo is None or not EARLIEST <= instant <= LATEST:
            raise ValueError(f"{instant} is not a plausible time")


def report_from(cluster: str, contents: Mapping[str, Any]) -> Report:
    """The report with these parsed files, by path (see `rows_of`). Raises Fault `ClusterReportBroken`."""
    head = contents.get(HEAD)
    if head is None or head["cluster"] != cluster:
        raise Fault(f"the report has no {HEAD} of cluster {cluster}", "ClusterReportBroken")
    rows: dict[str, list[Any]] = {folder: [] for folder in KINDS}
    for path in sorted(contents.keys() - {HEAD}):
        rows[path.partition("/")[0]] += contents[path]
    at = head["at"]
    return Report(
        at=at,
        every=head["every"],
        acted=head["acted"],
        view=None if head["trouble"] else _view(rows, at),
        checks={(r.uid, r.node, r.stage): _check_outcome(r) for r in rows["checks"]},
        refusals={(r.do, r.target, r.uid): Refused(r.reason, r.message) for r in rows["refusals"]},
        differences=tuple(rows["differences"]),
        terms={r.name: r.terms for r in rows["slices"] if r.terms},
        trouble=head["trouble"],
    )


def _view(rows: Mapping[str, list[Any]], at: datetime) -> ClusterView:
    slices = sorted(rows["slices"], key=lambda r: r.name)
    return ClusterView(
        at=at,
        nodes={r.name: r for r in sorted(rows["nodes"], key=lambda r: r.name)},
        slices={r.name: r.namespaces for r in slices},
        workloads=tuple(rows["workloads"]),
        placed={r.key: r for r in sorted(rows["placed"], key=lambda r: r.key)},
        unmanaged=tuple(rows["unmanaged"]),
        sizes={r.pool: r.nodes for r in rows["sizes"]},
        queues={r.name: r.queue for r in slices if r.queue is not None},
        exports={r.name: r.exports for r in slices if r.exports is not None},
        served=frozenset((r.uid, r.start) for r in rows["served"]),
    )


def _check_outcome(row: CheckRow) -> Busy | tuple[CheckResult, ...]:
    return row.results if row.until is None else Busy(row.until, row.message)
