"""Leader election: the controller that holds a Lease (coordination.k8s.io/v1) is active.

A foreign Lease has expired if we ourselves have seen it unchanged for long enough; its timestamps are never
used, because clocks differ. Every change is conditional on the resourceVersion that was read. A holder that
cannot renew the Lease stops leading before another may take it.

A Lease only says who should write. The term in Git and the stamps in the clusters decide who does, even if a
Lease is wrong (tests/reconciler/test_elected.py).
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
"""Whatever a Lease says, it is respected no longer than this without a change."""
LEASE_S = 10
"""A Lease not renewed for this long may be taken."""
RENEW_S = 7.0
"""A holder that could not renew for this long stops leading; well below `LEASE_S`."""
RETRY_S = 1.5
"""Between two polls, and between two renewals.

A follower takes over at most `RETRY_S` + `LEASE_S` after the last renewal, and a renewal is at most `RETRY_S`
older than a crash: 13 s, which leaves the rest of 15 s to the first cycle.
"""
JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Held:
    """A Lease's content."""

    holder: str
    lease_s: int
    renewed: str  # as written: only changes matter
    transitions: int


@dataclass(frozen=True, slots=True)
class Acquire:
    """It is free, or its holder has not renewed it in time."""


@dataclass(frozen=True, slots=True)
class Renew:
    """We hold it."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Another controller holds it; it may not be taken before `until_s` (of our monotonic clock)."""

    until_s: float


Step = Acquire | Renew | Follow


def decided(lease: Held | None, me: str, now_s: float, observed_s: float) -> Step:
    """The next step for a Lease unchanged since `observed_s`; None: there is no Lease."""
    if lease is None or not lease.holder:
        return Acquire()
    if lease.holder == me:
        return Renew()
    until_s = observed_s + min(max(lease.lease_s, 1), LONGEST_LEASE_S)
    return Acquire() if now_s >= until_s else Follow(until_s)


class Election:
    """Takes part for one process, whose `identity` is unique. `leads` may be called from any thread.

    `turned` is called, in the election's own thread, when the answer of `leads` changes.
    """

    def __init__(  # noqa: PLR0913 - two clocks, for tests, and keyword-only arguments
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        turned: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = monotonic_s,
    ) -> None:
        self._api, self._base, self._name = api, LEASES.format(namespace), name
        self._me, self.turned = identity, turned
        self._clock, self._monotonic = clock or SystemClock(), monotonic
        self._seen: Held | None = None
        self._meta: Json = {"name": name}  # the Lease's metadata as read: foreign parts stay
        self._seen_s = monotonic()
        self._until_s: float | None = None  # we lead until then
        self._led = False  # as last reported
        self._trouble = ""
        self._ended = Event()
        self._thread = Thread(target=self._run, name=f"election {name}", daemon=True)

    def leads(self) -> bool:
        """True while we hold the Lease and renewed it in time."""
        until_s = self._until_s
        return until_s is not None and self._monotonic() < until_s

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops and releases the Lease. Call it when nothing is written any more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)
        self.release()

    def release(self) -> None:
        """Releases our Lease, so that the next poll of another controller takes it."""
        seen, self._until_s = self._seen, None
        if seen is None or seen.holder != self._me:
            return
        try:
            self._write(Held("", 1, self._now(), seen.transitions))
        except Fault as fault:
            log.info("election not released reason=%s; it will expire", fault.reason)

    def step(self) -> float:
        """One poll and its consequence; returns the pause until the next in seconds. Raises nothing."""
        try:
            self._look_and_act()
            self._trouble = ""
        except Fault as fault:
            if self._trouble != fault.reason:
                log.warning("election in trouble reason=%s message=%s; retrying", fault.reason, fault)
            self._trouble = fault.reason
        except Exception as error:  # if the thread ended, its process would never lead again
            if self._trouble != type(error).__name__:
                log.exception("election broke; retrying")
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
        """Until the next poll, or until another's Lease expires."""
        step = decided(self._seen, self._me, self._monotonic(), self._seen_s)
        if isinstance(step, Follow):
            return max(0.0, min(RETRY_S, step.until_s - self._monotonic()))
        return RETRY_S

    def _run(self) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.step())

    def _look_and_act(self) -> None:
        self._observe(self._api.find(f"{self._base}/{self._name}"))
        # Our time counts from before the call: the Lease is never shorter than we think.
        asked_s = self._monotonic()
        seen = self._seen
        step = decided(seen, self._me, asked_s, self._seen_s)
        if isinstance(step, Follow):
            self._until_s = None
            return
        changes = 0 if seen is None else seen.transitions + isinstance(step, Acquire)
        try:
            self._write(Held(self._me, LEASE_S, self._now(), changes))
        except Rejected as no:
            if no.status != 409:  # otherwise another controller was faster, which the next poll shows
                raise
            self._until_s = None
        else:
            self._until_s = asked_s + RENEW_S

    def _observe(self, lease: Json | None) -> None:
        found = None if lease is None else _held(lease)
        if found != self._seen:  # a label added by a person is not a renewal
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
        lease_s=int(spec.get("leaseDurationSeconds") or LEASE_S),
        renewed=str(spec.get("renewTime") or ""),
        transitions=int(spec.get("leaseTransitions") or 0),
    )
