"""Views of past states of the repository. They show what was known then, to callers who may see it now.

A past view is read once, and the last few stay in memory. Its documents are those that the controller answered
then; keys, people and rights are always those of the newest view.

Held by tests/portal/test_past.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from threading import Lock

from portal.http.errors import bad_parameters, gone
from portal.views.event_log import EventReader
from portal.views.view import Past, View
from reconciler.documents.in_force import Desired
from reconciler.queries.past.state_then import documents_then, when_of
from reconciler.settings import Settings
from reconciler.sources.command_errors import WrongUse
from reconciler.status.past_states import Gone, PastState, PastStates
from reconciler.status.status_cache import Remembered
from reconciler.status.tree import Tree, Trees
from reconciler.store.believed_commit import Belief
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from reconciler.trust.machines import machines_of
from schemas.errors import Fault, UserError
from schemas.reading.reader import READER_VERSION

KEPT = 3
"""Past views in memory; each may be as large as the newest one."""


class PastViews:
    """Reads past views on demand. Safe to use from any thread; reads one at a time."""

    def __init__(self, store: Store, settings: Settings, monotonic: Callable[[], float]) -> None:
        believes = machines_of(settings.trust).controllers()
        self._store, self._settings = store, settings
        self.states = PastStates(store, settings, believes, monotonic)
        self._views: OrderedDict[str, View] = OrderedDict()
        self._tree: Tree | None = None  # the state read last
        self._lock = Lock()

    def at(self, text: str, present: View, now: datetime) -> View:
        """The view at a status commit, or at an instant (`2h`: two hours ago).

        ApiError 410: that state is not kept, 422: it is in the future.
        """
        state, when = self.state(text, present, now)
        # The newest view also has changes of main that the controller has not answered yet.
        if state.status == present.status and (when is not None or present.main == present.facts.intent):
            return replace(present, past=Past(present, when or present.facts.at))
        with self._lock:
            view = self._views.pop(state.status, None) or self._read(state, present)
            self._views[state.status] = view
            while len(self._views) > KEPT:
                self._views.popitem(last=False)
        return replace(view, past=Past(present, when or view.facts.at))

    def state(self, text: str, present: View, now: datetime) -> tuple[PastState, datetime | None]:
        """The kept state that `text` names, and the instant if it names one. ApiError 410 or 422."""
        when = self._when(text, now)
        if when is not None and when > now:
            raise bad_parameters(f"at: {text} is in the future; GET plan says what is planned")
        if when is not None and when >= present.facts.at:
            return PastState(present.status, present.status, present.facts.at), when
        try:
            return self.states.find(text, when), when
        except Gone as error:
            raise gone(str(error)) from error

    def _when(self, text: str, now: datetime) -> datetime | None:
        """The instant that it names; None: it names a commit. ApiError 422: neither."""
        try:
            return when_of("at", text, now)
        except WrongUse as error:
            raise bad_parameters(str(error)) from error

    def _read(self, state: PastState, present: View) -> View:
        try:
            return self._view(state, present)
        except Fault as error:  # its history was replaced while we read
            raise gone(f"the state {state.status[:12]} is not kept any more") from error
        except UserError as error:  # no document was in force yet
            raise gone(f"nothing was decided yet in the state {state.status[:12]}: {error}") from error

    def _documents(self, present: View) -> Desired:
        """With everything of main that was read already, and nothing in force yet."""
        if present.documents is None:
            return Desired(self._store, DocumentCache(None, READER_VERSION))
        return present.documents.over(self._store).twin()

    def _view(self, state: PastState, present: View) -> View:
        store, branch = self._store, self._settings.status_branch
        trees = Trees(store, branch, Belief(store, None), Remembered(store, None))
        # Only what differs from a state that was read already is read, and held once more.
        self._tree = trees.at(state.commit, self._tree or present.tree)
        loaded = trees.loaded(self._tree)
        facts, desired = loaded.facts, self._documents(present)
        wanted = documents_then(loaded, desired)
        events = EventReader(store).at(state.commit)
        return View(
            wanted.commit,
            state.status,
            facts,
            wanted,
            present.authority,
            present.fetched,
            desired.problems,
            events,
        )
