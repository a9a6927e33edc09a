"""The newest view of the repository, kept by one thread; every answer comes from it alone.

The remote is fetched once per poll and after a webhook, but not after a push of our own, which the store knows already.
A new commit replaces the whole view and wakes all waiters. While the remote does not answer, the last view stays and
ages: after three polls `ready` reports it, and soon afterwards `view` refuses it, so that a key revoked meanwhile does
not stay valid for ever. Its age is measured by a monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from portal.http.context import HealthOut
from portal.http.errors import ApiError, unavailable
from portal.views.event_log import NO_EVENTS, EventReader
from portal.views.prepared_plans import prepare
from portal.views.view import View
from reconciler.clock import Clock, monotonic_s
from reconciler.documents.finished_files import standing
from reconciler.documents.in_force import Desired
from reconciler.follower import Committed
from reconciler.model.facts import Facts, Wanted
from reconciler.processes.compiled_engine import Warming
from reconciler.settings import Settings
from reconciler.sources.source import has_no
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from reconciler.trust.authority import Authority, Team, roll_of
from reconciler.trust.keyring import Keyring, TrustFolder
from reconciler.trust.machines import machines_of
from schemas.errors import EgsError
from schemas.reading.collector import heap_settled

log = logging.getLogger(__name__)

PATIENCE_POLLS = 3
"""Age of a view, in polls, from which on the process is not ready."""
PATIENCE_S = 60.0
"""Least age at which a view is refused, whatever the poll: a remote that restarts interrupts no caller."""
Then = Callable[[], None]


class Reader:
    """Keeps the newest view. Call `start`, or `refresh` by hand; safe to use from any thread and event loop."""

    def __init__(
        self,
        store: Store,
        cache: DocumentCache,
        settings: Settings,
        clock: Clock,
        monotonic: Callable[[], float] = monotonic_s,
    ) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._monotonic = monotonic
        believes = machines_of(settings.trust).controllers()
        self._committed = Committed(store, cache, settings, "portal", believes=believes)
        self._main = Desired(store, cache)  # used until a controller has written a status
        self._events = EventReader(store)
        self._folder = TrustFolder(settings.trust.folder)
        self._view: View | None = None
        self._fetched: datetime | None = None
        self._fetched_s = monotonic()
        self._trouble = self._own = ""  # the latter: in the portal's own words, safe to show
        self._begun = self._answered = 0  # fetches begun, and the last one answered
        self._asking = threading.Lock()
        self._warming = Warming()
        self._looking = threading.Lock()
        self._state = threading.Lock()
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._then: list[Then] = []
        self._hurried = self._ended = self._stopped = False
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    # -- called by other threads -------------------------------------------------------------------------------

    def view(self) -> View:
        """The newest view. ApiError 503 before the first read of the repository, and when the last one is too old."""
        if self._view is None:
            raise unavailable(self._unread())
        if self.age_s > max(PATIENCE_S, self._patience_s):
            raise unavailable(self._silence())
        return self._view

    @property
    def fetched(self) -> datetime:
        return self.view().fetched if self._fetched is None else self._fetched

    @property
    def age_s(self) -> float:
        """Seconds since the remote last answered: the age of every answer."""
        return self._monotonic() - self._fetched_s

    @property
    def stale_in_s(self) -> float:
        """Seconds until `ready` reports the data as too old, if the remote stays silent; below 0 it does already."""
        return self._patience_s - self.age_s

    @property
    def _patience_s(self) -> float:
        return PATIENCE_POLLS * self._settings.poll.total_seconds()

    def _unread(self) -> str:
        """Why nothing is known yet. The error itself is only in the log: it may name addresses and folders."""
        why = self._own or (
            "the portal's log says why" if self._trouble else "the first read is still running"
        )
        return f"the repository was not read yet: {why}"

    def _silence(self) -> str:
        """Since when the remote has not answered."""
        since = "the start" if self._fetched is None else f"{self._fetched:%Y-%m-%dT%H:%M:%SZ}"
        more = "; the portal's log says why" if self._trouble else ""
        return f"the repository has not answered since {since}, for {int(self.age_s)} s{more}"

    @property
    def is_ending(self) -> bool:
        """Whether the process is shutting down, so that streams must end."""
        return self._ended

    async def newer(self, than: View, within_s: float) -> View:
        """The next view after that one, or the newest if none came in time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._state:
            if self._view is not than or self._ended:
                return self.view()
            self._waiting[future] = loop
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(future, within_s)
        finally:
            with self._state:
                self._waiting.pop(future, None)
        return self.view()

    def ready(self) -> HealthOut:
        """Ready: the repository was read completely, and fetched within the last three polls."""
        if self._view is None or self._fetched is None:
            return HealthOut(ok=False, reason="Starting", message=self._unread())
        if self.age_s > self._patience_s:
            return HealthOut(ok=False, reason="RemoteUnreachable", message=self._silence())
        return HealthOut(ok=True, reason="Reading", message=f"main at {self._view.main[:12]}")

    async def asked(self) -> View:
        """The newest view after fetching now; unchanged if the remote does not answer."""
        await asyncio.to_thread(self._ask_after, self._begun)
        return self.view()

    def _ask_after(self, begun: int) -> None:
        """Fetches, unless a fetch that began after `begun` has been answered."""
        with self._asking:
            if self._answered <= begun:
                self.refresh()

    def wake(self) -> None:
        self._hurried = True
        self._woken.set()

    def look(self, then: Then) -> None:
        """Read what the store has now, without fetching; calls `then` afterwards."""
        with self._state:
            self._then.append(then)
        self._woken.set()
        if self._thread is None:
            self.refresh(ask=False)

    # -- the reader's thread -----------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wake all waiters and end streams; afterwards only `look` triggers a read."""
        self._ended = True
        self._wake_all()

    def stop(self) -> None:
        """Stop reading; waits for the current read."""
        self.end()
        self._stopped = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        poll_s = self._settings.poll.total_seconds()
        due_s = monotonic_s()
        while not self._stopped:
            asks, self._hurried = self._hurried or monotonic_s() >= due_s, False
            was_first = self._view is None
            self.refresh(ask=asks)
            if was_first and self._view is not None:
                heap_settled()
            if asks:
                due_s = monotonic_s() + poll_s
            self._woken.wait(max(0.0, due_s - monotonic_s()))
            self._woken.clear()

    def refresh(self, *, ask: bool = True) -> None:
        """One read, with or without a fetch. Failures go to the log and to `ready`."""
        with self._state:
            then, self._then = self._then, []
        try:
            with self._looking:
                self._look(ask)
            self._trouble = self._own = ""
        except EgsError as error:
            if self._trouble != str(error):
                log.warning("repository not read reason=%s message=%s", error.reason, error)
            self._trouble, self._own = str(error), str(error) if isinstance(error, ApiError) else ""
        except Exception:
            log.exception("repository not read; please report it")
            self._trouble = "an error in the portal; its log has details"
        finally:
            for call in then:
                call()

    def _look(self, ask: bool) -> None:
        now, names = self._clock.now(), (self._settings.main_branch, self._settings.status_branch)
        now_s = self._monotonic()
        if ask:
            self._begun += 1
            self._store.fetch(names)
        seen = self._seen(now)
        if ask:
            self._fetched, self._fetched_s = now, now_s
        if self._view is None or (seen.main, seen.status) != (self._view.main, self._view.status):
            self._publish(prepare(replace(seen.after(self._view), documents=self._documents(seen))))
        if ask:
            self._answered = self._begun

    def _seen(self, now: datetime) -> View:
        decided = self._committed.read(now)
        if decided is not None:
            facts, wanted = decided.facts, decided.wanted
            problems = standing(self._committed.problems, facts.requests)
            status = self._committed.tip
        else:
            facts, wanted = Facts(now), self._undecided(now)
            problems, status = self._main.problems, ""
        people = self._people(wanted)
        events = self._events.at(status) if status else NO_EVENTS
        tree = self._committed.tree if status else None
        return View(wanted.commit, status, facts, wanted, people, now, problems, events, tree=tree)

    def _documents(self, seen: View) -> Desired:
        """A copy for one view, which this thread does not update."""
        return self._committed.documents() if seen.status else self._main.over(self._store)

    def _people(self, wanted: Wanted) -> Authority:
        """The same object while people and keys are unchanged: caches compare it by identity."""
        keyring, last = self._folder.keyring(), self._view
        if (
            last is not None
            and last.wanted.project is wanted.project
            and last.wanted.slices is wanted.slices
            and last.authority.keyring is keyring
        ):
            return last.authority
        return authority_in(wanted, keyring)

    def _undecided(self, now: datetime) -> Wanted:
        """The documents of main before the first status commit; refused if main must be verified first."""
        if self._settings.trust.level != "none":
            raise unavailable("no controller has verified main yet")
        tip = self._store.tips().get(self._settings.main_branch)
        if tip is None:
            raise unavailable(has_no(self._settings.main_branch))
        self._main.update(tip)
        return self._main.wanted(Facts(now))

    def _publish(self, view: View) -> None:
        self._warming.seen(view.facts.requests)
        with self._state:
            self._view = view
        self._wake_all()

    def _wake_all(self) -> None:
        with self._state:
            waiting, self._waiting = self._waiting, {}
        for future, loop in waiting.items():
            with contextlib.suppress(RuntimeError):  # a closed loop has no waiters
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def authority_in(wanted: Wanted, keyring: Keyring) -> Authority:
    """The people of the documents in force."""
    admins = wanted.project.admins
    teams: Mapping[str, Team] = {
        name: Team(roll_of(spec.members), roll_of(spec.owners)) for name, spec in wanted.slices.items()
    }
    handles = {person.email: person.handle for person in admins}
    return Authority(roll_of(admins), handles, teams, keyring)
