"""The record of each request of a trace, and of the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.snapshot import Lease, PoolKey, Refusal, Request


@dataclass(frozen=True, slots=True)
class Record:
    """One request: `first_estimate` is its start in the first plan, `start` when it first had nodes.

    `slips` counts moves of its start to later, `causes` are their reasons, each once; `is_explained`: each was
    proven by planning again without it. `used` are its seconds with nodes; `end` is when the last were given back.
    """

    key: str
    name: str
    slice: str
    priority: int
    nodes: int
    submit: int
    duration: int
    first_estimate: int | None = None
    start: int | None = None
    end: int | None = None
    pool: PoolKey | None = None
    used: int = 0
    slips: int = 0
    causes: tuple[str, ...] = ()
    is_explained: bool = True
    requeued: int = 0
    was_running: bool = False
    """It held its nodes from the beginning: it counts only for utilisation."""

    @property
    def wait(self) -> int | None:
        """Seconds from filing to the first start."""
        return None if self.start is None else self.start - self.submit

    @property
    def error(self) -> int | None:
        """Seconds between first estimate and start; negative: earlier."""
        known = self.start is not None and self.first_estimate is not None
        return self.start - self.first_estimate if known else None  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Run:
    """A whole simulation: records in the order of the trace, and why those without a start had none at the end."""

    begin: int
    end: int
    nodes: int  # of all pools together
    records: tuple[Record, ...]
    refusals: Mapping[str, Refusal]
    plans: int  # number of plans


@dataclass(slots=True)
class _Slips:
    """How often one start moved later, and why."""

    count: int = 0
    causes: tuple[str, ...] = ()
    is_explained: bool = True


class Records:
    """Records under construction."""

    def __init__(self) -> None:
        self._found: dict[str, Record] = {}
        # Separate, because there are a hundred of these for each other change.
        self._slips: dict[str, _Slips] = {}

    def filed(self, request: Request, name: str) -> None:
        """It arrived."""
        key = request.key
        self._found[key] = Record(
            key, name, request.slice, request.priority, request.nodes, request.filed_at, request.duration
        )

    def ran(self, lease: Lease, name: str) -> None:
        """It held nodes from the beginning."""
        duration = lease.end - lease.start
        self._found[lease.key] = Record(
            lease.key,
            name,
            lease.slice,
            0,
            len(lease.nodes),
            lease.start,
            duration,
            lease.start,
            lease.start,
            pool=lease.pool,
            was_running=True,
        )

    def estimated(self, key: str, start: int) -> bool:
        """It has a start; True if it is the first one."""
        record = self._found[key]
        if record.first_estimate is not None:
            return False
        self._found[key] = replace(record, first_estimate=start)
        return True

    def started(self, lease: Lease) -> None:
        """It has nodes; only the first start counts."""
        record = self._found[lease.key]
        start = lease.start if record.start is None else record.start
        self._found[lease.key] = replace(record, start=start, end=None, pool=lease.pool)

    def ended(self, key: str, end: int, used: int) -> None:
        """It gave its nodes back, or lost them."""
        record = self._found[key]
        self._found[key] = replace(record, end=end, used=record.used + used)

    def requeued(self, key: str) -> None:
        """It lost its nodes with time left."""
        record = self._found[key]
        self._found[key] = replace(record, requeued=record.requeued + 1)

    def slipped(self, keys: Iterable[str], causes: Sequence[str], *, proven: bool) -> None:
        """Their starts moved later, all for these causes."""
        for key in keys:
            slips = self._slips.get(key)
            if slips is None:
                slips = self._slips[key] = _Slips()
            slips.count += 1
            slips.is_explained = slips.is_explained and proven
            if slips.causes != causes:
                slips.causes = tuple(dict.fromkeys((*slips.causes, *causes)))

    def all(self) -> dict[str, Record]:
        """By key, as they are now."""
        return {key: self._with_slips(record) for key, record in self._found.items()}

    def _with_slips(self, record: Record) -> Record:
        slips = self._slips.get(record.key)
        if slips is None:
            return record
        return replace(record, slips=slips.count, causes=slips.causes, is_explained=slips.is_explained)
