"""The bare engine: requests as CSV in, starts as CSV out. Pure on text.

Times are whole seconds, leases are [start, end) without preparation or draining, and planning starts from
nothing. Without fairness the rank is priority descending, submit ascending, row order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scheduler.fairness.usage_share import HOUR, Demand, Scale, ahead, share
from scheduler.plan import plan
from scheduler.snapshot import Lease, Pool, PoolKey, Refusal, Request, Snapshot
from schemas.documents.scheduling import Fairness
from schemas.errors import UserError

COLUMNS = ("id", "pool", "submit", "nodes", "duration", "priority")
OPTIONAL_COLUMNS = ("slice", "running", "notBefore", "actual")
OUTPUT_COLUMNS = ("id", "pool", "start", "end", "wait")
_MOST = 1 << 50
"""Bound of every number read, so that sums cannot overflow; `submit`, `notBefore` and `priority` may be
negative, because only their order and differences count."""


class InstanceError(UserError):
    """A CSV that cannot be planned: a bad row, an undeclared pool, or more running nodes than the pool has."""

    reason = "BadInstance"

    def __init__(self, line: int, what: str, fix: str) -> None:
        super().__init__(f"line {line}: {what}; {fix}")
        self.line, self.what, self.fix = line, what, fix
        self.more: tuple[InstanceError, ...] = ()
        """The other bad rows, if this is the first of several."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the CSV."""

    line: int
    id: str
    pools: tuple[str, ...]
    submit: int
    nodes: int
    duration: int
    priority: int
    slice: str
    running: bool
    not_before: int
    actual: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for one row; without a start, `reason` and `message` say why."""

    id: str
    pool: str | None = None
    start: int | None = None
    end: int | None = None
    wait: int | None = None
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """Answers in input order."""

    answers: tuple[Answer, ...]

    @property
    def csv(self) -> str:
        """`id,pool,start,end,wait`; a row without a start has only its id."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(OUTPUT_COLUMNS)
        writer.writerows((a.id, a.pool, a.start, a.end, a.wait) for a in self.answers)
        return out.getvalue()

    def json(self) -> list[dict[str, str | int | None]]:
        """The same as objects, with `reason` and `message` for a row without a start."""
        names = (*OUTPUT_COLUMNS, "reason", "message")
        return [{name: getattr(answer, name) for name in names} for answer in self.answers]

    @property
    def refused(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.answers if answer.start is None)


def plan_instance(
    text: str, pools: Sequence[tuple[str, int]], now: int, fairness: Fairness | None = None
) -> InstancePlan:
    """Plans the CSV `text` on `pools` (name, nodes) from nothing at `now`; raises InstanceError.

    With `fairness` each row has the share that its slice had when it was submitted (see `with_shares`).
    """
    rows = parse(text)
    snapshot = as_snapshot(rows, dict(pools), now)
    planned = plan(snapshot if fairness is None else with_shares(snapshot, fairness))
    answers = []
    for row in rows:
        if row.running:
            answers.append(Answer(row.id, row.pools[0], now, now + row.duration, 0))
        elif placed := planned.placements.get(_key(row)):
            answers.append(
                Answer(row.id, placed.pool[1], placed.start, placed.end, placed.start - row.submit)
            )
        else:
            answers.append(_refused(row, planned.refusals[_key(row)]))
    return InstancePlan(tuple(answers))


def parse(text: str) -> list[Row]:
    """All rows; raises InstanceError for the first bad one, with the others in its `more`."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    lines = _lines(reader)
    _, header = next(lines, (1, []))
    _check_header(header)
    rows, seen, bad = [], dict[str, int](), list[InstanceError]()
    for line, cells in lines:
        try:
            rows.append(_read(line, header, cells, seen))
        except InstanceError as error:
            bad.append(error)
    _raise(bad)
    return rows


def _read(line: int, header: Sequence[str], cells: Sequence[str], seen: dict[str, int]) -> Row:
    """One row; its id is added to those `seen`."""
    if len(cells) != len(header):
        fields = f"{len(cells)} field{'' if len(cells) == 1 else 's'}"
        raise InstanceError(line, fields, f"give {len(header)} fields, as in the header")
    row = _row(line, dict(zip(header, cells, strict=True)))
    if row.id in seen:
        what = f"id {row.id!r} is already on line {seen[row.id]}"
        raise InstanceError(line, what, "give each row its own id")
    seen[row.id] = line
    return row


def _raise(bad: Sequence[InstanceError]) -> None:
    if bad:
        bad[0].more = tuple(bad[1:])
        raise bad[0]


def as_snapshot(rows: Sequence[Row], sizes: dict[str, int], now: int) -> Snapshot:
    """The rows on pools of these sizes; raises InstanceError for a missing or overfull pool."""
    _raise([error for row in rows if (error := _pool_error(row, sizes)) is not None])
    pools = {_pool_key(name): _pool(name, size) for name, size in sizes.items()}
    leases, used = {}, dict.fromkeys(sizes, 0)
    for row in rows:
        if row.running:
            lease = _lease(row, pools[_pool_key(row.pools[0])], used[row.pools[0]], now)
            leases[lease.key] = lease
            used[row.pools[0]] += row.nodes
    requests = {_key(row): _request(row) for row in rows if not row.running}
    return Snapshot(now, pools, leases, requests)


def with_shares(snapshot: Snapshot, fairness: Fairness) -> Snapshot:
    """Shares as if every waiting row had been filed at its submit time, after earlier rows of its slice.

    Every slice has weight 1, every node counts as one GPU, and a row without a slice has a share of its own.
    """
    scale = Scale(1.0, fairness.step, fairness.half_life.total_seconds())
    held: dict[str, float] = {}
    for lease in snapshot.leases.values():
        hours = len(lease.nodes) * (lease.end - snapshot.now) / HOUR
        held[lease.slice] = held.get(lease.slice, 0.0) + hours
    waiting: dict[str, list[Demand]] = {}
    for request in snapshot.requests.values():
        asked = Demand(request.key, request.filed_at, request.nodes, request.duration)
        waiting.setdefault(request.slice, []).append(asked)
    found = dict(snapshot.requests)
    for slice_, theirs in waiting.items():
        for key, hours in ahead(theirs) if slice_ else ():
            waited = snapshot.now - found[key].filed_at
            found[key] = replace(found[key], share=share(held.get(slice_, 0.0), hours, waited, scale))
    return replace(snapshot, requests=found)


def _refused(row: Row, refusal: Refusal) -> Answer:
    remedy = f"; would fit: {refusal.would_fit}" if refusal.would_fit else ""
    return Answer(row.id, reason=refusal.reason, message=refusal.message + remedy)


def _lines(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    line = 0
    while True:
        line = getattr(reader, "line_num", line) + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InstanceError(
                line, f"not CSV ({error})", "quote fields that hold commas or quotes"
            ) from error
        if any(cell.strip() for cell in cells):
            yield line, [cell.strip() for cell in cells]


def _check_header(header: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InstanceError(1, f"the header lacks {', '.join(missing)}", "add the columns, in any order")
    unknown = [name for name in header if name not in (*COLUMNS, *OPTIONAL_COLUMNS)]
    if unknown or len(set(header)) != len(header):
        what = f"unknown column {unknown[0]!r}" if unknown else "a column is listed twice"
        raise InstanceError(1, what, f"use {', '.join((*COLUMNS, *OPTIONAL_COLUMNS))}, each once")


def _row(line: int, cells: dict[str, str]) -> Row:
    if not cells["id"]:
        raise InstanceError(line, "id is empty", "give each row its own id")
    running = cells.get("running", "")
    if running not in ("", "0", "1"):
        raise InstanceError(line, f"running is {running!r}", "use 1, 0 or leave it empty")
    pools = tuple(dict.fromkeys(name.strip() for name in cells["pool"].split("|")))
    return Row(
        line=line,
        id=cells["id"],
        pools=pools,
        submit=_whole(line, cells, "submit", -_MOST),
        nodes=_whole(line, cells, "nodes", 1),
        duration=_whole(line, cells, "duration", 1),
        priority=_whole(line, cells, "priority", -_MOST),
        slice=cells.get("slice", ""),
        running=running == "1",
        not_before=_whole(line, cells, "notBefore", -_MOST) if cells.get("notBefore") else -_MOST,
        actual=_whole(line, cells, "actual", 0) if cells.get("actual") else None,
    )


def _whole(line: int, cells: dict[str, str], name: str, least: int) -> int:
    text = cells[name]
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 16 else None
    if value is None or not least <= value <= _MOST:
        raise InstanceError(line, f"{name} is {text!r}", f"give a whole number from {least} to {_MOST}")
    return value


def _pool_error(row: Row, sizes: dict[str, int]) -> InstanceError | None:
    for name in row.pools:
        if name not in sizes:
            return InstanceError(
                row.line, f"pool {name!r} is not declared", f"add --pool {name or 'NAME'}=NODES"
            )
    if row.running and len(row.pools) > 1:
        return InstanceError(row.line, "a running row names several pools", "name the one it runs in")
    return None


def _pool_key(name: str) -> PoolKey:
    return ("", name)


def _pool(name: str, size: int) -> Pool:
    return Pool(_pool_key(name), "", 1, 1, tuple(f"{name}-{i}" for i in range(1, size + 1)))


def _lease(row: Row, pool: Pool, used: int, now: int) -> Lease:
    if used + row.nodes > len(pool.nodes):
        count = used + row.nodes
        run = "1 node runs" if count == 1 else f"{count} nodes run"
        what = f"{run} in pool {pool.key[1]!r} of {len(pool.nodes)}"
        raise InstanceError(row.line, what, "declare a larger pool, or run fewer nodes")
    nodes, end = pool.nodes[used : used + row.nodes], now + row.duration
    return Lease(_key(row), row.slice, pool.key, nodes, now, now, end, end)


def _request(row: Row) -> Request:
    return Request(
        key=_key(row),
        slice=row.slice,
        nodes=row.nodes,
        duration=row.duration,
        pools=tuple(_pool_key(name) for name in row.pools),
        priority=row.priority,
        filed_at=row.submit,
        not_before=max(row.submit, row.not_before),
    )


def _key(row: Row) -> str:
    """Sorts as the rows do, which is the last criterion of the rank."""
    return f"{row.line:012d}"
