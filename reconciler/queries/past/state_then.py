"""A past state of a repository, for commands: what `?at=` of the API shows, read from the status branch.

The documents are those that the controller had answered then.

Held by tests/contract/test_past_contract.py: the same on a repository and on a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from egs.commands.output import working
from reconciler.clock import monotonic_s
from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.model.facts import Wanted
from reconciler.planning.snapshot import build_snapshot
from reconciler.queries.arguments import moment
from reconciler.queries.state import State
from reconciler.settings import DEFAULTS
from reconciler.sources.believed_keys import believed
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.source import Source
from reconciler.status.past_states import Gone, PastState, PastStates, is_commit
from reconciler.status.status_cache import Remembered
from reconciler.status.tree import Loaded, Trees
from reconciler.store.believed_commit import Belief
from reconciler.store.store_port import Store
from schemas.errors import Fault, UserError


@dataclass(frozen=True, slots=True)
class Then:
    """A past state; its `state.now` is when it was decided."""

    state: State
    asked: datetime
    """The instant that was asked for: waits and costs are as of it."""
    store: Store
    kept: PastState

    @property
    def tip(self) -> tuple[Store, str]:
        """Where its files are."""
        return self.store, self.kept.commit


def when_of(option: str, text: str, now: datetime) -> datetime | None:
    """The instant that the option names; None: it names a commit. Raises WrongUse: neither."""
    try:
        return moment(option, text, now)
    except WrongUse as error:
        if is_commit(text):
            return None
        raise WrongUse(f"{error}; or a commit of the status branch, 7 characters at least") from error


def documents_then(loaded: Loaded, desired: Desired) -> Wanted:
    """The documents that these facts answer. `desired` has nothing in force yet; afterwards it is at their commit."""
    facts = loaded.facts
    desired.repository.is_recorded = recorded(facts.requests)
    desired.restore(loaded.accepted)
    commit = facts.intent if facts.trust is None else facts.trust.main
    if commit:
        desired.update(commit, facts.trust)
    return desired.wanted(facts)


def state_then(source: Source, text: str, now: datetime, option: str = "--at") -> Then:
    """The state of a status commit, or the newest one at an instant. Raises WrongUse, and Gone if it is not kept."""
    remote = source.upstream() if source.is_folder else source
    if remote is None:
        raise WrongUse("a folder without a remote has no past states; name a repository with --repo")
    when = when_of(option, text, now)
    if when is not None and when > now:
        raise WrongUse(f"{option} {text} is in the future; `egs plan` says what is planned")
    found = remote.status()
    if found is None:
        raise Gone("no state is known: no controller has written a status yet")
    store = found[0]
    kept = PastStates(store, DEFAULTS, believed().controllers(), monotonic_s).find(text, when)
    try:
        with working("Reading"):
            state = _read(remote, store, kept)
    except Fault as error:  # its history was replaced while we read
        raise Gone(f"the state {kept.status[:12]} is not kept any more") from error
    except UserError as error:  # no document was in force yet
        raise Gone(f"nothing was decided yet in the state {kept.status[:12]}: {error}") from error
    return Then(state, when or state.now, store, kept)


def _read(source: Source, store: Store, kept: PastState) -> State:
    trees = Trees(store, DEFAULTS.status_branch, Belief(store, None), Remembered(store, None))
    loaded = trees.loaded(trees.at(kept.commit, None))
    facts, desired = loaded.facts, Desired(store, source.cache)
    wanted = documents_then(loaded, desired)
    snapshot = build_snapshot(wanted, facts, None, frozenset())
    return State(facts.at, wanted.commit, wanted, facts, facts, snapshot, desired.problems)
