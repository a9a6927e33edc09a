"""A stand-in for libnvidia-ml.so.1 behind the real `pynvml`: the C functions that its wrappers call.

The wrappers, their structures and their unhelpful exceptions are the real ones; only the library below them is not. It
says nothing about real hardware; `test_nvml_hardware.py` does, where there is some.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from types import ModuleType
from typing import Any

import pynvml

OK = pynvml.NVML_SUCCESS
NOT_SUPPORTED, LOST = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_GPU_IS_LOST
RECOVERY_ACTION = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
LINKS = 18


@dataclass
class Refused:
    """An answer that is an error."""

    code: int = NOT_SUPPORTED


H100: dict[str, object] = {
    "Name": "NVIDIA H100 80GB HBM3",
    "Serial": "1652823055631",
    "BoardPartNumber": "692-2G520-0280-001",
    "VbiosVersion": "96.00.89.00.01",
    "InforomImageVersion": "G520.0200.00.05",
    "MemoryInfo": {"total": 80 << 30, "used": 1 << 30},
    "UtilizationRates": {"gpu": 7, "memory": 1},
    "PowerUsage": 71_500,
    "EnforcedPowerLimit": 700_000,
    "PowerManagementLimitConstraints": (200_000, 700_000),
    "Temperature": {pynvml.NVML_TEMPERATURE_GPU: 41},
    "TemperatureThreshold": {
        pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: 92,
        pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: 89,
        pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX: 95,
    },
    "CurrentClocksEventReasons": 0,
    "ClockInfo": {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619},
    "MaxClockInfo": {pynvml.NVML_CLOCK_SM: 1980},
    "CurrPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkGeneration": 5,
    "MaxPcieLinkWidth": 16,
    "MigMode": (0, 0),
    "NvLinkState": dict.fromkeys(range(LINKS), 1),
    "GpuFabricInfoV": {"state": 3, "status": OK},
    "SramEccErrorStatus": {"bThresholdExceeded": 0},
    "MemoryErrorCounter": dict.fromkeys(range(8), 0),
    "CurrentClocksThrottleReasons": Refused(),
    "TotalEccErrors": Refused(),
    "PcieReplayCounter": Refused(),
    "RemappedRows": Refused(),
}
"""What a healthy GPU answers, by the end of the function's name; a mapping answers by argument or fills a structure."""

FIELDS = {
    **dict.fromkeys((3, 4, 142, 143, 144, 145, RECOVERY_ACTION), 0),
    pynvml.NVML_FI_DEV_MEMORY_TEMP: 52,
    pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: 1_000_000,
    pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER: 0,
}
STRUCTURES = ("MemoryInfo", "UtilizationRates", "GpuFabricInfoV", "SramEccErrorStatus")


@dataclass
class FakeGpu:
    """One GPU. `answers` overrides `H100` by name, `fields` overrides `FIELDS` by number."""

    uuid: str
    lost: bool = False
    stuck: Event | None = None  # calls wait for it
    answers: dict[str, object] = field(default_factory=dict)
    fields: dict[int, int | Refused] = field(default_factory=dict)
    parts: dict[int, FakeGpu] = field(default_factory=dict)  # its MIG devices

    def __post_init__(self) -> None:
        self._cell = ctypes.c_uint64()  # its address is the GPU's handle

    @property
    def address(self) -> int:
        return ctypes.addressof(self._cell)


class FakeLibrary:
    """The C functions over `gpus`; one that is not here is missing from this release of the driver."""

    def __init__(self, *gpus: FakeGpu, cannot_init: int = 0) -> None:
        self.gpus = list(gpus)
        self.cannot_init = cannot_init
        self.waiting: list[tuple[FakeGpu, int]] = []  # Xids that the driver keeps
        self.attached = 0
        self.attachments = 0
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        short = name.removeprefix("nvmlDeviceGet")
        if short == name or short not in H100:
            raise AttributeError(name)

        def call(handle: Any, *args: Any) -> int:
            self.calls.append(short)
            return self._about(handle, short, args)

        return call

    def nvmlInitWithFlags(self, flags: int) -> int:  # noqa: N802 - the library's name, as all below
        if not self.cannot_init:
            self.attached += 1
            self.attachments += 1
        return self.cannot_init

    def nvmlShutdown(self) -> int:  # noqa: N802
        self.attached -= 1
        return OK

    def nvmlSystemGetDriverVersion(self, text: Any, length: Any) -> int:  # noqa: N802
        text.value = b"575.57.08"
        return OK

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        if not self.attached:
            return int(pynvml.NVML_ERROR_UNINITIALIZED)
        count._obj.value = len(self.gpus)
        return OK

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, device: Any) -> int:  # noqa: N802
        gpu = self.gpus[index.value]
        ctypes.c_void_p.from_buffer(device._obj).value = gpu.address
        return self._reached(gpu)

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, length: Any) -> int:  # noqa: N802
        gpu = self._gpu(handle)
        text.value = gpu.uuid.encode()
        return self._reached(gpu)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, count: Any) -> int:  # noqa: N802
        count._obj.value = 7
        return OK

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, device: Any) -> int:  # noqa: N802
        part = self._gpu(handle).parts.get(_number(index))
        if part is None:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        ctypes.c_void_p.from_buffer(device._obj).value = part.address
        return OK

    def nvmlDeviceGetFieldValues(self, handle: Any, count: Any, values: Any) -> int:  # noqa: N802
        gpu = self._gpu(handle)
        self.calls.append("FieldValues")
        refused = gpu.answers.get("FieldValues")
        if isinstance(refused, Refused):
            return refused.code
        known = FIELDS | gpu.fields
        for value in values._obj:
            answer = known.get(value.fieldId, Refused())
            value.nvmlReturn = answer.code if isinstance(answer, Refused) else OK
            value.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            value.value.ullVal = 0 if isinstance(answer, Refused) else answer
        return self._reached(gpu)

    def nvmlEventSetCreate(self, events: Any) -> int:  # noqa: N802
        return OK

    def nvmlDeviceRegisterEvents(self, handle: Any, kinds: Any, events: Any) -> int:  # noqa: N802
        refused = self._gpu(handle).answers.get("RegisterEvents")
        return refused.code if isinstance(refused, Refused) else OK

    def nvmlEventSetWait_v2(self, events: Any, data: Any, wait_ms: Any) -> int:  # noqa: N802
        if not self.waiting:
            return int(pynvml.NVML_ERROR_TIMEOUT)
        gpu, xid = self.waiting.pop(0)
        ctypes.c_void_p.from_buffer(data._obj).value = gpu.address  # its first field: the device
        data._obj.eventType = pynvml.nvmlEventTypeXidCriticalError
        data._obj.eventData = xid
        return OK

    def _about(self, handle: Any, name: str, args: tuple[Any, ...]) -> int:
        gpu = self._gpu(handle)
        reached = self._reached(gpu)
        if reached != OK:
            return reached
        answer = gpu.answers.get(name, H100[name])
        if isinstance(answer, dict) and name not in STRUCTURES:
            answer = answer.get(_number(args[-2]), Refused())
        if isinstance(answer, Refused):
            return answer.code
        if isinstance(answer, str):
            args[0].value = answer.encode()
        elif isinstance(answer, tuple):
            for into, value in zip(args, answer, strict=True):
                into._obj.value = value
        elif isinstance(answer, dict):
            for key, value in answer.items():
                setattr(args[0]._obj, key, value)
        else:
            args[-1]._obj.value = answer
        return OK

    def _gpu(self, handle: Any) -> FakeGpu:
        where = ctypes.cast(handle, ctypes.c_void_p).value
        every = [*self.gpus, *(part for gpu in self.gpus for part in gpu.parts.values())]
        return next(gpu for gpu in every if gpu.address == where)

    def _reached(self, gpu: FakeGpu) -> int:
        if gpu.stuck is not None:
            gpu.stuck.wait(30)
        return int(LOST) if gpu.lost else OK


def _number(argument: Any) -> int:
    return int(getattr(argument, "value", argument))


def pynvml_over(library: FakeLibrary) -> ModuleType:
    """The real wrappers in a module of their own, over that library."""
    spec = importlib.util.find_spec("pynvml")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.nvmlLib = library  # type: ignore[attr-defined]
    return module
