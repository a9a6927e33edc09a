"""`egs forecast`: how many more nodes of a shape bring waits under a target."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from egs.commands import output
from egs.commands.output import Form, counted, spoken, working
from reconciler.accounts.capacity import FEWEST, Answer, needed
from reconciler.accounts.past_requests import history
from reconciler.queries.arguments import lasting
from reconciler.queries.state import clock, read_state
from reconciler.sources.command_errors import NotFound
from reconciler.sources.open_source import opened
from schemas.reading.units import parse_duration


@dataclass(frozen=True, slots=True)
class Question:
    shape: str
    target: str
    most: int
    since: str


def show_capacity(repo: str | None, now: str | None, asked: Question, form: Form) -> int:
    lasting("--target-p90", asked.target)
    lasting("--since", asked.since)
    target = parse_duration(asked.target)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
    shapes = {pool.gpu_shape for pool in state.wanted.pools.values()}
    if asked.shape not in shapes:
        raise NotFound("shape", asked.shape, shapes)
    trace = history(state.facts, state.wanted, state.now - parse_duration(asked.since))
    with working("Replaying"):
        found = needed(trace, asked.shape, int(target.total_seconds()), asked.most)
    if found is None:
        output.note(
            f"fewer than {FEWEST} requests of the last {spoken(parse_duration(asked.since))} can use {asked.shape}: "
            "too few for a forecast; use a longer --since, or try again later"
        )
        return 1
    if form is Form.TABLE:
        _print(found, asked, target)
    else:
        output.data(_json(found, asked, target), form)
    return 0 if found.nodes is not None else 1


def _json(found: Answer, asked: Question, target: timedelta) -> dict[str, Any]:
    return {
        "gpuShape": asked.shape,
        "targetP90Seconds": int(target.total_seconds()),
        "requests": found.requests,
        "cluster": found.pool[0],
        "pool": found.pool[1],
        "nodesToAdd": found.nodes,
        "tried": [{"nodesAdded": one.nodes, "p90WaitSeconds": one.p90_s} for one in found.tried],
    }


def _print(found: Answer, asked: Question, target: timedelta) -> None:
    rows = [(f"+{one.nodes}", _wait(one.p90_s)) for one in found.tried]
    output.table(("NODES", "P90 WAIT"), rows, "")
    of = f"of {counted(found.requests, 'request')} that can use {asked.shape}"
    if found.nodes is None:
        output.text(
            f"Not even {counted(asked.most, 'node')} more would bring the p90 wait {of} under {spoken(target)}."
        )
    elif found.nodes == 0:
        output.text(f"The p90 wait {of} is under {spoken(target)} with the nodes there are today.")
    else:
        where, nodes = "/".join(found.pool), counted(found.nodes, "more node")
        output.text(f"{nodes} in {where} would bring the p90 wait {of} under {spoken(target)}.")


def _wait(wait_s: int | None) -> str:
    return "never" if wait_s is None else spoken(timedelta(seconds=wait_s))
