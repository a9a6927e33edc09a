"""What a command works with: a repository's documents, its status, and the state that follows from both at `now`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from egs.commands.output import working
from reconciler.approvals.who_approved import with_readers_decisions
from reconciler.clock import SystemClock
from reconciler.deciding.extension import extended
from reconciler.deciding.preemption import with_room_made
from reconciler.deciding.preview import Looked, alike, preview
from reconciler.documents.finished_files import standing
from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import Records, UnreadRecord
from reconciler.planning.queue_place import asked_anew
from reconciler.planning.snapshot import build_snapshot
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.source import Source
from reconciler.status.tree import Loaded
from reconciler.store.store_port import Contents
from scheduler.snapshot import Snapshot
from schemas.documents.gpr import GPR, GPRTemplate, RequestSpec, resolve
from schemas.reading.reader import read_document
from schemas.reading.units import NAME_PATTERN, parse_instant
from schemas.rules.problems import Problem
from schemas.rules.view import gpr_path, template_path
from schemas.status.gpr_status import GPRStatus

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Filing time of a request if no controller recorded one."""

_NAME = re.compile(NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class State:
    """One commit's documents and the status, seen at `now`."""

    now: datetime
    commit: str | None
    wanted: Wanted
    committed: Facts | None  # as on the status branch; None: there is no status branch
    facts: Facts  # as they would be if the controller ran now
    snapshot: Snapshot
    problems: tuple[Problem, ...]
    looked: Looked = field(default_factory=Looked, compare=False, repr=False)
    """Intermediate results shared by this read and the next one of the same status."""

    def request(self, key: str) -> GPRStatus:
        """The status of `slice/name`; raises NotFound."""
        found = self.facts.requests.get(key)
        if found is None:
            raise NotFound("request", key, {*self.facts.requests, *self.wanted.filed})
        return found


def read_state(source: Source, now: datetime) -> State:
    """The cost depends on the documents that differ from the cache, plus one read of the status."""
    return read_states(source, now, None)[0]


def read_states(source: Source, now: datetime, *refs: str | None) -> list[State]:
    """As `read_state` for each commit; what two commits share is read once."""
    found: list[State] = []
    last: Desired | None = None
    for ref in refs:
        contents, commit = source.contents(ref)
        loaded = source.loaded(now)
        desired = _documents(source, contents, commit, loaded, last)
        seen = _state(source, (now, commit), desired, loaded, found[0] if found else None)
        found.append(replace(seen, commit=source.shown(ref)))
        last = desired
    return found


def state_at(source: Source, now: datetime, commit: str) -> State:
    """As `read_state`, of a commit that needs to exist in `source.store` only."""
    loaded = source.loaded(now)
    return _state(source, (now, commit), _documents(source, source.store, commit, loaded), loaded)


def _documents(
    source: Source, contents: Contents, commit: str, loaded: Loaded | None, beside: Desired | None = None
) -> Desired:
    known = beside if beside is not None and beside.store is contents else None
    desired = Desired(contents, source.cache) if known is None else known.twin()
    if loaded is not None:
        desired.restore(loaded.accepted)
        desired.repository.is_recorded = recorded(loaded.facts.requests)
        desired.leave_unread(loaded.notes)
    with working("Reading"):
        desired.update(commit, None if loaded is None or source.is_folder else loaded.facts.trust)
    return desired


def _state(
    source: Source,
    look: tuple[datetime, str],
    desired: Desired,
    loaded: Loaded | None,
    beside: State | None = None,
) -> State:
    """The state at an instant and a commit; what it shares with `beside` is not computed again."""
    now, commit = look
    before = Facts(now) if loaded is None else loaded.facts
    wanted = with_readers_decisions(desired.wanted(before), before)
    committed = None if loaded is None else loaded.facts
    problems = standing(desired.problems, before.requests)
    bare = State(now, commit, wanted, committed, before, Snapshot(0, {}, {}, {}), problems)
    if beside is not None:
        bare, wanted = replace(bare, looked=beside.looked), alike(wanted, beside.wanted)
    state = with_wanted(bare, wanted)
    _keep_notes(source, desired, before, state.facts)
    return state


def with_wanted(state: State, wanted: Wanted) -> State:
    """What the controller would make of these documents, at the same instant and with the same status."""
    before = Facts(state.now) if state.committed is None else state.committed
    filed_at = EPOCH if state.committed is None else None
    facts = preview(before, wanted, state.now, filed_at, state.looked)
    facts, longer, _ = extended(
        facts, wanted, build_snapshot(wanted, facts, None, asked_anew(before, facts, wanted))
    )
    made = with_room_made(facts, wanted, longer)
    return replace(state, wanted=wanted, facts=made.facts, snapshot=made.shown)


def _keep_notes(source: Source, desired: Desired, before: Facts, after: Facts) -> None:
    """Remember finished requests whose files need no further check: the next command does not read them."""
    if not isinstance(before.requests, Records):
        return
    read = ((k, s) for k, s in before.requests.over.items() if not isinstance(s, UnreadRecord))
    still = (key for key, status in read if after.requests.get(key) == status)
    notes = {key: note for key in still if (note := desired.note_of(key)) is not None}
    if notes:
        source.note(notes)


def clock(now: str | None, source: Source) -> datetime:
    """The time given by `--now`, else the present in whole seconds, but never before the newest status."""
    if now is None:
        present, status = SystemClock().now().replace(microsecond=0), source.status()
        return present if status is None else max(present, status[0].commit(status[1]).at)
    try:
        return parse_instant(now)
    except ValueError as error:
        raise WrongUse(f"--now {now}: {error}") from error


def is_name(text: str) -> bool:
    """True if the text is a valid name of a slice, a request or any other document with a file of its own."""
    return _NAME.fullmatch(text) is not None


def bad_name(shown: str) -> WrongUse:
    return WrongUse(f"{shown} is not a valid name: use lower-case letters, digits and '-', at most 63")


def split(key: str) -> tuple[str, str]:
    slice_, slash, name = key.partition("/")
    if not slash or not slice_ or not name or "/" in name:
        raise WrongUse(f"{key} is not a request; write SLICE/NAME, for example vision/llama-finetune")
    if not is_name(slice_) or not is_name(name):
        raise bad_name(key)
    return slice_, name


def as_filed(source: Source, commit: str, key: str) -> RequestSpec | None:
    """What a request's file asks for, with its template, even if a rule refuses it; None if unreadable."""
    gpr = _document(source, commit, gpr_path(*split(key)))
    if not isinstance(gpr, GPR):
        return None
    template = _document(source, commit, template_path(gpr.spec.template)) if gpr.spec.template else None
    if gpr.spec.template and not isinstance(template, GPRTemplate):
        return None
    found = resolve(gpr.spec, template.spec if isinstance(template, GPRTemplate) else None)
    return found if isinstance(found, RequestSpec) else None


def _document(source: Source, commit: str, path: str) -> object:
    data = source.store.read_path(commit, path)
    return None if data is None else read_document(path, data)
