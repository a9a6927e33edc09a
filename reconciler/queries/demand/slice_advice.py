"""`egs advise`: nodes by hour for a slice, by when to file for them, and the requests that would do so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from reconciler.model.observation import CountPast
from reconciler.queries.arguments import lasting
from reconciler.queries.demand.request_load import known_needs, load_of, own_ends
from reconciler.queries.demand.served_load import Served, asked_of, served_of
from reconciler.queries.quotes import QuoteContext, shape_field, slice_of, wished
from reconciler.queries.state import State, clock, read_state
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.open_source import opened
from scheduler.demand.advice import LEAST_DAYS, Advice, Gap, Hour, advised, gaps
from scheduler.demand.choice_of_rule import Choice, Outcome
from scheduler.demand.load import DAY_S, Load, Terms
from scheduler.plan import plan
from scheduler.snapshot import Plan
from schemas.reading.units import instant, parse_duration, wire

MOST_HOURS = 168
LONGEST_COLD_START = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Question:
    """`patience`: waiting so long costs as much as the work; `cold_start`: from a lease's start until it works."""

    hours: int = 24
    patience: str = "1h"
    cold_start: str = "10m"
    gpus_per_node: int | None = None
    """None: one, for an endpoint those of its request."""
    shapes: tuple[str, ...] = ()
    endpoint: str = ""
    """Learn from what this one served; empty: from the slice's requests."""


def advice_of(
    repo: str | None, now: str | None, slice_: str, asked: Question, past: CountPast | None = None
) -> dict[str, Any]:
    """The data of `egs advise -o json` on a repository. `past` asks for what endpoints served."""
    check(asked)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
    served = None if past is None else what_was_served(state, slice_, asked, past)
    return slice_advice(state, slice_, asked, plan(state.snapshot), served)


def what_was_served(state: State, slice_: str, asked: Question, past: CountPast) -> Served | None:
    """Asks the clusters' Prometheus; None: advice is for no endpoint. Raises Fault if one is silent, and UserError."""
    if not asked.endpoint:
        return None
    questions = asked_of(state, slice_, asked.endpoint)
    answers = [past(one, state.now) for one in questions]
    return served_of(state, slice_, asked.endpoint, asked.gpus_per_node, answers)


def check(asked: Question) -> None:
    """Raises WrongUse for terms that mean nothing."""
    lasting("--patience", asked.patience)
    if not 1 <= asked.hours <= MOST_HOURS:
        raise WrongUse(f"--hours {asked.hours}: write a number from 1 to {MOST_HOURS}")
    try:
        cold = parse_duration(asked.cold_start)
    except ValueError as error:
        raise WrongUse(f"--cold-start {asked.cold_start}: write a duration like 10m") from error
    if cold > LONGEST_COLD_START:
        raise WrongUse(f"--cold-start {asked.cold_start}: at most {LONGEST_COLD_START.days} days")


def slice_advice(
    state: State, slice_: str, asked: Question, planned: Plan, served: Served | None = None
) -> dict[str, Any]:
    """Pure. Raises NotFound for an unknown slice, and NotAllowed if the plan offers it no node at all."""
    slice_of(state, slice_)
    asked = replace(
        asked, gpus_per_node=asked.gpus_per_node or (1 if served is None else served.gpus_per_node)
    )
    wait_s = _promised_wait(state, slice_, asked, planned)
    cold_s = int(parse_duration(asked.cold_start).total_seconds())
    terms = Terms(wait_s + cold_s, int(parse_duration(asked.patience).total_seconds()))
    world = state.snapshot
    load = load_of(state.facts, slice_, world.now) if served is None else served.load
    known = known_needs(slice_, state.facts, world, planned, asked.hours)
    found = advised(load, terms, known, world.now)
    return {
        "slice": slice_,
        "endpoint": None if served is None else served.endpoint,
        "at": wire(instant(world.now)),
        "historyHours": len(load.nodes),
        "silentHours": 0 if served is None else served.silent_hours,
        "leadSeconds": terms.lead_s,
        "promisedWaitSeconds": wait_s,
        "patienceSeconds": terms.patience_s,
        "method": _method(found.choice),
        "sentence": _sentence(found, load),
        "backTest": None if found.choice is None else _back_test(found.choice),
        "hours": [_hour_json(hour) for hour in found.hours],
        "tooSmall": sum(hour.known > 0 and hour.missing > 0 for hour in found.hours),
        "proposals": [_proposal(gap, asked) for gap in gaps(found.hours, terms.lead_s)],
    }


def _promised_wait(state: State, slice_: str, asked: Question, planned: Plan) -> int:
    """What the plan lets a node for an hour wait, after the slice's own requests: it runs one at a time."""
    spec = {"nodes": 1, "duration": "1h", "gpusPerNode": asked.gpus_per_node}
    shape = shape_field(asked.shapes)
    wish = wished(slice_, spec if shape is None else {**spec, "gpuShape": shape})
    answers = QuoteContext(state, planned).quotes(wish)
    starts = [answer.start for answer in answers if answer.start is not None]
    if not starts:
        raise NotAllowed(
            f"no pool offers slice {slice_} a node, so there is nothing to advise; `egs wait --slice {slice_} "
            "--nodes 1 --duration 1h` says why"
        )
    start, now = min(starts), state.snapshot.now
    own = own_ends(slice_, state.snapshot, planned)
    return max(0, start - max([now, *(end for end in own if end <= start)]))


def _method(choice: Choice | None) -> str:
    return "known-needs" if choice is None else "learnt-quantile" if choice.is_learnt else "threshold"


def _sentence(found: Advice, load: Load) -> str:
    """What the advice rests on, for people."""
    choice, days = found.choice, len(load.nodes) * load.step_s / DAY_S
    if choice is None and days >= LEAST_DAYS:
        return f"Nothing was used in the last {days:.0f} days: these are the needs of filed requests alone."
    if choice is None:
        return (
            f"The use of {days:.1f} days is known and {LEAST_DAYS} are needed: these are the needs of filed "
            "requests alone."
        )
    learnt, plain = choice.learnt_outcome.cost, choice.threshold_outcome.cost
    if choice.is_learnt:
        return (
            f"A learnt quantile would have cost {learnt:.2f} nodes for each node in use over the last {days:.0f} "
            f"days, waiting included; the best threshold {plain:.2f}."
        )
    return (
        f"A plain threshold does as well: keep the use at {choice.threshold.target:.0%} of the nodes. It would have "
        f"cost {plain:.2f} nodes for each node in use over the last {days:.0f} days, a learnt quantile {learnt:.2f}."
    )


def _back_test(choice: Choice) -> dict[str, Any]:
    return {
        "learnt": _outcome(choice.learnt_outcome),
        "threshold": {**_outcome(choice.threshold_outcome), "target": choice.threshold.target},
    }


def _outcome(found: Outcome) -> dict[str, Any]:
    return {"cost": round(found.cost, 4), "lateShare": round(found.late, 4)}


def _hour_json(hour: Hour) -> dict[str, Any]:
    return {
        "begin": wire(instant(hour.begin)),
        "expected": round(hour.expected, 2),
        "nodes": hour.nodes,
        "known": hour.known,
        "missing": hour.missing,
        "fileBy": None if hour.file_by is None else wire(instant(hour.file_by)),
        "provisional": hour.is_provisional,
    }


def _proposal(gap: Gap, asked: Question) -> dict[str, Any]:
    """A request as `egs gpr create` takes it."""
    begin = instant(gap.begin)
    return {
        # Without minutes, so that the same question some minutes later does not file the same nodes twice.
        "name": f"advised-{begin:%Y%m%d-%H}",
        "nodes": gap.nodes,
        "gpusPerNode": asked.gpus_per_node,
        "gpuShape": list(asked.shapes) or None,
        "notBefore": wire(begin),
        "duration": f"{(gap.end - gap.begin) // 3600}h",
        "fileBy": wire(instant(gap.file_by)),
    }
