"""The questions about one GPU that NVML is asked, and what their answers become in a reading.

What belongs to the card is read once per attachment, links and modes every half a minute or after an Xid. A question
that a GPU or a driver does not support is not asked again. A GPU that lacks a value does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from agent.port import GpuReading, XidEvent
from schemas.errors import Fault

T = TypeVar("T")

DRIVER_RELOADED = "GpuDriverReloaded"
"""Reason of a fault that says the driver was loaded again: handles are stale."""

SLOW_EVERY = timedelta(seconds=30)
"""How often links, fabric and lanes are read: short enough for a verdict within 150 s."""
LINKS = 36
"""Most NVLink links that are asked for, as in NVML_NVLINK_MAX_LINKS."""
RESET = 1
"""NVML_GPU_RECOVERY_ACTION_GPU_RESET, also for drivers that say so by refusing calls."""

_BLANK = 9_000_000_000_000_000_000
"""Values from here on are NVML's way of saying that there is none."""

_COUNTED = {
    "NVML_FI_DEV_ECC_SBE_VOL_TOTAL": "ecc_corrected",
    "NVML_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrectable",
    "NVML_FI_DEV_RETIRED_DBE": "retired_pages",
    "NVML_FI_DEV_RETIRED_PENDING": "retire_pending",
    "NVML_FI_DEV_MEMORY_TEMP": "memory_temp_c",
    "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "energy_mj",
    "NVML_FI_DEV_PCIE_REPLAY_COUNTER": "pcie_replays",
    "NVML_FI_DEV_REMAPPED_COR": "remapped_correctable",
    "NVML_FI_DEV_REMAPPED_UNC": "remapped_uncorrectable",
    "NVML_FI_DEV_REMAPPED_PENDING": "remap_pending",
    "NVML_FI_DEV_REMAPPED_FAILURE": "remap_failure",
    "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "nvlink_crc_errors",
    "NVML_FI_DEV_NVLINK_ERROR_DL_CRC": "nvlink_crc_errors",  # the same on later products
    "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "nvlink_recoveries",
    "NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY": "nvlink_recoveries",
    "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION": "recovery_action",
}
"""The fields of one batch, and the value of a reading that each gives."""


def _nothing() -> None:
    """A question that may be asked again."""


class Nvml(Protocol):
    """The parts of `pynvml` used here; functions and constants are looked up by name."""

    NVMLError: type[Exception]

    def __getattr__(self, name: str) -> Any:
        """Any function or constant of the library."""


class Lost(Exception):  # noqa: N818 - an answer, not an error
    """The GPU is off the bus."""


def code_of(error: Exception) -> int:
    """An NVMLError is unhashable, and comparing it raises: only its number is safe to use."""
    return int(getattr(error, "value", -1))


class GpuQuestions:
    """Asks one library about its GPUs; remembers what is not supported, and what changes seldom."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._slow: dict[str, tuple[datetime, dict[str, Any]]] = {}  # uuid -> when read, and what
        self._unsupported: set[tuple[object, ...]] = set()  # (uuid, question)
        self._mig: dict[str, bool | None] = {}
        self._reset_required = False  # the GPU being read refuses calls until it is reset
        named = (
            "NOT_SUPPORTED",
            "INVALID_ARGUMENT",
            "FUNCTION_NOT_FOUND",
            "ARGUMENT_VERSION_MISMATCH",
            "DEPRECATED",
        )
        self._unsupporting = {self._constant(f"NVML_ERROR_{name}") for name in named}

    def forget(self) -> None:
        """After a new attachment, everything is asked again."""
        self._unsupported.clear()
        self._slow.clear()

    def reading(
        self, known: GpuReading, handle: Any, xids: tuple[XidEvent, ...], now: datetime
    ) -> GpuReading:
        self._reset_required = False
        try:
            measured = self._measured(known, handle)
            slow = self._slowly(known.uuid, handle, now, at_once=bool(xids))
            if self._reset_required and not measured.recovery_action:
                measured = replace(measured, recovery_action=RESET)
            return replace(measured, xids=xids, **slow)
        except Lost:
            return replace(known, lost=True, xids=xids)

    def card(self, uuid: str, handle: Any) -> dict[str, Any]:
        """What belongs to the card: it is read once per attachment."""
        limits = self._try(uuid, "nvmlDeviceGetPowerManagementLimitConstraints", handle)
        driver = self._try(uuid, "nvmlSystemGetDriverVersion")
        margin = self._fields(handle, ["NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT"])
        return {
            "serial": self._try(uuid, "nvmlDeviceGetSerial", handle),
            "board_part": self._try(uuid, "nvmlDeviceGetBoardPartNumber", handle),
            "vbios": self._try(uuid, "nvmlDeviceGetVbiosVersion", handle),
            "inforom": self._try(uuid, "nvmlDeviceGetInforomImageVersion", handle),
            "driver": driver,
            "slowdown_temp_c": self._threshold(uuid, handle, "SLOWDOWN"),
            "shutdown_temp_c": self._threshold(uuid, handle, "SHUTDOWN"),
            "max_memory_temp_c": self._threshold(uuid, handle, "MEM_MAX"),
            "slowdown_margin_c": margin["NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT"],
            "max_power_w": None if limits is None else limits[1] / 1000,
            "max_sm_clock_mhz": self._clock(uuid, handle, "Max", "SM"),
            "max_pcie_generation": self._try(uuid, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "max_pcie_width": self._try(uuid, "nvmlDeviceGetMaxPcieLinkWidth", handle),
        }

    def _threshold(self, uuid: str, handle: Any, name: str) -> int | None:
        which = self._constant(f"NVML_TEMPERATURE_THRESHOLD_{name}")
        found: int | None = self._try(uuid, "nvmlDeviceGetTemperatureThreshold", handle, which)
        return found or None  # 0 is how some drivers say that the product has no such limit

    def _clock(self, uuid: str, handle: Any, which: str, domain: str) -> int | None:
        domain_number = self._constant(f"NVML_CLOCK_{domain}")
        found: int | None = self._try(uuid, f"nvmlDeviceGet{which}ClockInfo", handle, domain_number)
        return found

    def _measured(self, known: GpuReading, handle: Any) -> GpuReading:
        uuid = known.uuid
        power_mw = self._try(uuid, "nvmlDeviceGetPowerUsage", handle)
        use = self._try(uuid, "nvmlDeviceGetUtilizationRates", handle)
        memory = self._try(uuid, "nvmlDeviceGetMemoryInfo", handle)
        mig = self._try(uuid, "nvmlDeviceGetMigMode", handle)
        temperature = self._constant("NVML_TEMPERATURE_GPU")
        self._on_mig(uuid, mig)
        found = self._fields(handle, list(_COUNTED))
        counted: dict[str, Any] = {}
        for name, value in found.items():
            if value is not None and value < _BLANK:
                counted[_COUNTED[name]] = max(counted.get(_COUNTED[name], 0), value)
        for name in ("remap_failure", "remap_pending", "retire_pending"):
            if name in counted:
                counted[name] = counted[name] > 0
        counted = self._by_call(uuid, handle) | counted if None in found.values() else counted
        energy_mj = counted.pop("energy_mj", None)
        return replace(
            known,
            temp_c=self._try(uuid, "nvmlDeviceGetTemperature", handle, temperature),
            thermal_margin_c=self._margin(uuid, handle, known),
            power_w=None if power_mw is None else power_mw / 1000,
            energy_j=None if energy_mj is None else energy_mj / 1000,
            throttle=self._throttle(uuid, handle),
            sm_clock_mhz=self._clock(uuid, handle, "", "SM"),
            memory_clock_mhz=self._clock(uuid, handle, "", "MEM"),
            utilisation_percent=None if use is None else use.gpu,
            memory_activity_percent=None if use is None else use.memory,
            memory_used_mib=None if memory is None else memory.used >> 20,
            mig_enabled=None if mig is None else bool(mig[0]),
            **counted,
        )

    def _throttle(self, uuid: str, handle: Any) -> int | None:
        """The bits that say what slows the clocks; drivers before 535 know the call by its old name."""
        for call in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            found: int | None = self._try(uuid, call, handle)
            if found is not None:
                return found
        return None

    def _by_call(self, uuid: str, handle: Any) -> dict[str, Any]:
        """What drivers without these fields answer to calls of their own."""
        uncorrected = self._constant("NVML_MEMORY_ERROR_TYPE_UNCORRECTED")
        volatile = self._constant("NVML_VOLATILE_ECC")
        rows = self._try(uuid, "nvmlDeviceGetRemappedRows", handle) or (None,) * 4
        found = {
            "ecc_uncorrectable": self._try(
                uuid, "nvmlDeviceGetTotalEccErrors", handle, uncorrected, volatile
            ),
            "pcie_replays": self._try(uuid, "nvmlDeviceGetPcieReplayCounter", handle),
            "remapped_correctable": rows[0],
            "remapped_uncorrectable": rows[1],
            "remap_pending": None if rows[2] is None else bool(rows[2]),
            "remap_failure": None if rows[3] is None else bool(rows[3]),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _on_mig(self, uuid: str, mig: Any) -> None:
        """A GPU whose MIG mode changed supports other questions than before."""
        enabled = None if mig is None else bool(mig[0])
        if self._mig.get(uuid, enabled) != enabled:
            self._unsupported = {question for question in self._unsupported if question[0] != uuid}
            self._slow.pop(uuid, None)
        self._mig[uuid] = enabled

    def _margin(self, uuid: str, handle: Any, known: GpuReading) -> int | None:
        """Only where the product has no absolute limit: one call less for the others."""
        if known.slowdown_temp_c is not None or known.slowdown_margin_c is None:
            return None
        found = self._try(uuid, "nvmlDeviceGetMarginTemperature", handle)
        return None if found is None else int(getattr(found, "marginTemperature", found))

    def _slowly(self, uuid: str, handle: Any, now: datetime, *, at_once: bool) -> dict[str, Any]:
        """What changes seldom: read every half a minute, or at once after an error."""
        read_at, found = self._slow.get(uuid, (now - SLOW_EVERY, {}))
        if not at_once and timedelta(0) <= now - read_at < SLOW_EVERY:
            return found
        limit_mw = self._try(uuid, "nvmlDeviceGetEnforcedPowerLimit", handle)
        state, status = self._fabric(uuid, handle)
        mig = self._mig_devices(uuid, handle)
        found = {
            "power_limit_w": None if limit_mw is None else limit_mw / 1000,
            "pcie_generation": self._try(uuid, "nvmlDeviceGetCurrPcieLinkGeneration", handle),
            "pcie_width": self._try(uuid, "nvmlDeviceGetCurrPcieLinkWidth", handle),
            "nvlinks": self._links(uuid, handle),
            "fabric_state": state,
            "fabric_status": status,
            "sram_threshold_exceeded": self._sram(uuid, handle),
            "ecc_dram_uncorrectable": self._aggregate(uuid, handle, "DRAM"),
            "ecc_sram_uncorrectable": self._aggregate(uuid, handle, "SRAM"),
            "mig_devices": None if mig is None else len(mig),
            "mig_uuids": tuple(filter(None, mig or ())),
        }
        self._slow[uuid] = (now, found)
        return found

    def _links(self, uuid: str, handle: Any) -> tuple[bool, ...] | None:
        """Whether each link is up. A link that the product lacks is not supported, or is an invalid argument."""
        states = []
        for link in range(LINKS):
            state = self._try(uuid, "nvmlDeviceGetNvLinkState", handle, link)
            if state is None:
                break
            states.append(state == self._constant("NVML_FEATURE_ENABLED"))
        return tuple(states) or None

    def _fabric(self, uuid: str, handle: Any) -> tuple[int | None, int | None]:
        """State and status of the NVLink fabric; the second call is for drivers before 545."""
        for call, structure in (
            ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
            ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
        ):
            struct = self._constant(structure)
            info = None if struct is None else struct()
            if info is not None and self._try(uuid, call, handle, byref(info)) is not None:
                return int(info.state), int(info.status)
        return None, None

    def _sram(self, uuid: str, handle: Any) -> bool | None:
        struct = self._constant("c_nvmlEccSramErrorStatus_v1_t")
        if struct is None:
            return None
        status = struct()
        if self._try(uuid, "nvmlDeviceGetSramEccErrorStatus", handle, byref(status)) is None:
            return None
        return bool(status.bThresholdExceeded)

    def _aggregate(self, uuid: str, handle: Any, where: str) -> int | None:
        found = self._try(
            uuid,
            "nvmlDeviceGetMemoryErrorCounter",
            handle,
            self._constant("NVML_MEMORY_ERROR_TYPE_UNCORRECTED"),
            self._constant("NVML_AGGREGATE_ECC"),
            self._constant(f"NVML_MEMORY_LOCATION_{where}"),
        )
        return None if found is None or found >= _BLANK else int(found)

    def _mig_devices(self, uuid: str, handle: Any) -> list[str | None] | None:
        """The uuids of the MIG devices that exist; None: the GPU is not divided."""
        mode = self._try(uuid, "nvmlDeviceGetMigMode", handle)
        if mode is None or not mode[0]:
            return None
        most = self._try(uuid, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0
        nvml, found = self._nvml, list[str | None]()
        for index in range(most):
            try:
                device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except nvml.NVMLError:
                continue  # no device at this index
            found.append(self.ask(nvml.nvmlDeviceGetUUID, device))
        return found

    def _fields(self, handle: Any, names: list[str]) -> dict[str, int | None]:
        """Several values in one call; each has its own return code."""
        numbers = {number: name for name in names if (number := self._constant(name)) is not None}
        answers = self.ask(self._nvml.nvmlDeviceGetFieldValues, handle, list(numbers)) or ()
        found = {numbers[a.fieldId]: self._field(a) for a in answers if a.fieldId in numbers}
        return dict.fromkeys(names) | found

    def _field(self, answer: Any) -> int | None:
        nvml = self._nvml
        if answer.nvmlReturn == nvml.NVML_ERROR_GPU_IS_LOST:
            raise Lost
        if answer.nvmlReturn != nvml.NVML_SUCCESS:
            return None
        kind = answer.valueType
        if kind == nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG:
            return int(answer.value.sllVal)
        if kind in (nvml.NVML_VALUE_TYPE_UNSIGNED_LONG, nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG):
            return int(answer.value.ullVal)
        if kind == getattr(nvml, "NVML_VALUE_TYPE_SIGNED_INT", None):
            return int(answer.value.siVal)
        return int(answer.value.uiVal)

    def _constant(self, name: str) -> Any:
        """A constant of the library; None: this release of it does not know the name."""
        return getattr(self._nvml, name, None)

    def _try(self, uuid: str, call: str, *args: Any) -> Any:
        """The answer to one question; None if this GPU, driver or library does not support it."""
        question = (uuid, call, *(arg for arg in args if isinstance(arg, int)))
        function = None if question in self._unsupported else getattr(self._nvml, call, None)
        if function is None:
            return None
        return self.ask(function, *args, on_unsupported=lambda: self._unsupported.add(question))

    def ask(
        self, call: Callable[..., T], *args: Any, on_unsupported: Callable[[], None] = _nothing
    ) -> T | None:
        """The answer; None if this GPU or driver does not support it, or does not answer this time."""
        nvml = self._nvml
        try:
            return call(*args)
        except nvml.NVMLError as error:
            code = code_of(error)
        if code == nvml.NVML_ERROR_GPU_IS_LOST:
            raise Lost
        if code == getattr(nvml, "NVML_ERROR_RESET_REQUIRED", None):
            self._reset_required = True
        if code == nvml.NVML_ERROR_UNINITIALIZED:
            raise Fault("the GPU driver was reloaded", DRIVER_RELOADED)
        if code in self._unsupporting:
            on_unsupported()
        return None
