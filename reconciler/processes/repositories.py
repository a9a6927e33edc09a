"""Runs one or several repositories in one process: each has its own loop, state, thread and failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Event

from reconciler.clock import Timepiece, monotonic_s
from reconciler.compose import controller, watcher
from reconciler.credentials import Credentials
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.processes.metrics import Metrics
from reconciler.processes.probes import Health, alive, ready
from reconciler.processes.wake import FATAL, PATIENCE_S, Waking
from reconciler.pulls.watcher_thread import Attending
from reconciler.settings import Settings
from reconciler.signals import wait_for
from schemas.errors import UserError

_GIVEN_NAME = re.compile(r"([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)=(.+)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
LONGEST_NAME = 63


def named(given: Sequence[str]) -> dict[str, str]:
    """Addresses by name, from `ADDRESS` (its last part is the name) or `NAME=ADDRESS`. UserError `WrongUse`.

    The name is used in metrics, in the path of the repository's webhook and in the state folder.
    """
    found: dict[str, str] = {}
    for text in given:
        match = _GIVEN_NAME.fullmatch(text)
        name, address = (match[1], match[2]) if match else (_name_of(text), text)
        if name in found:
            raise UserError(
                f"--repo: two repositories would be called {name!r}; give names: --repo NAME=ADDRESS",
                "WrongUse",
            )
        found[name] = address
    return found


def _name_of(address: str) -> str:
    last = re.split(r"[/:]", address.rstrip("/"))[-1].removesuffix(".git").lower()
    return _NOT_IN_NAMES.sub("-", last).strip("-")[:LONGEST_NAME].strip("-") or "repository"


def apart(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    """Settings by name. A single one uses the state folder itself, several have a subfolder each."""
    if len(settings) == 1:
        return dict(settings)
    return {
        name: replace(
            own,
            state=own.state / name,
            credentials=_own_credentials(own.credentials, name),
            # Another project's slice may have the same name.
            routes=None if own.routes is None else own.routes / name,
        )
        for name, own in settings.items()
    }


def _own_credentials(common: Credentials | None, name: str) -> Credentials | None:
    """Those in a folder of that name, so that no server sees another's password; else the common ones."""
    own = None if common is None or common.folder is None else common.folder / name
    return Credentials(own) if own is not None and own.is_dir() else common


@dataclass(slots=True)
class _LazyController:
    """A controller created in its first cycle, so that a failure of that is retried like any other."""

    make: Callable[[], Reconciler]
    _made: Reconciler | None = None

    def cycle(self, now: datetime) -> Cycle:
        if self._made is None:
            self._made = self.make()
        return self._made.cycle(now)

    def round(self, now: datetime) -> datetime | None:
        """What is due beside a cycle."""
        return None if self._made is None else self._made.hands.round(now)


class Tending:
    """The loops of one process, by the repository's name. `may_lead` asks the election, if there is one.

    With one repository, a fatal error ends the process; with several it is retried, because the others
    continue.
    """

    def __init__(
        self,
        settings: Mapping[str, Settings],
        clock: Timepiece,
        metrics: Metrics,
        may_lead: Callable[[], bool] | None = None,
    ) -> None:
        self._clock = clock
        alone = len(settings) == 1
        self.loops: dict[str, Waking] = {}
        self._hooked = {name: Event() for name in settings}
        self._attending = {
            name: Attending(partial(watcher, own), clock, name)
            for name, own in settings.items()
            if own.forge is not None and own.forge.token is not None  # no posts without an account
        }
        for name, own in settings.items():
            metrics.expect(name)
            wake, hooked = partial(self._stir, name), self._hooked[name]
            make = partial(controller, own, may_lead=may_lead, wake=wake, hooked=hooked, clock=clock)
            later = _LazyController(make, make() if alone else None)
            self.loops[name] = Waking(
                later,
                clock,
                watch=self._attending[name].note if name in self._attending else lambda _: None,
                tried=partial(metrics.attempted, name),
                fatal=FATAL if alone else (),
                name=name,
                beside=later.round,
            )

    def start(self) -> None:
        for loop in self.loops.values():
            loop.start()
        for attending in self._attending.values():
            attending.start()

    def end(self) -> None:
        """Begins nothing new; safe to call from a signal handler."""
        for loop in self.loops.values():
            loop.ended.set()
        for attending in self._attending.values():
            attending.end()

    def wait(self) -> None:
        for loop in self.loops.values():
            wait_for(loop.ended)

    def stop(self, within_s: float = PATIENCE_S) -> bool:
        """Stops every loop after its running cycle; False: one is still running after that time.

        Raises the UserError that ended a loop, if any.
        """
        self.end()
        until_s = monotonic_s() + within_s
        has_ended = [loop.stop(until_s - monotonic_s()) for loop in self.loops.values()]
        if not all(has_ended):
            return False
        for attending in self._attending.values():
            attending.stop()
        for loop in self.loops.values():
            if loop.failed is not None:
                raise loop.failed
        return True

    def _stir(self, name: str) -> None:
        if name in self.loops:  # a cluster may change while the rest is still being created
            self.loops[name].stir()

    def wake(self) -> None:
        """Every loop looks at once."""
        for name in self.loops:
            self._wake(name)

    def wakers(self) -> dict[str, Callable[[], None]]:
        """Callbacks by repository, for changes in it: its loop and its pull requests are processed."""
        return {name: partial(self._wake, name) for name in self.loops}

    def _wake(self, name: str) -> None:
        self._hooked[name].set()
        self.loops[name].wake()
        if name in self._attending:
            self._attending[name].wake()

    def alive(self) -> Health:
        return alive({name: loop.progress for name, loop in self.loops.items()}, self._clock.now())

    def ready(self) -> Health:
        return ready({name: loop.progress for name, loop in self.loops.items()})
