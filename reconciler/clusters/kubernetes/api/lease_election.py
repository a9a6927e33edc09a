"""One controller of several is active: the one that holds a Lease (coordination.k8s.io/v1).

Whether somebody else's Lease has run out is judged by how long we ourselves have seen it unchanged, never by the time
that is written in it: clocks differ. Every change is conditional on the resourceVersion that was read. Who holds the
Lease and cannot renew it stops believing so before anybody else may take it.

A Lease only says who should write. Who does is settled by the term in Git and the stamps in the clusters, which hold
even if a Lease lies (tests/reconciler/test_elected.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from threading import Event, Thread

from reconciler.clock import Clock, SystemClock, monotonic_s
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from schemas.errors import Fault

log = logging.getLogger(__name__)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
LONGEST_LEASE_S = 300
"""Whatever somebody writes into a Lease, it is respected no longer than this without a change."""
JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Timing:
    """How an election is paced, in seconds.

    A follower takes over at most `retry` + `lease` after the last renewal, and a renewal is at most `retry` older
    than a crash: 13 s at the defaults, which leaves the rest of 15 s to the first cycle.
    """

    lease_s: int = 10
    """A Lease that was not renewed for this long may be taken."""
    renew_s: float = 7.0
    """Who could not renew for this long does not lead any more; well below `lease_s`."""
    retry_s: float = 1.5
    """Between two looks, and between two renewals."""


TIMING = Timing()


@dataclass(frozen=True, slots=True)
class Held:
    """What a Lease says."""

    holder: str
    lease_s: int
    renewed: str  # as written: only that it changes matters
    transitions: int


@dataclass(frozen=True, slots=True)
class Acquire:
    """It is nobody's, or its holder has not renewed it in time."""


@dataclass(frozen=True, slots=True)
class Renew:
    """It is ours."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Somebody else has it; not before `until_s` (of our monotonic clock) may it be taken."""

    until_s: float


Step = Acquire | Renew | Follow


def decided(lease: Held | None, me: str, now_s: float, observed_s: float) -> Step:
    """What to do about a Lease that we have seen as it is since `observed_s`; None: there is none."""
    if lease is None or not lease.holder:
        return Acquire()
    if lease.holder == me:
        return Renew()
    until_s = observed_s + min(max(lease.lease_s, 1), LONGEST_LEASE_S)
    return Acquire() if now_s >= until_s else Follow(until_s)


class Election:
    """Takes part for one process life, whose `identity` is unique. `leads` may be asked by any thread.

    `turned` is called, by the election's own thread, when the answer of `leads` has become another.
    """

    def __init__(  # noqa: PLR0913 - two clocks, for tests, and what is given by name
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing = TIMING,
        turned: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = monotonic_s,
    ) -> None:
        self._api, self._base, self._name = api, LEASES.format(namespace), name
        self._me, self._timing, self.turned = identity, timing, turned
        self._clock, self._monotonic = clock or SystemClock(), monotonic
        self._seen: Held | None = None
        self._meta: Json = {"name": name}  # of the Lease as read: what others wrote there stays
        self._seen_s = monotonic()
        self._until_s: float | None = None  # we lead as long as it is before this
        self._led = False  # as it was told last
        self._trouble = ""
        self._ended = Event()
        self._thread = Thread(target=self._run, name=f"election {name}", daemon=True)

    def leads(self) -> bool:
        """True while the Lease is ours and was renewed in time."""
        until_s = self._until_s
        return until_s is not None and self._monotonic() < until_s

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Take part no more, and leave the Lease to others at once. Call it when nothing is written any more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)
        self.release()

    def release(self) -> None:
        """Give the Lease back if it is ours; whoever looks next takes it."""
        seen, self._until_s = self._seen, None
        if seen is None or seen.holder != self._me:
            return
        try:
            self._write(Held("", 1, self._now(), seen.transitions))
        except Fault as fault:
            log.info("election not released reason=%s; it runs out by itself", fault.reason)

    def step(self) -> float:
        """One look, and what follows from it; gives the pause until the next in seconds. Raises nothing."""
        try:
            self._look_and_act()
            self._trouble = ""
        except Fault as fault:
            if self._trouble != fault.reason:
                log.warning("election in trouble reason=%s message=%s; tried again", fault.reason, fault)
            self._trouble = fault.reason
        except Exception as error:  # a thread that ends would leave its process a follower for good
            if self._trouble != type(error).__name__:
                log.exception("election broke; tried again")
            self._trouble = type(error).__name__
        if (leads := self.leads()) != self._led:
            self._led = leads
            log.info("election turned identity=%s leads=%s", self._me, leads)
            self._tell()
        return self._pause_s()

    def _tell(self) -> None:
        try:
            self.turned()
        except Exception:
            log.exception("election turned and its listener broke")

    def _pause_s(self) -> float:
        """Up to the next look, or to the instant at which somebody else's Lease runs out."""
        step = decided(self._seen, self._me, self._monotonic(), self._seen_s)
        if isinstance(step, Follow):
            return max(0.0, min(self._timing.retry_s, step.until_s - self._monotonic()))
        return self._timing.retry_s

    def _run(self) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.step())

    def _look_and_act(self) -> None:
        self._observe(self._api.find(f"{self._base}/{self._name}"))
        # Our time counts from before the server is asked: it never holds the Lease for a shorter time than we think.
        asked_s = self._monotonic()
        seen = self._seen
        step = decided(seen, self._me, asked_s, self._seen_s)
        if isinstance(step, Follow):
            self._until_s = None
            return
        changes = 0 if seen is None else seen.transitions + isinstance(step, Acquire)
        try:
            self._write(Held(self._me, self._timing.lease_s, self._now(), changes))
        except Rejected as no:
            if no.status != 409:  # somebody else was faster, which the next look tells
                raise
            self._until_s = None
        else:
            self._until_s = asked_s + self._timing.renew_s

    def _observe(self, lease: Json | None) -> None:
        found = None if lease is None else _held(lease)
        if found != self._seen:  # a label that a person adds is no sign of life
            self._seen_s = self._monotonic()
        self._seen, self._meta = found, {"name": self._name} if lease is None else lease["metadata"]

    def _write(self, held: Held) -> None:
        spec: Json = {
            "holderIdentity": held.holder,
            "leaseDurationSeconds": held.lease_s,
            "renewTime": held.renewed,
            "leaseTransitions": held.transitions,
        }
        meta = {key: value for key, value in self._meta.items() if key != "managedFields"}
        body: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        if "resourceVersion" in meta:
            written = self._api.replace(f"{self._base}/{self._name}", body)
        else:
            written = self._api.create(self._base, body)
        self._observe(written)

    def _now(self) -> str:
        return f"{self._clock.now().astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _held(lease: Json) -> Held:
    spec = lease.get("spec") or {}
    return Held(
        holder=str(spec.get("holderIdentity") or ""),
        lease_s=int(spec.get("leaseDurationSeconds") or TIMING.lease_s),
        renewed=str(spec.get("renewTime") or ""),
        transitions=int(spec.get("leaseTransitions") or 0),
    )
