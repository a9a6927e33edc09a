"""Carries messages to the services, each in a thread of its own: the one door to apprise.

A service that hangs holds up nobody: it is waited for a while, counts as failed then, and is not tried again before its
thread has ended. What came back is one word of ours; what a service or apprise says may hold an address and is told
nowhere.

Held by tests/reconciler/telling/test_courier.py.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from threading import Lock, Thread
from typing import Protocol

from reconciler.telling.messages import Message
from reconciler.telling.route_secrets import Address

PATIENCE = timedelta(minutes=1)
"""How long a delivery may take; services answer within seconds."""
MOST_AT_ONCE = 16
"""Deliveries under way that are waited for; those beyond wait for the next look."""
MOST_HANGING = 64
"""Threads that nobody waits for any more; with so many nothing new is begun."""
READ_S = 10.0
"""Seconds that a service may take for an answer; apprise's own 4 are few for a busy one."""
HEADER = "Egs-Delivery"
"""Under this name a delivery's id goes along, where the service takes headers: webhooks and mail do."""
THREAD = "courier-"
"""How names of our threads begin."""
_BELOW = ("urllib3", "requests", "httpx", "httpcore", "paho", "slixmpp")
FIELD = "delivery"
"""And under this one in the body of webhooks."""


class Answer(StrEnum):
    """What came of a delivery."""

    DELIVERED = "Delivered"
    REFUSED = "ServiceRefused"  # or it could not be reached: apprise does not tell
    TIMED_OUT = "ServiceTimedOut"
    UNUSABLE = "AddressUnusable"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message on its way."""

    id: str
    message: Message
    addresses: tuple[Address, ...]


class Carrier(Protocol):
    """Takes parcels, and tells later what became of them."""

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """Begin; False: it is too busy, and the parcel is to be given again later."""

    def returned(self, now: datetime) -> Mapping[str, Answer]:
        """What became known since the last call, by the parcel's id."""

    def finish(self) -> None:
        """Wait for what is under way, as long as it is waited for at all."""


@dataclass(slots=True)
class _Errand:
    begun: datetime
    thread: Thread
    answer: Answer | None = None


@dataclass(slots=True)
class Courier:
    """The real carrier. One owner; its threads only leave their answers."""

    _out: dict[str, _Errand] = field(default_factory=dict)
    _hanging: dict[str, Thread] = field(default_factory=dict)  # waited for no more
    _arrived: dict[str, set[str]] = field(default_factory=dict)  # digests of addresses, by parcel
    _lock: Lock = field(default_factory=Lock)

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """See `Carrier.send`. A parcel whose last try still hangs is not begun again."""
        self._hanging = {id_: thread for id_, thread in self._hanging.items() if thread.is_alive()}
        busy = len(self._out) >= MOST_AT_ONCE or len(self._hanging) >= MOST_HANGING
        if busy or parcel.id in self._out or parcel.id in self._hanging:
            return False
        thread = Thread(target=self._carry, args=(parcel,), name=THREAD + parcel.id, daemon=True)
        self._out[parcel.id] = _Errand(now, thread)
        try:
            thread.start()
        except RuntimeError:  # the machine has no more threads
            del self._out[parcel.id]
            return False
        return True

    def returned(self, now: datetime) -> Mapping[str, Answer]:
        """See `Carrier.returned`."""
        with self._lock:
            found = {id_: errand.answer for id_, errand in self._out.items() if errand.answer is not None}
            late = [id_ for id_, e in self._out.items() if id_ not in found and now - e.begun >= PATIENCE]
            for id_ in late:
                self._hanging[id_] = self._out[id_].thread
                found[id_] = Answer.TIMED_OUT
            for id_ in found:
                del self._out[id_]
            for id_ in [id_ for id_, answer in found.items() if answer is Answer.DELIVERED]:
                self._arrived.pop(id_, None)
        return found

    def finish(self) -> None:
        """See `Carrier.finish`."""
        for errand in list(self._out.values()):
            errand.thread.join(PATIENCE.total_seconds())

    def _carry(self, parcel: Parcel) -> None:
        """In its thread. Of several addresses those that have it already are left out."""
        arrived = self._arrived.setdefault(parcel.id, set())
        worst = Answer.DELIVERED
        for address in parcel.addresses:
            digest = sha256(address.url.encode()).hexdigest()
            if digest in arrived:
                continue
            answer = sent(address, parcel.message, parcel.id)
            if answer is Answer.DELIVERED:
                arrived.add(digest)
            elif worst is not Answer.UNUSABLE:
                worst = answer
        with self._lock:
            errand = self._out.get(parcel.id)
            if errand is not None:
                errand.answer = worst


def sent(address: Address, message: Message, delivery: str) -> Answer:
    """One message to one address, now; takes as long as the service does. Raises nothing."""
    import apprise  # who sends nothing starts without it

    _hush()
    with suppress(Exception):  # whatever a plugin of apprise trips over, its words may hold the address
        asset = apprise.AppriseAsset(
            app_id="EGS",
            async_mode=False,
            http_redirects=False,  # it goes where the operator said, and nowhere else
            storage_mode=apprise.PersistentStoreMode.MEMORY,
            service_timeout=0,  # the thread is waited for; apprise's own pool would be shared with those that hang
        )
        service = apprise.Apprise.instantiate(address.url, asset=asset)
        if service is None:
            return Answer.UNUSABLE
        _hush()  # a plugin is loaded when it is named first, and what it is built on with it
        for name, key in (("headers", HEADER), ("payload_extras", FIELD)):
            extras = getattr(service, name, None)
            if isinstance(extras, dict):
                extras[key] = delivery
        service.socket_read_timeout = max(service.socket_read_timeout, READ_S)
        if service.overflow_mode is apprise.OverflowMode.UPSTREAM:
            service.overflow_mode = apprise.OverflowMode.SPLIT
        box = apprise.Apprise(asset=asset)
        box.add(service)
        kind = apprise.NotifyType.WARNING if message.warning else apprise.NotifyType.INFO
        done = box.notify(
            body=message.body, title=message.title, notify_type=kind, body_format=apprise.NotifyFormat.TEXT
        )
        return Answer.DELIVERED if done else Answer.REFUSED
    return Answer.REFUSED


def _hush() -> None:
    """What apprise and those below it say may hold addresses."""
    logging.getLogger("apprise").disabled = True
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(_BELOW)]:
        logging.getLogger(name).addFilter(_is_elsewhere)
    warnings.filterwarnings("ignore", message="Unverified HTTPS request")  # which names the host


def _is_elsewhere(record: logging.LogRecord) -> bool:
    """Others use the same libraries; what they log stays."""
    return not (record.threadName or "").startswith(THREAD)
