"""The NVML reader over a stand-in library (`fake_nvml`): what it makes of answers, refusals and silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from agent.gpu_questions import SLOW_EVERY
from agent.nvml import NvmlReader
from agent.port import GpuReading, XidEvent
from schemas.errors import Fault, UserError
from tests.agent.fake_nvml import LINKS, LOST, RECOVERY_ACTION, FakeGpu, FakeLibrary, Refused, pynvml_over

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
PATIENT_S, HASTY_S = 30.0, 0.02


def reader(library: FakeLibrary, deadline_s: float = PATIENT_S) -> NvmlReader:
    return NvmlReader(pynvml_over(library), deadline_s)


def test_a_gpu_that_answers_everything():
    """G1: the device and its attributes."""
    assert reader(FakeLibrary(FakeGpu("GPU-a"))).read(NOW) == (
        GpuReading(
            uuid="GPU-a",
            index=0,
            product="NVIDIA H100 80GB HBM3",
            memory_mib=81920,
            attached_at=NOW,
            serial="1652823055631",
            board_part="692-2G520-0280-001",
            vbios="96.00.89.00.01",
            inforom="G520.0200.00.05",
            driver="575.57.08",
            mig_enabled=False,
            temp_c=41,
            slowdown_temp_c=89,
            shutdown_temp_c=92,
            memory_temp_c=52,
            max_memory_temp_c=95,
            power_w=71.5,
            power_limit_w=700,
            max_power_w=700,
            energy_j=1000,
            throttle=0,
            sm_clock_mhz=1980,
            max_sm_clock_mhz=1980,
            memory_clock_mhz=2619,
            utilisation_percent=7,
            memory_activity_percent=1,
            memory_used_mib=1024,
            ecc_corrected=0,
            ecc_uncorrectable=0,
            ecc_dram_uncorrectable=0,
            ecc_sram_uncorrectable=0,
            sram_threshold_exceeded=False,
            remapped_correctable=0,
            remapped_uncorrectable=0,
            remap_failure=False,
            remap_pending=False,
            pcie_generation=5,
            pcie_width=16,
            max_pcie_generation=5,
            max_pcie_width=16,
            pcie_replays=0,
            nvlinks=(True,) * LINKS,
            fabric_state=3,
            fabric_status=0,
            recovery_action=0,
        ),
    )


@pytest.mark.parametrize(
    ("function", "values"),
    [
        ("PowerUsage", ["power_w"]),
        ("UtilizationRates", ["utilisation_percent", "memory_activity_percent"]),
        ("Temperature", ["temp_c"]),
        ("TemperatureThreshold", ["slowdown_temp_c", "shutdown_temp_c", "max_memory_temp_c"]),
        ("FieldValues", ["recovery_action", "ecc_uncorrectable", "memory_temp_c", "remap_pending"]),
        ("NvLinkState", ["nvlinks"]),
        ("GpuFabricInfoV", ["fabric_state", "fabric_status"]),
        ("SramEccErrorStatus", ["sram_threshold_exceeded"]),
        ("MigMode", ["mig_enabled", "mig_devices"]),
        ("CurrentClocksEventReasons", ["throttle"]),
        ("Serial", ["serial"]),
    ],
)
def test_what_is_not_supported_is_absent_and_never_zero(function, values):
    (reading,) = reader(FakeLibrary(FakeGpu("GPU-a", answers={function: Refused()}))).read(NOW)
    assert {name: getattr(reading, name) for name in values} == dict.fromkeys(values)
    assert reading.lost is False


def test_what_is_not_supported_is_asked_once():
    """Every call competes with the workload for the driver's locks."""
    library = FakeLibrary(FakeGpu("GPU-a", answers={"PowerUsage": Refused(), "NvLinkState": Refused()}))
    r = reader(library)
    for i in range(10):
        r.read(NOW + i * SLOW_EVERY)
    assert (library.calls.count("PowerUsage"), library.calls.count("NvLinkState")) == (1, 1)
    assert library.calls.count("UtilizationRates") == 10


def test_links_are_read_seldom_but_at_once_after_an_xid():
    library = FakeLibrary(FakeGpu("GPU-a"))
    r = reader(library)
    r.read(NOW)
    library.gpus[0].answers["NvLinkState"] = {**dict.fromkeys(range(LINKS), 1), 3: 0}
    assert sum(r.read(NOW + timedelta(seconds=10))[0].nvlinks or ()) == LINKS
    library.waiting = [(library.gpus[0], 74)]
    assert sum(r.read(NOW + timedelta(seconds=20))[0].nvlinks or ()) == LINKS - 1


def test_mig_changes_what_is_supported():
    """F12: utilisation and links vanish while a GPU is divided, and come back after that."""
    gpu = FakeGpu(
        "GPU-a", answers={"MigMode": (1, 1), "UtilizationRates": Refused(), "NvLinkState": Refused()}
    )
    r = reader(FakeLibrary(gpu))
    (divided,) = r.read(NOW)
    assert (divided.mig_enabled, divided.mig_devices, divided.utilisation_percent) == (True, 0, None)
    gpu.answers.clear()
    r.read(NOW + timedelta(seconds=10))
    (whole,) = r.read(NOW + timedelta(seconds=20))
    assert (whole.mig_enabled, whole.mig_devices, whole.utilisation_percent) == (False, None, 7)
    assert len(whole.nvlinks or ()) == LINKS


def test_parts_of_a_divided_gpu_have_their_uuids():
    """H3: the kubelet names pods' devices by them."""
    parts = {0: FakeGpu("MIG-a"), 3: FakeGpu("MIG-b"), 5: FakeGpu("MIG-c")}
    (reading,) = reader(FakeLibrary(FakeGpu("GPU-a", answers={"MigMode": (1, 1)}, parts=parts))).read(NOW)
    assert (reading.mig_devices, reading.mig_uuids) == (3, ("MIG-a", "MIG-b", "MIG-c"))


def test_every_field_has_a_return_code_of_its_own():
    """The call succeeds and a field in it does not: an older driver without the recovery action."""
    gpu = FakeGpu("GPU-a", fields={RECOVERY_ACTION: Refused(), 4: 3, 145: 1})
    (reading,) = reader(FakeLibrary(gpu)).read(NOW)
    assert (reading.recovery_action, reading.ecc_uncorrectable, reading.remap_failure) == (None, 3, True)


def test_an_older_driver_is_asked_by_its_own_calls():
    """No batch of fields, and throttling by its old name."""
    old = {
        "FieldValues": Refused(),
        "CurrentClocksEventReasons": Refused(),
        "CurrentClocksThrottleReasons": 0x48,
        "TotalEccErrors": 2,
        "PcieReplayCounter": 17,
        "RemappedRows": (1, 3, 1, 0),
    }
    (reading,) = reader(FakeLibrary(FakeGpu("GPU-a", answers=old))).read(NOW)
    assert (reading.throttle, reading.ecc_uncorrectable, reading.pcie_replays) == (0x48, 2, 17)
    assert (reading.remapped_correctable, reading.remapped_uncorrectable) == (1, 3)
    assert (reading.remap_pending, reading.remap_failure) == (True, False)


def test_a_blank_value_is_absent():
    """What NVML answers for a memory temperature that the product does not measure."""
    gpu = FakeGpu("GPU-a", fields={82: 9223372036854775794})
    assert reader(FakeLibrary(gpu)).read(NOW)[0].memory_temp_c is None


def test_a_gpu_that_refuses_calls_until_it_is_reset_asks_for_a_reset():
    gpu = FakeGpu("GPU-a", answers={"PowerUsage": Refused(16)}, fields={RECOVERY_ACTION: Refused()})
    assert reader(FakeLibrary(gpu)).read(NOW)[0].recovery_action == 1


@pytest.mark.parametrize("by_field", [False, True])
def test_a_lost_gpu_does_not_fail_the_others(by_field):
    """H14: one GPU falls off the bus; the seven others go on being watched."""
    nvml = FakeLibrary(FakeGpu("GPU-a"), FakeGpu("GPU-b"), FakeGpu("GPU-c"))
    r = reader(nvml)
    r.read(NOW)
    if by_field:
        nvml.gpus[1].fields[RECOVERY_ACTION] = Refused(LOST)
    else:
        nvml.gpus[1].lost = True
    a, b, c = r.read(NOW)
    assert (a.lost, b.lost, c.lost) == (False, True, False)
    assert (b.uuid, b.temp_c, c.temp_c) == ("GPU-b", None, 41)


def test_a_gpu_that_cannot_be_opened_is_absent_and_asked_for_no_more():
    nvml = FakeLibrary(FakeGpu("GPU-a", lost=True), FakeGpu("GPU-b"))
    r = reader(nvml)
    assert [g.uuid for g in r.read(NOW)] == ["GPU-b"]
    r.read(NOW)
    assert nvml.attachments == 1


def test_a_changed_count_is_looked_into():
    nvml = FakeLibrary(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    nvml.gpus.append(FakeGpu("GPU-b"))
    assert [g.uuid for g in r.read(NOW)] == ["GPU-a", "GPU-b"]
    assert (nvml.attachments, nvml.attached) == (2, 1)


def test_xids_come_once_and_to_their_gpu():
    """H14: what the driver kept since the reading before."""
    nvml = FakeLibrary(FakeGpu("GPU-a"), FakeGpu("GPU-b"))
    r = reader(nvml)
    nvml.waiting = [(nvml.gpus[1], 63), (nvml.gpus[1], 48)]
    assert [g.xids for g in r.read(NOW)] == [(), (XidEvent(63, NOW), XidEvent(48, NOW))]
    assert [g.xids for g in r.read(NOW)] == [(), ()]


def test_the_xid_of_a_gpu_too_far_gone_to_name_itself_still_counts():
    """H14: a GPU off the bus answers nothing, but the event's handle says which one it is."""
    nvml = FakeLibrary(FakeGpu("GPU-a"), FakeGpu("GPU-b"))
    r = reader(nvml)
    r.read(NOW)
    nvml.gpus[1].lost = True
    nvml.waiting = [(nvml.gpus[1], 79)]
    a, b = r.read(NOW)
    assert (a.xids, b.lost, b.xids) == ((), True, (XidEvent(79, NOW),))


def test_without_events_everything_else_is_read():
    gpu = FakeGpu("GPU-a", answers={"RegisterEvents": Refused()})
    assert reader(FakeLibrary(gpu)).read(NOW)[0].temp_c == 41


def test_a_call_that_never_returns_makes_its_gpu_wedged():
    """The thread is left alone; the reader goes on telling, and recovers when the call comes back."""
    nvml = FakeLibrary(FakeGpu("GPU-a"), FakeGpu("GPU-b"), FakeGpu("GPU-c"))
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
    r = reader(FakeLibrary(FakeGpu("GPU-a", stuck=stuck)), HASTY_S)
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
        reader(FakeLibrary(cannot_init=code)).read(NOW)
    assert caught.value.reason == reason


def test_a_reloaded_driver_is_attached_to_anew():
    nvml = FakeLibrary(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    nvml.attached = 0
    with pytest.raises(Fault) as caught:
        r.read(NOW)
    assert caught.value.reason == "GpuDriverReloaded"
    assert r.read(NOW)[0].temp_c == 41


def test_release_lets_go_of_the_driver_until_the_next_read():
    """A living client makes a GPU reset impossible."""
    nvml = FakeLibrary(FakeGpu("GPU-a"))
    r = reader(nvml)
    r.read(NOW)
    r.release()
    r.release()
    assert nvml.attached == 0
    assert r.read(NOW)[0].uuid == "GPU-a"
