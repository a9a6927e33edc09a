"""The NVML reader against a stand-in module (`fake_nvml`): what it makes of answers, refusals and silence."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event

import pytest

from agent.nvml import NvmlReader
from agent.port import GpuReading, XidEvent
from schemas.errors import Fault, UserError
from tests.agent.fake_nvml import FakeGpu, FakeNvml

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
PATIENT_S, HASTY_S = 30.0, 0.02


def reader(nvml: FakeNvml, deadline_s: float = PATIENT_S) -> NvmlReader:
    return NvmlReader(nvml, deadline_s)


def test_a_gpu_that_answers_everything():
    """G1: the device and its attributes."""
    assert reader(FakeNvml(FakeGpu("GPU-a"))).read(NOW) == (
        GpuReading(
            uuid="GPU-a",
            index=0,
            product="NVIDIA H100 80GB HBM3",
            memory_mib=81920,
            temp_c=41,
            power_w=71.5,
            utilisation_percent=7,
            memory_used_mib=1024,
            ecc_uncorrectable=0,
            remap_failure=False,
            remap_pending=False,
            recovery_action=0,
        ),
    )


@pytest.mark.parametrize("name", ["power", "utilisation", "temperature", "fields"])
def test_what_is_not_supported_is_absent_and_never_zero(name):
    names = {"power": "power_w", "utilisation": "utilisation_percent", "temperature": "temp_c"}
    gpu = FakeGpu("GPU-a", answers={name: FakeNvml.NVML_ERROR_NOT_SUPPORTED})
    (reading,) = reader(FakeNvml(gpu)).read(NOW)
    assert getattr(reading, names.get(name, "recovery_action")) is None
    assert reading.lost is False


def test_every_field_has_a_return_code_of_its_own():
    """The call succeeds and a field in it does not: an older driver without the recovery action."""
    gpu = FakeGpu("GPU-a", fields={230: (FakeNvml.NVML_ERROR_NOT_SUPPORTED, 0), 4: (0, 3), 145: (0, 1)})
    (reading,) = reader(FakeNvml(gpu)).read(NOW)
    assert (reading.recovery_action, reading.ecc_uncorrectable, reading.remap_failure) == (None, 3, True)


@pytest.mark.parametrize("by_field", [False, True])
def test_a_lost_gpu_does_not_fail_the_others(by_field):
    """H14: one GPU falls off the bus; the seven others go on being watched."""
    nvml = FakeNvml(FakeGpu("GPU-a"), FakeGpu("GPU-b"), FakeGpu("GPU-c"))
    r = reader(nvml)
    r.read(NOW)
    if by_field:
        nvml.gpus[1].fields[230] = (FakeNvml.NVML_ERROR_GPU_IS_LOST, 0)
    else:
        nvml.gpus[1].lost = True
    a, b, c = r.read(NOW)
    assert (a.lost, b.lost, c.lost) == (False, True, False)
    assert (b.uuid, b.temp_c, c.temp_c) == ("GPU-b", None, 41)


def test_a_gpu_that_cannot_be_opened_is_absent_and_asked_for_no_more():
    nvml = FakeNvml(FakeGpu("GPU-a", lost=True), FakeGpu("GPU-b"))
    r = reader(nvml)
    assert [g.uuid for g in r.read(NOW)] == ["GPU-b"]
    r.read(NOW)
    assert nvml.attachments == 1


def test_a_changed_count_is_looked_into():
    nvml = FakeNvml(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    nvml.gpus.append(FakeGpu("GPU-b"))
    assert [g.uuid for g in r.read(NOW)] == ["GPU-a", "GPU-b"]
    assert (nvml.attachments, nvml.attached) == (2, 1)


def test_xids_come_once_and_to_their_gpu():
    """H14: what the driver kept since the reading before."""
    nvml = FakeNvml(FakeGpu("GPU-a"), FakeGpu("GPU-b"))
    r = reader(nvml)
    nvml.waiting = [(nvml.gpus[1], 63), (nvml.gpus[1], 48)]
    assert [g.xids for g in r.read(NOW)] == [(), (XidEvent(63, NOW), XidEvent(48, NOW))]
    assert [g.xids for g in r.read(NOW)] == [(), ()]


def test_the_xid_of_a_gpu_too_far_gone_to_name_itself_disturbs_nobody():
    nvml = FakeNvml(FakeGpu("GPU-a"), FakeGpu("GPU-b"))
    r = reader(nvml)
    r.read(NOW)
    nvml.gpus[1].lost = True
    nvml.waiting = [(nvml.gpus[1], 79)]
    a, b = r.read(NOW)
    assert (a.xids, b.lost) == ((), True)


def test_without_events_everything_else_is_read():
    gpu = FakeGpu("GPU-a", answers={"events": FakeNvml.NVML_ERROR_NOT_SUPPORTED})
    assert reader(FakeNvml(gpu)).read(NOW)[0].temp_c == 41


def test_a_call_that_never_returns_makes_its_gpu_wedged():
    """The thread is left alone; the reader goes on telling, and recovers when the call comes back."""
    nvml = FakeNvml(FakeGpu("GPU-a"), FakeGpu("GPU-b"), FakeGpu("GPU-c"))
    r = reader(nvml, HASTY_S)
    assert [g.wedged for g in _finished(r)] == [False, False, False]
    nvml.gpus[1].stuck = Event()
    a, b, c = r.read(NOW)
    assert (a.temp_c, a.wedged) == (41, False)
    assert (b.uuid, b.wedged, b.lost) == ("GPU-b", True, None)
    assert (c.wedged, c.temp_c) == (None, None)
    assert [g.wedged for g in r.read(NOW)] == [None, True, None]
    with pytest.raises(Fault, match="hangs"):
        r.release()
    nvml.gpus[1].stuck.set()
    nvml.gpus[1].stuck = None
    assert [g.wedged for g in _finished(r)] == [False, False, False]


def test_a_driver_that_hangs_from_the_start_names_no_gpu():
    """The judge then misses what the manifest promises."""
    stuck = Event()
    r = reader(FakeNvml(FakeGpu("GPU-a", stuck=stuck)), HASTY_S)
    assert r.read(NOW) == ()
    stuck.set()


def _finished(r: NvmlReader) -> tuple[GpuReading, ...]:
    """A reading of which every GPU was asked, however slow this machine is."""
    for _ in range(500):
        readings = r.read(NOW)
        if readings and all(g.answers for g in readings):
            return readings
    raise AssertionError("the probe never finished")


@pytest.mark.parametrize(
    ("code", "error", "reason"),
    [
        pytest.param(12, UserError, "GpuLibraryMissing", id="no library"),
        pytest.param(4, UserError, "GpuDriverForbidden", id="no permission"),
        pytest.param(9, Fault, "GpuDriverNotLoaded", id="no driver, perhaps not yet"),
    ],
)
def test_a_driver_that_cannot_be_reached_says_who_must_act(code, error, reason):
    with pytest.raises(error) as caught:
        reader(FakeNvml(cannot_init=code)).read(NOW)
    assert caught.value.reason == reason


def test_a_reloaded_driver_is_attached_to_anew():
    nvml = FakeNvml(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    nvml.attached = 0
    with pytest.raises(Fault) as caught:
        r.read(NOW)
    assert caught.value.reason == "GpuDriverReloaded"
    assert r.read(NOW)[0].temp_c == 41


def test_release_lets_go_of_the_driver_until_the_next_read():
    """A living client makes a GPU reset impossible."""
    nvml = FakeNvml(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    r.release()
    r.release()
    assert nvml.attached == 0
    assert r.read(NOW)[0].uuid == "GPU-a"
