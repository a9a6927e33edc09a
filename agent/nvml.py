"""Read GPUs through the vendor's library, NVML.

NVML calls can hang for ever and cannot be cancelled, so a probe thread makes all of them, and `read` waits for it no
longer than a deadline: the GPU being probed is then reported wedged, and the thread is left alone until it returns.
Calls are kept few, because they compete with the workloads for the driver's locks: what belongs to the card is read
once per attachment, links and modes every half a minute or after an Xid, and a question that a GPU or a driver does
not support is not asked again. Processes are never listed.

GPUs are identified by uuid; indices may change when the driver is reloaded. A GPU that is lost or lacks a value does
not affect the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_void_p, cast
from dataclasses import replace
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from agent.gpu_questions import DRIVER_RELOADED, GpuQuestions, Lost, Nvml, code_of
from agent.port import GpuReading, XidEvent
from schemas.errors import EgsError, Fault, UserError

log = logging.getLogger(__name__)

T = TypeVar("T")

EVENTS_PER_READ = 256
"""Further events wait for the next read: a GPU that reports without end must not block the probe."""

DRIVER_NOT_LOADED = "GpuDriverNotLoaded"
"""Reason of a fault that says the driver is away."""


class _Probe:
    """One pass over all GPUs in a thread of its own; `taken` returns each reading once."""

    def __init__(self, work: Callable[[_Probe], None]) -> None:
        self.done = Event()
        self.error: Exception | None = None
        self.at: str | None = None  # uuid of the GPU being probed
        self._lock = Lock()
        self._readings: dict[str, GpuReading] = {}
        Thread(target=self._run, args=(work,), name="nvml-probe", daemon=True).start()

    def found(self, reading: GpuReading) -> None:
        with self._lock:
            self._readings[reading.uuid] = reading

    def taken(self) -> dict[str, GpuReading]:
        with self._lock:
            readings, self._readings = self._readings, {}
        return readings

    def _run(self, work: Callable[[_Probe], None]) -> None:
        try:
            work(self)
        except Exception as error:  # carried to the thread that waits
            self.error = error
        finally:
            self.done.set()


class NvmlReader:
    """`agent.port.Reader` over NVML; `nvml` is the module `pynvml` or a substitute."""

    def __init__(self, nvml: Nvml, deadline_s: float) -> None:
        self._nvml = nvml
        self._questions = GpuQuestions(nvml)
        self._deadline_s = deadline_s
        self._handles: dict[str, Any] | None = None  # uuid -> handle; None: not attached
        self._count = 0  # GPUs reported by the driver when we attached
        self._known: dict[str, GpuReading] = {}  # uuid -> what belongs to the card
        self._attached_at: datetime | None = None
        self._events: Any = None
        self._probe: _Probe | None = None

    def read(self, now: datetime) -> tuple[GpuReading, ...]:
        """One pass over all GPUs, as far as it comes before the deadline."""
        probe = self._probe or _Probe(lambda p: self._pass(p, now))
        self._probe = probe
        if probe.done.wait(self._deadline_s):
            self._probe = None
        else:
            log.warning(
                "gpu driver did not answer in time deadline_s=%.2f gpu=%s", self._deadline_s, probe.at
            )
        if probe.error is not None:
            raise probe.error
        readings = self._filled_up(probe.taken(), probe.at)
        return tuple(sorted(readings, key=lambda r: (r.index, r.uuid)))

    def release(self) -> None:
        """Detach; impossible while a probe hangs in the driver, which raises a `Fault`."""
        if self._probe is not None and not self._probe.done.is_set():
            raise Fault("a call hangs in the GPU driver; stop the agent to release it", "GpuDriverWedged")
        self._probe = None
        if self._handles is not None:
            self._detach()

    def _filled_up(self, found: dict[str, GpuReading], at: str | None) -> list[GpuReading]:
        """GPUs not probed yet, or returned before, have unknown values; the one being probed is wedged."""
        return [
            found.get(uuid) or replace(known, lost=None, wedged=True if uuid == at else None)
            for uuid, known in list(self._known.items())
        ]

    # --- runs in the probe's thread ---

    def _pass(self, probe: _Probe, now: datetime) -> None:
        try:
            self._look(probe, now)
        except Fault as fault:
            if fault.reason == DRIVER_RELOADED:
                self._handles = None  # they are stale: the next read attaches again
            raise

    def _look(self, probe: _Probe, now: datetime) -> None:
        # Attach again only if the count changed: otherwise a GPU that cannot be opened would cause an
        # attachment with every read, which drivers do not tolerate well.
        if self._handles is None:
            self._attached_at = now
            self._attach()
        elif self._counted() != self._count:
            self._attach()
        xids = self._drained_events(now)
        for uuid, handle in (self._handles or {}).items():
            probe.at = uuid
            probe.found(self._questions.reading(self._known[uuid], handle, xids.get(uuid, ()), now))
        probe.at = None

    def _attach(self) -> None:
        """Open every GPU that can be opened; a lost one is then missing, which the judge notices."""
        if self._handles is not None:
            self._detach()
        self._init()
        self._count = self._counted()
        self._questions.forget()
        opened = [found for index in range(self._count) if (found := self._identity(index)) is not None]
        self._known = {known.uuid: known for _, known in opened}
        self._handles = {known.uuid: handle for handle, known in opened}
        self._listen()

    def _detach(self) -> None:
        self._handles = self._events = None
        with suppress(self._nvml.NVMLError):  # an unloaded driver has nothing to release
            self._nvml.nvmlShutdown()

    def _init(self) -> None:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise _cannot_attach(nvml, code_of(error)) from error

    def _counted(self) -> int:
        try:
            return self._questions.ask(self._nvml.nvmlDeviceGetCount) or 0
        except Lost:
            return self._count

    def _identity(self, index: int) -> tuple[Any, GpuReading] | None:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid, product = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
            memory_mib = nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20
        except nvml.NVMLError as error:
            log.warning("gpu not opened index=%d code=%d", index, code_of(error))
            return None
        known = GpuReading(uuid, index, product, memory_mib, attached_at=self._attached_at)
        with suppress(Lost):
            known = replace(known, **self._questions.card(uuid, handle))
        return handle, known

    def _listen(self) -> None:
        nvml = self._nvml
        self._events = self._questions.ask(nvml.nvmlEventSetCreate)
        for uuid, handle in (self._handles or {}).items():
            try:
                nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
            except nvml.NVMLError as error:
                log.info("xid events not available gpu=%s code=%d", uuid, code_of(error))

    def _drained_events(self, now: datetime) -> dict[str, tuple[XidEvent, ...]]:
        """Xids queued in the driver, by GPU; read without waiting."""
        seen: dict[str, tuple[XidEvent, ...]] = {}
        for _ in range(EVENTS_PER_READ if self._events is not None else 0):
            event = self._next_event()
            if event is None:
                break
            uuid = self._event_uuid(event)
            seen[uuid] = (*seen.get(uuid, ()), XidEvent(int(event.eventData), now))
        return seen

    def _next_event(self) -> Any:
        """None if the queue is empty, which the library reports as a Timeout error."""
        try:
            return self._questions.ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
        except Lost:
            return None

    def _event_uuid(self, event: Any) -> str:
        """The GPU of an event; empty if it is none of ours. A lost GPU cannot name itself, but its handle stays."""
        where = _address(event.device)
        for uuid, handle in (self._handles or {}).items():
            if _address(handle) == where:
                return uuid
        try:
            return self._questions.ask(self._nvml.nvmlDeviceGetUUID, event.device) or ""
        except Lost:
            log.warning("xid of a lost gpu xid=%d", int(event.eventData))
            return ""


def installed(deadline_s: float) -> NvmlReader:
    """A reader over the installed `pynvml`."""
    import pynvml  # costs 14 MB, which an agent of simulated GPUs does not need

    return NvmlReader(pynvml, deadline_s)


def _address(handle: Any) -> int | None:
    """What a handle points to: two handles of one GPU are different objects."""
    return cast(handle, c_void_p).value


def _cannot_attach(nvml: Nvml, code: int) -> EgsError:
    if code == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return UserError(
            "libnvidia-ml.so.1 was not found; install the GPU driver on this node, give the container the driver's "
            "libraries (NVIDIA_DRIVER_CAPABILITIES=utility), or read a file with --simulated",
            "GpuLibraryMissing",
        )
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return UserError(
            "the GPU driver refuses access to this user; run the agent as a user with access to /dev/nvidiactl",
            "GpuDriverForbidden",
        )
    return Fault(f"the GPU driver does not answer (NVML error {code})", DRIVER_NOT_LOADED)
