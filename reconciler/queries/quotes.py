"""`egs wait`: when a request would start in each pool it could use if it were filed now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from reconciler.accounts.monthly_limits import (
    Account,
    Verdict,
    full_account,
    queue_full,
    too_few_hours,
    verdict,
)
from reconciler.documents.yaml_edit import new_document
from reconciler.model.facts import Facts
from reconciler.model.statuses import live
from reconciler.planning.forecast import forecast
from reconciler.planning.forecast_inputs import lesson
from reconciler.planning.pool_choice import NOBODY, has_bounded_hours, offering, shut_now
from reconciler.planning.queue_place import place_of_unfiled, unfiled_at
from reconciler.queries.arguments import lasting, time
from reconciler.queries.state import State, bad_name, clock, is_name, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.open_source import opened
from scheduler.choices.fit import candidate_pools, limit_violations, usable_pools, would_fit
from scheduler.choices.pool_choice import served
from scheduler.estimates.calibration import habit_of, told
from scheduler.estimates.expected_starts import drawn_quotes
from scheduler.fairness.wait_bounds import guarded
from scheduler.plan import plan
from scheduler.quote import Quote, Quoter
from scheduler.reasons import Reason
from scheduler.snapshot import Plan, PoolKey, Request
from schemas.documents.gpr import GPR, RequestSpec, resolve
from schemas.documents.slice import SliceSpec
from schemas.reading.reader import read_document
from schemas.reading.units import format_duration, instant, seconds, wire
from schemas.rules.limits import LimitViolation
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import GPRStatus, Place
from schemas.status.insights import Forecast

UNFILED = "~"
"""Placeholder name of an unnamed request; no file can have it, and it sorts after all valid names."""


def shape_field(shapes: Sequence[str]) -> str | list[str] | None:
    """One shape as text, several as a list, none as None."""
    return None if not shapes else shapes[0] if len(shapes) == 1 else list(shapes)


def wished(slice_: str, spec: dict[str, Any]) -> RequestSpec:
    """A request of these fields; raises WrongUse that lists everything wrong with it."""
    if not is_name(slice_):
        raise bad_name(slice_)
    lasting("--duration", spec.get("duration"))
    time("--not-before", spec.get("notBefore"))
    path = gpr_path(slice_, "wish")
    document = read_document(path, new_document("GPR", "wish", {"slice": slice_, **spec}))
    if not isinstance(document, GPR):
        problems = document if isinstance(document, tuple) else ()
        raise WrongUse("; ".join(problem.advice for problem in problems))
    found = resolve(document.spec, None)
    assert isinstance(found, RequestSpec)
    return found


class QuoteContext:
    """A state prepared for many questions. An answer costs by the pools asked for, not by the queue. One owner."""

    def __init__(self, state: State, planned: Plan | None = None) -> None:
        """`planned` is the state's plan if the caller already has it."""
        self._state, world = state, guarded(state.snapshot)
        planned = planned or plan(state.snapshot)
        self._quoter = Quoter(world, planned if world is state.snapshot else plan(world))
        self._placed = planned.placements if has_bounded_hours(state.wanted) else NOBODY
        self._slices: dict[str, Facts] = _by_slice(state.facts)
        self._accounts: dict[str, Account] = {}
        self._places: dict[str, Place | None] = {}

    def quotes(self, spec: RequestSpec, name: str = UNFILED) -> tuple[Quote, ...]:
        """One quote for each pool it could use if filed now, the earliest first; empty if it fits nowhere."""
        state, wanted = self._state, self._state.wanted
        request = self.unfiled_request(spec, name)
        allowed = usable_pools(spec, slice_of(state, spec.slice), wanted.project, wanted.pools, None)
        account = self._account(spec.slice)
        found = verdict(spec, None, account, wanted)
        needs = {key: key not in allowed or key in found.soft for key in request.pools}
        shut = self._barred_now(spec, account, found)
        answers = self._quoter.quote(request, needs)
        open_, barred = (
            tuple(a for a in answers if (a.pool in shut) is is_shut) for is_shut in (False, True)
        )
        return (*open_, *(_without_start(answer, shut[answer.pool]) for answer in barred))

    def unfiled_request(self, spec: RequestSpec, name: str = UNFILED) -> Request:
        """The request as it would wait if filed now, in every pool it fits."""
        state = self._state
        filed_at = 0 if state.committed is None else state.snapshot.now
        asked = (f"{spec.slice}/{name}", spec, filed_at)
        place = unfiled_at(self._place(asked), asked, state.wanted, state.facts.at)
        return Request(
            key=place.key,
            slice=spec.slice,
            nodes=spec.nodes,
            duration=int(spec.duration.total_seconds()),
            pools=candidate_pools(spec, slice_of(state, spec.slice), state.wanted.pools),
            priority=spec.priority,
            share=place.share,
            service=place.service,
            filed_at=filed_at,
            not_before=0 if spec.not_before is None else seconds(spec.not_before),
        )

    def _place(self, asked: tuple[str, RequestSpec, int]) -> Place | None:
        """The queue position of a request filed now; cached by slice if its name does not matter."""
        key, spec, filed_at = asked
        own, wanted = self._own(spec.slice), self._state.wanted
        if not filed_at or not key.endswith(f"/{UNFILED}"):
            return place_of_unfiled(key, spec, filed_at, own, wanted)
        if spec.slice not in self._places:
            self._places[spec.slice] = place_of_unfiled(key, spec, filed_at, own, wanted)
        return self._places[spec.slice]

    def _account(self, slice_: str) -> Account:
        if slice_ not in self._accounts:
            self._accounts[slice_] = full_account(slice_, self._own(slice_), self._state.wanted)
        return self._accounts[slice_]

    def _own(self, slice_: str) -> Facts:
        own = self._slices.get(slice_)
        return replace(self._state.facts, requests={}) if own is None else own

    def _barred_now(self, spec: RequestSpec, account: Account, found: Verdict) -> dict[PoolKey, str]:
        """Pools that it could not get if filed now, even with an approval, and why."""
        most = account.slice_.limits.max_waiting
        if most is not None and account.waiting >= most:
            return dict.fromkeys(found.wants, queue_full(most))
        shut = shut_now(spec, self._state.wanted, self._state.facts, self._placed)
        why = (
            "the request is too long for this burst cluster, or the cluster's hours of this month are used up"
        )
        away = {pool: f"{pool[0]} does not take it: {why}" for pool in found.wants if pool[0] in shut}
        return away | {pool: too_few_hours(pool, found, account) for pool in found.hard}


def _by_slice(facts: Facts) -> dict[str, Facts]:
    own: dict[str, dict[str, GPRStatus]] = {}
    for key, status in live(facts.requests).items():
        own.setdefault(status.accepted_spec.slice, {})[key] = status
    return {slice_: replace(facts, requests=requests) for slice_, requests in own.items()}


def quotes(state: State, spec: RequestSpec, name: str = UNFILED) -> tuple[Quote, ...]:
    """As `QuoteContext.quotes`, for a single question."""
    return QuoteContext(state).quotes(spec, name)


def _without_start(answer: Quote, why: str) -> Quote:
    return replace(answer, start=None, wait_s=None, reason=str(Reason.LIMIT_EXCEEDED), message=why)


def served_by(state: State, spec: RequestSpec, answers: Sequence[Quote]) -> Quote | None:
    """The quote a request without an approval would get: by its preference, burst clusters last."""
    free = {answer.pool: answer for answer in answers if not answer.needs_approval}
    starts = {key: answer.start for key, answer in free.items() if answer.start is not None}
    fitting = candidate_pools(spec, slice_of(state, spec.slice), state.wanted.pools)
    open_ = tuple(key for key in fitting if key in starts)
    chosen = offering(state.wanted, state.facts, state.snapshot.pools).among(spec, open_)
    pool = served(chosen, starts)
    return None if pool is None else free[pool]


def slice_of(state: State, name: str) -> SliceSpec:
    found = state.wanted.slices.get(name)
    if found is None:
        raise NotFound("slice", name, state.wanted.slices)
    return found


def quote_json(answer: Quote, state: State, *, is_barred: bool = False) -> dict[str, Any]:
    """A row of `egs wait -o json`; a request beyond a hard limit of its slice never starts."""
    start = None if is_barred else answer.start
    observed = state.wanted.pools[answer.pool].observed and start is not None
    return {
        "cluster": answer.pool[0],
        "pool": answer.pool[1],
        "gpuShape": answer.gpu_shape,
        "gpusPerNode": answer.gpus_per_node,
        "memoryPerGpu": answer.memory_per_gpu,
        "freeNodes": answer.free_nodes,
        "estimatedStartTime": None if start is None else wire(instant(start)),
        "estimatedWaitSeconds": None if start is None else answer.wait_s,
        "needsApproval": answer.needs_approval,
        "pricePerGpuHour": answer.price_per_gpu_hour,
        "reason": str(Reason.LIMIT_EXCEEDED)
        if is_barred
        else "ClusterObserved"
        if observed
        else answer.reason,
    }


def quoted(
    repo: str | None, now: str | None, slice_: str, terms: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of `egs wait -o json`, and sentences about them; `terms` are fields of a request's spec."""
    spec = wished(slice_, terms)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
    _check_clusters(spec, slice_of(state, slice_))
    broken = limit_violations(spec, slice_of(state, slice_))
    desk = QuoteContext(state)
    answers = desk.quotes(spec)
    likely = {} if broken else likely_starts(state, desk.unfiled_request(spec), answers)
    chosen = served_by(state, spec, answers) if "prefer" in terms and not broken else None
    rows = []
    for answer in answers:
        row = quote_json(answer, state, is_barred=bool(broken))
        if answer.pool in likely:
            row["forecast"] = likely[answer.pool].model_dump(mode="json", by_alias=True)
        rows.append(row | ({"preferred": answer is chosen} if "prefer" in terms else {}))
    return rows, list(_notes(state, spec, answers, (chosen, broken)))


def _notes(
    state: State,
    spec: RequestSpec,
    answers: Sequence[Quote],
    found: tuple[Quote | None, Sequence[LimitViolation]],
) -> Iterator[str]:
    """Notes on stderr: which pool it would get, and why not the others."""
    chosen, broken = found
    if chosen is not None:
        yield f"it would get {'/'.join(chosen.pool)}: {_PREFERRED[spec.prefer]}"
    for violation in broken:
        yield violation.message
    if not answers:
        fits = would_fit(spec, slice_of(state, spec.slice), state.wanted.pools)
        yield f"it fits no pool that it may use: {fits}"
    for answer in answers if not broken else ():
        if answer.start is None:
            yield f"{'/'.join(answer.pool)}: {answer.message}"
        else:
            yield from _burst_note(answer, state)


_PREFERRED = {
    "earliest": "the earliest start",
    "price": "the lowest price among the pools that it fits",
    "memory": "the least memory among the pools that it fits",
}


def _burst_note(answer: Quote, state: State) -> Iterator[str]:
    burst = state.wanted.clusters[answer.pool[0]].burst
    if burst is not None:
        yield (
            f"{'/'.join(answer.pool)} is in a burst cluster, used only if no other pool offers a start within "
            f"{format_duration(burst.after)}, at {answer.price_per_gpu_hour:g} per GPU-hour"
        )


def _check_clusters(spec: RequestSpec, slice_: SliceSpec) -> None:
    for name in spec.clusters:
        if name not in slice_.clusters:
            spanned = ", ".join(slice_.clusters)
            raise NotAllowed(f"slice {spec.slice} does not include cluster {name}; it includes {spanned}")


def likely_starts(state: State, request: Request, answers: tuple[Quote, ...]) -> dict[PoolKey, Forecast]:
    """The likely start of an unfiled request, by pool; empty if too few requests have ended to learn from."""
    planned = {answer.pool: answer.start for answer in answers if answer.start is not None}
    if state.committed is None or not state.facts.ended or not planned:
        return {}
    known = lesson(state.facts, state.snapshot)
    found = drawn_quotes(state.snapshot, plan(state.snapshot), known.learnt, request)
    habit, now = habit_of(known.habits, request.priority), state.snapshot.now
    return {
        pool: forecast(told(one, planned[pool], now, now, habit), known)
        for pool, one in found.items()
        if pool in planned
    }
