"""Sends messages to the services, each in a thread of its own; the only user of apprise.

A hanging service blocks nothing: its delivery times out and counts as failed, and is not tried again before
its thread has ended. The result is one of our own terms; texts of a service or of apprise may contain an
address and are never shown.
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
"""Timeout of a delivery; services answer within seconds."""
MOST_AT_ONCE = 16
"""Concurrent deliveries that are waited for; the rest waits for the next call."""
MOST_HANGING = 64
"""Timed-out threads; with this many, no new delivery begins."""
READ_S = 10.0
"""Read timeout in seconds; apprise's own 4 are too short for a busy service."""
HEADER = "Egs-Delivery"
"""The header with the delivery's id, for services that take headers: webhooks and mail."""
THREAD = "courier-"
"""Prefix of our threads' names."""
_BELOW = ("urllib3", "requests", "httpx", "httpcore", "paho", "slixmpp")
FIELD = "delivery"
"""The field with it in the body of webhooks."""


class Answer(StrEnum):
    """The result of a delivery."""

    DELIVERED = "Delivered"
    REFUSED = "ServiceRefused"  # or unreachable: apprise does not distinguish them
    TIMED_OUT = "ServiceTimedOut"
    UNUSABLE = "AddressUnusable"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message being sent."""

    id: str
    message: Message
    addresses: tuple[Address, ...]


class Carrier(Protocol):
    """Sends parcels, and later returns their results."""

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """Starts a delivery; False: too busy, try again later."""

    def returned(self, now: datetime) -> Mapping[str, Answer]:
        """Results since the last call, by the parcel's id."""

    def finish(self) -> None:
        """Waits for running deliveries, up to their timeout."""


@dataclass(slots=True)
class _Errand:
    begun: datetime
    thread: Thread
    answer: Answer | None = None


@dataclass(slots=True)
class Courier:
    """The real carrier. One owner; its threads only store their results."""

    _out: dict[str, _Errand] = field(default_factory=dict)
    _hanging: dict[str, Thread] = field(default_factory=dict)  # timed out
    # Digests of addresses already reached, by parcel.
    _arrived: dict[str, set[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def send(self, parcel: Parcel, now: datetime) -> bool:
        """A parcel whose last try still hangs is not started again."""
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
        for errand in list(self._out.values()):
            errand.thread.join(PATIENCE.total_seconds())

    def _carry(self, parcel: Parcel) -> None:
        """Runs in the thread. Addresses that already have the message are left out."""
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
    """Sends one message to one address, as long as the service takes. Raises nothing."""
    import apprise  # imported late: not needed without messages

    _hush()
    with suppress(Exception):  # whatever apprise's plugin raises, its text may contain the address
        asset = apprise.AppriseAsset(
            app_id="EGS",
            async_mode=False,
            http_redirects=False,  # no redirects: only the operator's address gets the message
            storage_mode=apprise.PersistentStoreMode.MEMORY,
            # The thread has a timeout; apprise's own pool would be shared with hanging threads.
            service_timeout=0,
        )
        service = apprise.Apprise.instantiate(address.url, asset=asset)
        if service is None:
            return Answer.UNUSABLE
        _hush()  # a plugin and its libraries are loaded when first named
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
    """Texts logged by apprise and its libraries may contain addresses."""
    logging.getLogger("apprise").disabled = True
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(_BELOW)]:
        logging.getLogger(name).addFilter(_is_elsewhere)
    warnings.filterwarnings("ignore", message="Unverified HTTPS request")  # it names the host


def _is_elsewhere(record: logging.LogRecord) -> bool:
    """True for other users of the same libraries; their logs stay."""
    return not (record.threadName or "").startswith(THREAD)
