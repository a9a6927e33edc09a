"""A stand-in for the module `pynvml`: its names, its return codes, and its unhelpful exceptions.

It imitates what the reader leans on and nothing more: NVML_SUCCESS per field, NotSupported, GPU_IS_LOST, Timeout
from an event set that is empty, and an NVMLError that can be neither hashed nor compared. It says nothing about
real hardware; `test_nvml_hardware.py` does, where there is some.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace


class NVMLError(Exception):
    """As in nvidia-ml-py 13: `__eq__` without `__hash__`, and comparing with anything else raises."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other.value)  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


@dataclass
class FakeGpu:
    """One GPU; `answers` overrides a function's answer, by code or by value."""

    uuid: str
    lost: bool = False
    stuck: Event | None = None  # calls wait for it
    answers: dict[str, object] = field(default_factory=dict)
    fields: dict[int, tuple[int, int]] = field(default_factory=dict)  # id -> (return code, value)


class FakeNvml:
    """The functions that the reader calls, over `gpus`."""

    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_ERROR_UNINITIALIZED = 1
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_TIMEOUT = 10
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_DRIVER_NOT_LOADED = 9
    NVML_TEMPERATURE_GPU = 0
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3
    NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4
    NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4
    NVML_FI_DEV_REMAPPED_PENDING = 144
    NVML_FI_DEV_REMAPPED_FAILURE = 145
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    nvmlEventTypeXidCriticalError = 8  # noqa: N815 - the library's name

    def __init__(self, *gpus: FakeGpu, cannot_init: int = 0) -> None:
        self.gpus = list(gpus)
        self.cannot_init = cannot_init
        self.waiting: list[tuple[FakeGpu, int]] = []  # Xids that the driver keeps
        self.attached = 0
        self.attachments = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name, as all below
        if self.cannot_init:
            raise NVMLError(self.cannot_init)
        self.attached += 1
        self.attachments += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.attached -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if not self.attached:
            raise NVMLError(self.NVML_ERROR_UNINITIALIZED)
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        return self._reached(self.gpus[index])

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:  # noqa: N802
        return self._reached(gpu).uuid

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:  # noqa: N802
        return "NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu) -> object:  # noqa: N802
        return self._answer(gpu, "memory", SimpleNamespace(total=80 << 30, used=1 << 30))

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> object:  # noqa: N802
        return self._answer(gpu, "power", 71_500)

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> object:  # noqa: N802
        return self._answer(gpu, "utilisation", SimpleNamespace(gpu=7, memory=1))

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, sensor: int) -> object:  # noqa: N802
        return self._answer(gpu, "temperature", 41)

    def nvmlDeviceGetFieldValues(self, gpu: FakeGpu, wanted: list[int]) -> list[object]:  # noqa: N802
        self._answer(gpu, "fields", None)
        return [self._field(gpu, number) for number in wanted]

    def nvmlEventSetCreate(self) -> object:  # noqa: N802
        return object()

    def nvmlDeviceRegisterEvents(self, gpu: FakeGpu, kinds: int, events: object) -> None:  # noqa: N802
        self._answer(gpu, "events", None)

    def nvmlEventSetWait_v2(self, events: object, wait_ms: int) -> object:  # noqa: N802
        if not self.waiting:
            raise NVMLError(self.NVML_ERROR_TIMEOUT)
        gpu, xid = self.waiting.pop(0)
        return SimpleNamespace(device=gpu, eventType=8, eventData=xid)

    def _field(self, gpu: FakeGpu, number: int) -> object:
        code, value = gpu.fields.get(number, (self.NVML_SUCCESS, 0))
        wide = number == self.NVML_FI_DEV_ECC_DBE_VOL_TOTAL
        kind = self.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG if wide else 1
        held = SimpleNamespace(ullVal=value if wide else -1, uiVal=-1 if wide else value)
        return SimpleNamespace(fieldId=number, nvmlReturn=code, valueType=kind, value=held)

    def _answer(self, gpu: FakeGpu, name: str, usual: object) -> object:
        answer = self._reached(gpu).answers.get(name, usual)
        if isinstance(answer, int) and name in gpu.answers:
            raise NVMLError(answer)
        return answer

    def _reached(self, gpu: FakeGpu) -> FakeGpu:
        if gpu.stuck is not None:
            gpu.stuck.wait(30)
        if gpu.lost:
            raise NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return gpu
