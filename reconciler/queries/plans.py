"""`egs plan`: the schedule of one commit, the effects of a change on every request, and the bare planner on a CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from egs.commands import output
from reconciler.deciding.what_if import effects
from reconciler.machine_code import MANY, make_ready
from reconciler.model.request_files import read_filings
from reconciler.queries.past.state_then import state_then
from reconciler.queries.schedule import Schedule, refusal_json, schedule, unread_refusal
from reconciler.queries.state import State, as_filed, clock, read_states
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from scheduler.causes.compare import Effect
from scheduler.instance import InstanceError, InstancePlan, plan_instance
from scheduler.snapshot import Refusal
from schemas.documents.scheduling import Fairness
from schemas.reading.collector import collector_paused
from schemas.reading.units import instant, wire

_DIGITS = 7
"""Of a pool's size: no fleet has ten million nodes."""
_SECONDS_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Planned:
    """A state, its schedule, and the effects of the change (None: no comparison was asked for)."""

    state: State
    schedule: Schedule
    effects: tuple[Effect, ...] | None = None

    def json(self) -> dict[str, Any]:
        now = self.state.now
        content: dict[str, Any] = {
            "now": wire(now),
            "commit": self.state.commit,
            "requests": [row.json(now) for row in self.schedule.rows],
            "refused": [refusal_json(refusal) for refusal in self.schedule.refused],
        }
        if self.effects is not None:
            content["changes"] = [effect_json(effect) for effect in self.effects]
        return content


def planned(source: Source, now: datetime, ref: str | None, against: str | None) -> Planned:
    """The schedule at `ref`, and its effects compared with the commit `against`."""
    source.skim()  # neither a schedule nor an effect has a finished request
    state, *bases = read_states(source, now, ref, *([] if against is None else [against]))
    if len(state.snapshot.requests) >= MANY:
        make_ready()
    head = schedule(state.facts.requests, state.snapshot, state.wanted, _unread(source, state, ref))
    return Planned(state, head, effects(bases[0], state).effects if bases else None)


def _unread(source: Source, state: State, ref: str | None) -> Iterable[Refusal]:
    for key, filed in sorted(read_filings(state.wanted.filed)):
        if filed.spec is None and key not in state.facts.requests:
            spec = as_filed(source, source.commit_of(ref), key)
            yield unread_refusal(key, filed, spec, state.wanted, state.problems)


def effect_json(effect: Effect) -> dict[str, Any]:
    slice_, _, name = effect.key.partition("/")
    return {
        "slice": slice_,
        "name": name,
        "change": effect.change,
        "was": None if effect.was is None else wire(instant(effect.was)),
        "now": None if effect.now is None else wire(instant(effect.now)),
        "cause": None if effect.cause is None else str(effect.cause),
        "by": effect.by or None,
    }


def plan_json(repo: str | None, now: str | None, ref: str | None, against: str | None) -> dict[str, Any]:
    with opened(repo) as source, collector_paused():
        return planned(source, clock(now, source), ref, against).json()


def plan_then(repo: str | None, now: str | None, at: str) -> dict[str, Any]:
    """The schedule as it was known then."""
    with opened(repo) as source, collector_paused():
        then = state_then(source, at, clock(now, source))
    state = then.state
    found = schedule(state.facts.requests, state.snapshot, state.wanted, unread_refusals(state))
    return Planned(replace(state, now=then.asked), found).json()


def unread_refusals(state: State) -> Iterator[Refusal]:
    """Files that are not valid requests and have no record."""
    for key, filed in sorted(read_filings(state.wanted.filed)):
        if filed.spec is None and key not in state.facts.requests:
            yield unread_refusal(key, filed, None, state.wanted, state.problems)


def show_instance(
    file: str, pools: Sequence[str], now: str | None, form: str, fairness: Fairness | None
) -> int:
    try:
        text = Path(file).read_text(encoding="utf-8") if file != "-" else sys.stdin.read()
        found = plan_instance(text, pool_sizes(pools), _seconds(now), fairness)
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        ) from error
    except InstanceError as error:
        for bad in (error, *error.more):
            output.note(f"{file}: {bad}")
        return WrongUse.exit_code
    _print_instance(found, form)
    for answer in found.refused:
        output.note(f"{answer.id}: {answer.message}")
    return 1 if found.refused else 0


def pool_sizes(pools: Sequence[str]) -> list[tuple[str, int]]:
    """The values of `--pool NAME=NODES`; raises WrongUse."""
    sizes: dict[str, int] = {}
    for text in pools:
        name, _, nodes = text.rpartition("=")
        if not name or "|" in name or not nodes.isascii() or not nodes.isdigit():
            raise WrongUse(f"--pool {text} is not NAME=NODES; write for example --pool a=100")
        if len(nodes) > _DIGITS:
            raise WrongUse(f"--pool {text}: a pool has at most {10**_DIGITS - 1} nodes")
        if name in sizes:
            raise WrongUse(f"--pool {name} is given twice; give each pool once")
        sizes[name] = int(nodes)
    if not sizes:
        raise WrongUse("--instance needs pools; add --pool NAME=NODES for each")
    return list(sizes.items())


def _seconds(now: str | None) -> int:
    text = now or "0"
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit():
        raise WrongUse(f"--now {text}: with --instance give whole seconds, for example --now 0")
    if len(digits) > _SECONDS_DIGITS:
        raise WrongUse(f"--now {text}: with --instance give at most {_SECONDS_DIGITS} digits")
    return int(text)


def _print_instance(found: InstancePlan, form: str) -> None:
    if form == "json":
        output.text(json.dumps(found.json(), indent=2, ensure_ascii=False))
    elif form == "table":
        rows = [(a.id, a.pool, a.start, a.end, a.wait) for a in found.answers]
        output.table(("ID", "POOL", "START", "END", "WAIT"), rows, "the instance has no rows")
    else:
        sys.stdout.write(found.csv)
