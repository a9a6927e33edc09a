"""`egs gpr move`: an admin reorders requests of one priority, and sees which starts that moves.

The position is a number in the file (`move`, higher first), so that it survives everything else; as few files
as possible change. Held by tests/reconciler/cli/test_moving.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from egs.commands import output
from egs.commands.output import Form
from egs.commands.questions import CHANGES, MOVES_NOBODY
from reconciler.changes.change import Change, Means, Submitted
from reconciler.changes.named_request import check_waits
from reconciler.changes.publish import aimed, publish
from reconciler.changes.reinstate import file_versions
from reconciler.changes.requests import where_it_is
from reconciler.deciding.what_if import effects
from reconciler.documents.yaml_edit import with_field
from reconciler.model.statuses import live
from reconciler.planning.queue_place import standings
from reconciler.queries.plans import effect_json
from reconciler.queries.state import State, split, state_at
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.source import Source
from scheduler.causes.compare import Effect
from scheduler.fairness.rank import RankInputs, rank_key
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import WAITING, Phase

MOST = 1000
"""Largest absolute value of the number."""


@dataclass(frozen=True, slots=True)
class Answering:
    """When a move is decided, how it answers, and whether it is only tried."""

    now: str | None = None
    form: Form = Form.TABLE
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where the request goes: just before another request (its key), or to an end of its priority."""

    end: str = ""  # first or last
    before: str = ""

    @classmethod
    def of(cls, *, first: bool, last: bool, before: str | None) -> Target:
        """As typed; exactly one of the three."""
        if first + last + (before is not None) != 1:
            raise WrongUse("give exactly one of --first, --last and --before SLICE/GPR")
        if before is not None:
            split(before)
            return cls(before=before)
        return cls(end="first" if first else "last")

    def __str__(self) -> str:
        return self.end or f"before {self.before}"


def renumbered(order: Sequence[RankInputs]) -> dict[str, int] | None:
    """The new numbers for this order, raising those ahead, else lowering those behind; None: there are none."""
    for found in (_raised(order), _lowered(order)):
        changed = {q.key: q.move for q, old in zip(found, order, strict=True) if q.move != old.move}
        if all(abs(move) <= MOST for move in changed.values()):
            return changed
    return None


def _raised(order: Sequence[RankInputs]) -> list[RankInputs]:
    """From the last to the first, each as low as its own number allows and still ahead of the next one."""
    found: list[RankInputs] = []
    for request in reversed(order):
        behind = found[-1] if found else None
        if behind is not None and rank_key(request) >= rank_key(behind):
            request = replace(request, move=behind.move)
            if rank_key(request) >= rank_key(behind):
                request = replace(request, move=behind.move + 1)
        found.append(request)
    return found[::-1]


def _lowered(order: Sequence[RankInputs]) -> list[RankInputs]:
    """From the first to the last, each as high as its own number allows and still behind the previous one."""
    found: list[RankInputs] = []
    for request in order:
        ahead = found[-1] if found else None
        if ahead is not None and rank_key(request) <= rank_key(ahead):
            request = replace(request, move=ahead.move)
            if rank_key(request) <= rank_key(ahead):
                request = replace(request, move=ahead.move - 1)
        found.append(request)
    return found


def fewest(order: Sequence[RankInputs], moved: str) -> dict[str, int] | None:
    """As `renumbered`; if a new number for the moved request alone suffices, only that."""
    place = next(i for i, q in enumerate(order) if q.key == moved)
    around = [order[i].move for i in (place - 1, place + 1) if 0 <= i < len(order)]
    tried = sorted({m + step for m in around for step in (-1, 0, 1)}, key=lambda m: (abs(m), m))
    for number in tried:
        candidate = [replace(q, move=number) if q.key == moved else q for q in order]
        if abs(number) <= MOST and all(rank_key(a) < rank_key(b) for a, b in pairwise(candidate)):
            return {moved: number} if number != order[place].move else {}
    return renumbered(order)


def move(means: Means, key: str, target: Target, answering: Answering) -> None:
    split(key)
    numbers: dict[str, int] = {}

    def build(state: State, base: str) -> Change:
        nonlocal numbers
        numbers = numbers_for(state, key, target)
        files = {gpr_path(*split(name)): number for name, number in numbers.items()}
        return Change(
            {
                path: with_move(path, file_versions(source, state, base, path).data, number)
                for path, number in sorted(files.items())
            },
            f"Move {key} {target}",
            text=lambda done: _told(source, done, key, target),
        )

    with aimed(means) as source:
        done = publish(source, means, build, answering.now, is_trial=answering.is_trial)
        found = _effects(source, done)
        if not answering.is_trial:
            check_waits(source, done, key)
    _answer(key, (numbers, found), done, answering)


def numbers_for(state: State, key: str, target: Target) -> dict[str, int]:
    """The new numbers that take the request there, by key. Raises NotFound, NotAllowed and WrongUse."""
    status = state.request(key)
    if status.phase not in WAITING:
        raise NotAllowed(f"{key} is {status.phase}; only waiting requests can be moved")
    places = _places(state, key)
    mine = places[key]
    order = sorted((q for q in places.values() if _effective(q) == _effective(mine)), key=rank_key)
    others = [q for q in order if q.key != key]
    place = _place(state, others, mine, places, target)
    numbers = fewest([*others[:place], mine, *others[place:]], key)
    if numbers is None:
        raise NotAllowed(
            f"no numbers from -{MOST} to {MOST} are left for this order; move other requests first"
        )
    if not numbers:
        raise NotAllowed(f"{key} is {'there' if target.before else target.end} already; nothing to change")
    return numbers


def _places(state: State, key: str) -> dict[str, RankInputs]:
    """The ranks of all queued requests, and of the request itself."""
    queued = {
        name: status
        for name, status in live(state.facts.requests).items()
        if status.phase is Phase.QUEUED or name == key
    }
    return standings(queued, state.wanted, state.now)


def _effective(place: RankInputs) -> int:
    """Its own priority plus what waiting added: a move stays within this value."""
    return place.priority + place.boost


def _place(
    state: State,
    others: Sequence[RankInputs],
    mine: RankInputs,
    places: Mapping[str, RankInputs],
    target: Target,
) -> int:
    if target.end:
        return 0 if target.end == "first" else len(others)
    if target.before == mine.key:
        raise WrongUse(f"--before {mine.key}: a request cannot be put before itself")
    for place, other in enumerate(others):
        if other.key == target.before:
            return place
    status = state.request(target.before)
    if status.phase is not Phase.QUEUED:
        raise NotAllowed(f"{target.before} is {status.phase} and not in the queue; name a waiting request")
    raise NotAllowed(
        f"{_told_priority(places[target.before])} and {_told_priority(mine)}: a move only works within one priority; "
        f"`egs gpr priority {mine.key} {_effective(places[target.before])}` changes the priority first"
    )


def _told_priority(place: RankInputs) -> str:
    aged = f" ({place.boost} of it for waiting)" if place.boost else ""
    return f"{place.key} has priority {_effective(place)}{aged}"


def with_move(path: str, data: bytes | None, number: int) -> bytes:
    """The file with that number. Raises NotAllowed if there is none."""
    if data is None:
        raise NotAllowed(f"{path} is no longer on main; run `egs gpr restore`, then move the request")
    return with_field(data, ("spec", "move"), number or None)


def _effects(source: Source, done: Submitted) -> tuple[Effect, ...]:
    head = state_at(source, done.before.now, done.commit)
    return effects(done.before, head).effects


def _told(source: Source, done: Submitted, key: str, target: Target) -> str:
    lines = [f"Moves the request `{key}` {target} among requests of its priority.", ""]
    for effect in _effects(source, done):
        row = effect_json(effect)
        lines.append(
            f"- `{effect.key}` {effect.change}: {row['was'] or 'no start'} → {row['now'] or 'no start'}"
        )
    return "\n".join(lines if len(lines) > 2 else [*lines, "Currently it moves no start."])


def _answer(
    key: str, found: tuple[dict[str, int], tuple[Effect, ...]], done: Submitted, answering: Answering
) -> None:
    numbers, changes = found[0], [effect_json(effect) for effect in found[1]]
    if answering.form is not Form.TABLE:
        slice_, name = split(key)
        facts = {"slice": slice_, "name": name, "moves": dict(sorted(numbers.items())), **where_it_is(done)}
        output.data({**facts, "dryRun": answering.is_trial, "changes": changes}, answering.form)
        return
    if answering.is_trial:
        output.note(f"dry run: {output.counted(len(numbers), 'file')} would change, with this effect:")
    output.rows(changes, Form.TABLE, CHANGES, MOVES_NOBODY)
