"""A request's status under the vendor's names, from its record and the clock. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from portal.identity.redaction import Redactor
from portal.vendor.gpr_models import ForecastData, GprData, GprStanding, Model, SlipCauseData, SlipData
from portal.views.queues import Row, queue_row
from portal.views.view import View
from reconciler.queries.costs import cost_so_far, money
from scheduler.snapshot import Pool
from schemas.documents.gpr import RequestSpec
from schemas.documents.identity import uid_of
from schemas.reading.units import format_instant, parse_instant
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, GPRStatus, Phase
from schemas.status.insights import Forecast

Provisioning = Literal[
    "Pending", "Queued", "Provisioning", "Successful", "Complete", "Cancelled", "Rejected", "Failed"
]
PROVISIONING: Mapping[Phase, Provisioning] = {
    Phase.PENDING_APPROVAL: "Pending",
    Phase.QUEUED: "Queued",
    Phase.PROVISIONING: "Provisioning",
    Phase.PROVISIONED: "Successful",
    Phase.RELEASING: "Successful",
    Phase.COMPLETED: "Complete",
    Phase.CANCELLED: "Cancelled",
    Phase.REJECTED: "Rejected",
    Phase.FAILED: "Failed",
}
"""The vendor's name of each phase."""
LEASED = frozenset({Phase.PROVISIONED, Phase.RELEASING})
"""Phases of a running lease, whose cost is not in the status yet."""
OF_THE_FILE = frozenset({"FileMissing", "InvalidFile", "EditRefused"})
"""Conditions that say how file and request differ, and what to do."""
FILED = "Filed"
"""Phase of a request that the controller has not seen yet."""
NOT_SEEN = "NotSeenYet"
NOT_SEEN_TEXT = "Its file is on main; the controller will read it in its next cycle."
GONE, GONE_TEXT = "FileGone", "cancelled: its file was deleted"
_NO_ROW: Row = {}


@dataclass(frozen=True, slots=True)
class Found:
    """A request: `slice/name`, its terms and its status (None: not seen yet)."""

    key: str
    spec: RequestSpec
    status: GPRStatus | None

    @property
    def slice(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


def found_in(view: View, id_or_key: str) -> Found | None:
    """The request with that id, or slice/name; None: there is none."""
    found = view.request(id_or_key)
    return None if found is None else Found(found[0], found[2], found[1])


def id_of(view: View, found: Found) -> str:
    """Its id; empty while unknown, because its file has no seed of its own and was not seen yet."""
    if found.status is not None:
        return found.status.uid
    filed = view.wanted.filed.get(found.key)
    return uid_of(found.key, filed.nonce) if filed is not None and filed.nonce else ""


def data_of(view: View, found: Found, now: datetime, redactor: Redactor) -> GprData:
    """The request as it is at `now`."""
    spec, status = found.spec, found.status
    row = (queue_row(view, found.key, now) if _waits(status) else None) or _NO_ROW
    planned = row.get("estimatedStartTime")
    pool = pool_of(view, status, row)
    start = start_of(status, None if planned is None else parse_instant(planned))
    return GprData(
        gpr_id=id_of(view, found),
        name=found.key,
        gpr_name=spec.display_name or found.name,
        slice_name=found.slice,
        cluster_name=spec.clusters[0] if len(spec.clusters) == 1 else _cluster(spec, pool),
        number_of_gpus=spec.gpus_per_node,
        number_of_gpu_nodes=spec.nodes,
        instance_type=spec.instance_type or (pool and pool.instance_type) or "",
        memory_per_gpu=spec.memory_per_gpu or (0 if pool is None else pool.memory_per_gpu),
        priority=spec.priority,
        gpu_sharing_mode=spec.sharing,
        estimated_start_time=_time(start),
        estimated_wait_time="" if start is None else spoken(max(timedelta(), start - now)),
        exit_duration=spoken(spec.duration),
        early_release=spec.early_release,
        gpu_shape=shape_of(spec, pool),
        multi_node=spec.nodes > 1,
        dedicated_nodes=spec.sharing == "dedicated",
        enable_rdma=spec.network.rdma,
        enable_secondary_network=spec.network.secondary,
        idle_time_out_duration="" if spec.idle_timeout is None else spoken(spec.idle_timeout),
        enforce_idle_time_out=spec.idle_timeout is not None,
        requeue_on_failure=spec.requeue_on_failure,
        enable_eviction=spec.preemptible,
        phase=FILED if status is None else str(status.phase),
        reason=NOT_SEEN if status is None else status.reason or row.get("reason") or "",
        message=redactor.text(_message(status, row)),
        position=row.get("position"),
        rank=row.get("rank"),
        slips=[] if status is None else _slips(status, redactor),
        forecast=None if status is None else forecast_of(status.forecast),
        end_time="" if status is None else _time(status.end_time or status.estimated_end_time),
        not_before=_time(spec.not_before),
        start=spec.start,
        prefer=spec.prefer,
        max_wait="" if spec.max_wait is None else spoken(spec.max_wait),
        extend=spoken(spec.extend),
        stopped=spec.stopped,
        model=Model(**spec.model.model_dump()),
        gpu_shapes=list(spec.gpu_shapes),
        preferred_clusters=list(spec.clusters),
        spec_digest=_digest(view, found),
        status=_standing(view, status, now, redactor),
    )


def as_cancelled(data: GprData) -> GprData:
    """A waiting request after its file was deleted: the controller drops its record with the file."""
    return data.edited(
        phase=str(Phase.CANCELLED),
        reason=GONE,
        message=GONE_TEXT,
        status=data.status.edited(provisioning_status="Cancelled"),
        estimated_start_time="",
        estimated_wait_time="",
        end_time="",
        forecast=None,
        position=None,
        rank=None,
    )


def _digest(view: View, found: Found) -> str:
    if found.status is not None:
        return found.status.spec_digest
    slice_ = view.wanted.slices.get(found.slice)
    return "" if slice_ is None else found.spec.digest(free_priority(slice_, view.wanted.project))


def _standing(view: View, status: GPRStatus | None, now: datetime, redactor: Redactor) -> GprStanding:
    currency = view.wanted.project.currency
    if status is None:
        return GprStanding(
            provisioning_status="Pending",
            failure_reason="",
            num_gpus_allocated=0,
            start_timestamp="",
            completion_timestamp="",
            cost=money(None, currency),
            nodes=[],
            internal_state="",
            retry_count=0,
            delayed_count=0,
            warned_at="",
            checkpointed_at="",
        )
    held, failed = status.assignment, status.phase in (Phase.FAILED, Phase.REJECTED)
    pool = None if held is None else view.wanted.pools.get((held.cluster, held.pool))
    return GprStanding(
        provisioning_status=PROVISIONING[status.phase],
        failure_reason=redactor.text(status.message or status.reason or "") if failed else "",
        num_gpus_allocated=0 if held is None or pool is None else len(held.nodes) * pool.gpus_per_node,
        start_timestamp=_time(status.start_time),
        completion_timestamp=_time(completed(status)),
        cost=money(cost_so_far(view.wanted, status, now), currency),
        nodes=[] if held is None else list(held.nodes),
        internal_state=_internal(status),
        retry_count=status.retry_count,
        delayed_count=status.delayed_count,
        warned_at=_time(None if status.warned is None else status.warned.at),
        checkpointed_at=_time(None if status.checkpoint is None else status.checkpoint.at),
    )


def completed(status: GPRStatus) -> datetime | None:
    """When it gave its nodes back; None: it still has some, or never had any."""
    if status.phase not in TERMINAL or status.start_time is None:
        return None
    return status.released_at or status.end_time


def _message(status: GPRStatus | None, row: Row) -> str:
    """The controller's message, with problems of its file; without either, what comes next."""
    if status is None:
        return NOT_SEEN_TEXT
    claims = (c.message for c in status.conditions if c.type in OF_THE_FILE)
    told = (status.message or _next(status, row), *(f"{text[:1].upper()}{text[1:]}." for text in claims))
    return " ".join(text for text in told if text)


def _next(status: GPRStatus, row: Row) -> str:
    end = status.end_time or status.estimated_end_time
    if status.phase is Phase.QUEUED and row.get("estimatedStartTime") is not None:
        where = f"{row['cluster']}/{row['pool']}"
        return (
            f"It is number {row['rank']} in the queue and starts at {row['estimatedStartTime']} in {where}."
        )
    if status.phase is Phase.PROVISIONED and end is not None:
        return f"It has its nodes until {format_instant(end)}."
    return "Its nodes are being checked." if status.phase is Phase.PROVISIONING else ""


def _internal(status: GPRStatus) -> Literal["", "Reserved", "Released"]:
    if status.phase in HOLDING:
        return "Reserved"
    return "Released" if status.phase in TERMINAL and status.start_time is not None else ""


def _waits(status: GPRStatus | None) -> bool:
    return status is not None and status.phase in WAITING


def start_of(status: GPRStatus | None, planned: datetime | None) -> datetime | None:
    """When it started or will; `planned`: by the plan, if it waits. None: unknown."""
    if status is None or status.phase in TERMINAL:
        return None if status is None else status.start_time
    return status.start_time or status.estimated_start_time or planned


def pool_of(view: View, status: GPRStatus | None, row: Row) -> Pool | None:
    """Where it is, or is promised to be; None: unknown."""
    if status is None:
        return None
    held = status.assignment
    if held is not None:
        return view.wanted.pools.get((held.cluster, held.pool))
    cluster, pool = status.estimated_cluster or row.get("cluster"), status.estimated_pool or row.get("pool")
    return None if cluster is None or pool is None else view.wanted.pools.get((cluster, pool))


def _cluster(spec: RequestSpec, pool: Pool | None) -> str:
    return pool.key[0] if pool is not None else next(iter(spec.clusters), "")


def shape_of(spec: RequestSpec, pool: Pool | None) -> str:
    """The shape it asks for; if several would do, the one that it has or is promised."""
    if len(spec.gpu_shapes) == 1:
        return spec.gpu_shapes[0]
    return pool.gpu_shape if pool is not None else ", ".join(spec.gpu_shapes) or "any"


def _slips(status: GPRStatus, redactor: Redactor) -> list[SlipData]:
    return [
        SlipData(
            was=format_instant(slip.was),
            now=None if slip.now is None else format_instant(slip.now),
            cause=str(slip.cause),
            by=redactor.text(slip.by),
            also=[SlipCauseData(cause=str(one.cause), by=redactor.text(one.by)) for one in slip.also],
            at=format_instant(slip.at),
        )
        for slip in status.slips
    ]


def forecast_of(said: Forecast | None) -> ForecastData | None:
    if said is None:
        return None
    p10, p50, p90 = (format_instant(at) for at in (said.p10, said.p50, said.p90))
    return ForecastData(p10=p10, p50=p50, p90=p90, learnt_from=said.learnt_from)


def _time(at: datetime | None) -> str:
    return "" if at is None else format_instant(at)


def spoken(length: timedelta) -> str:
    """`6h0m0s`, as the vendor writes durations; hours go on beyond a day."""
    total = int(length.total_seconds())
    return f"{total // 3600}h{total // 60 % 60}m{total % 60}s"
