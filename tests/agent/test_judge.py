"""When a GPU counts as unfit, for how long, and what survives a restart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.judge import Memory, after_reboot, judge, remembered, verdict_of
from agent.port import GpuReading, XidEvent
from agent.report import Identity, report_of, sentence
from schemas.documents.cluster import Health
from schemas.status.gpu_faults import FAULT_KINDS, NODE_FAULT_KINDS, GpuAction, came_back, fault_kind
from schemas.status.xids import FATAL, RECOVERY_ACTIONS, WATCHED, XIDS, XidClass, class_of

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
TICK = timedelta(seconds=10)
HEALTH = Health(readings_to_fail=3, readings_to_clear=2)
WHO = Identity("east", "h100-1", "h100-1", "w")


def gpu(index: int = 0, **said) -> GpuReading:
    """A GPU that answers everything and is well, but for what is said."""
    well = {"temp_c": 40, "ecc_uncorrectable": 0, "remap_failure": False, "recovery_action": 0}
    return GpuReading(f"GPU-{index}", index, "H100-80GB", 81920, **(well | said))


def mute(**said) -> GpuReading:
    """A GPU whose driver supports none of the questions."""
    return GpuReading("GPU-0", 0, "H100-80GB", 81920, **said)


def xid(number: int) -> tuple[XidEvent, ...]:
    return (XidEvent(number, NOW),)


def run(
    *readings: GpuReading | tuple[GpuReading, ...], memory: Memory | None = None, health: Health = HEALTH
):
    """Judge one reading after the other, ten seconds apart; memory and verdict at the end."""
    memory = memory or Memory()
    verdict = verdict_of(memory, health)
    for i, reading in enumerate(readings):
        gpus = reading if isinstance(reading, tuple) else (reading,)
        memory, verdict = judge(memory, gpus, health, NOW + i * TICK)
    return memory, verdict


def reasons(verdict) -> tuple[str, ...]:
    return tuple(r for g in verdict.gpus for r in g.reasons) + verdict.node_reasons


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        pytest.param(gpu(xids=xid(79)), "Xid79", id="fell off the bus"),
        pytest.param(gpu(xids=xid(48)), "Xid48", id="a double bit error"),
        pytest.param(gpu(xids=xid(119)), "Xid119", id="its own processor hangs"),
        pytest.param(gpu(recovery_action=1), "RecoveryAction1", id="the driver asks for a reset"),
        pytest.param(gpu(recovery_action=42), "RecoveryAction42", id="the driver asks for something new"),
        pytest.param(gpu(remap_failure=True), "RemapFailure", id="no spare row is left"),
        pytest.param(gpu(sram_threshold_exceeded=True), "SramThreshold", id="the vendor's own limit"),
    ],
)
def test_hard_faults_hold_at_once(reading, reason):
    """H14: a GPU that breaks is taken out now, not after the next reading."""
    _, verdict = run(reading)
    assert (verdict.healthy, verdict.reason, reasons(verdict)) == (False, reason, (reason,))


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(gpu(xids=xid(13)), id="an exception in a kernel"),
        pytest.param(gpu(xids=xid(31)), id="a page fault of a job"),
        pytest.param(gpu(xids=xid(94)), id="a memory error that the job alone had"),
        pytest.param(gpu(xids=xid(63)), id="a row was remapped"),
        pytest.param(gpu(xids=xid(45)), id="a channel ended after another error"),
        pytest.param(gpu(xids=xid(173)), id="a number in no catalogue"),
        pytest.param(gpu(xids=xid(999)), id="what NVML says when it does not know"),
        pytest.param(gpu(remap_pending=True), id="a reset would be good some day"),
        pytest.param(mute(), id="a GPU that supports no question"),
        pytest.param(mute(lost=None, wedged=None), id="a GPU that was not asked in time"),
    ],
)
def test_what_is_no_fault_of_the_gpu_never_counts(reading):
    """H14: nine public tools take nodes out for some of these."""
    memory, verdict = run(*[reading] * 20)
    assert verdict.healthy
    assert memory.faults == ()


@pytest.mark.parametrize(
    ("temperatures", "hot"),
    [
        pytest.param([95, 95], False, id="two hot readings are not three"),
        pytest.param([95, 95, 95], True, id="three in a row are"),
        pytest.param([95, 95, 85, 95, 95], False, id="one that is not hot begins the row anew"),
        pytest.param([95, 95, None, 95], True, id="one that was not answered does not"),
        pytest.param([87, 87, 87], True, id="the threshold itself is too hot"),
        pytest.param([95, 95, 95, 80], True, id="one cool reading is not two"),
        pytest.param([95, 95, 95, 80, 80], False, id="two in a row are"),
        pytest.param([95, 95, 95, 81, 81, 81], True, id="less hot is not cool"),
        pytest.param([95, 95, 95, 80, 81, 80], True, id="one less hot begins the cool row anew"),
    ],
)
def test_heat_needs_patience_both_ways(temperatures, hot):
    _, verdict = run(*[gpu(temp_c=t) for t in temperatures])
    assert reasons(verdict) == (("TooHot",) if hot else ())


@pytest.mark.parametrize(
    ("later", "over"),
    [
        pytest.param([gpu()], False, id="one good reading is not enough"),
        pytest.param([gpu(), gpu()], True, id="the driver asks for nothing any more"),
        pytest.param([gpu(recovery_action=1)] * 20, False, id="the driver asks for a reset"),
        pytest.param([mute(temp_c=40)] * 20, False, id="the driver cannot say"),
        pytest.param([gpu(), gpu(xids=xid(95)), gpu()], False, id="it came again"),
    ],
)
def test_a_fatal_xid_is_over_when_the_driver_says_so(later, over):
    """The driver's own verdict goes before every list of numbers."""
    _, verdict = run(gpu(xids=xid(95)), *later)
    assert ("Xid95" not in reasons(verdict)) is over


def test_the_worst_reason_speaks_for_the_node():
    _, verdict = run((gpu(0, remap_failure=True, xids=xid(48)), gpu(1, xids=xid(79))))
    assert verdict.reason == "RemapFailure"
    assert [g.reasons for g in verdict.gpus] == [("RemapFailure", "Xid48"), ("Xid79",)]
    assert verdict.action is GpuAction.REPLACE


def test_a_gpu_that_does_not_answer_is_not_found_again_by_that():
    silent = mute(lost=None, wedged=True)
    _, verdict = run(gpu(xids=xid(79), recovery_action=None), *[silent] * 20)
    assert reasons(verdict) == ("GpuWedged", "Xid79")


def test_a_gpu_that_was_there_is_missed_when_a_reload_would_be_over():
    """A driver that reloads shows fewer GPUs for a moment."""
    both, one = (gpu(0), gpu(1)), (gpu(0),)
    assert run(both, *[one] * 10)[1].healthy
    assert reasons(run(both, *[one] * 12)[1]) == ("GpuMissing",)
    assert run(both, *[one] * 12, both, both)[1].healthy


def test_a_gpu_is_the_same_whatever_else_about_it_changes():
    """F12: index and memory change with a reload or a mode; the card is known by its uuid."""
    _, verdict = run(*[gpu(0)] * 3, *[replace(gpu(0), index=1, memory_mib=80000)] * 20)
    assert verdict.healthy
    assert [g.gpu.index for g in verdict.gpus] == [1]


def test_fewer_gpus_than_the_manifest_promises_are_a_fault():
    expecting = Memory(expected=2)
    assert run(*[gpu(0)] * 10, memory=expecting)[1].healthy
    assert reasons(run(*[gpu(0)] * 12, memory=expecting)[1]) == ("GpuCountLow",)
    assert reasons(run(*[()] * 12, memory=expecting)[1]) == ("GpuCountLow",)
    assert run((gpu(0), gpu(1)), memory=expecting)[1].healthy


def test_faults_are_counted_when_they_begin():
    """H14, the trend: one fault however long it lasts and however many GPUs it strikes at once."""
    strike = (gpu(0, remap_failure=True), gpu(1, remap_failure=True))
    well = (gpu(0), gpu(1))
    memory, _ = run(strike, strike, well, well, strike)
    assert memory.faults == (NOW, NOW + 4 * TICK)


def test_a_node_that_fails_again_and_again_is_told_apart():
    """H14: the reconciler quarantines on it; the node itself is well again."""
    health = Health(readings_to_fail=1, readings_to_clear=1, faults_to_quarantine=3)
    memory, verdict = run(*[gpu(remap_failure=True), gpu()] * 3, health=health)
    assert (verdict.healthy, verdict.fault_trend, len(verdict.faults)) == (True, True, 3)
    _, verdict = judge(memory, (gpu(),), health, NOW + timedelta(days=1))
    assert (verdict.fault_trend, len(verdict.faults)) == (False, 2)


def test_a_reboot_ends_what_no_reading_could_end():
    memory, _ = run((mute(xids=xid(79)), gpu(1)), *[(mute(),)] * 12)
    after = after_reboot(memory, NOW)
    assert {r for g in verdict_of(memory, HEALTH).gpus for r in g.reasons} == {"Xid79", "GpuMissing"}
    assert verdict_of(after, HEALTH).healthy
    assert after.faults == memory.faults
    (gone,) = after.gpus["GPU-0"].past
    assert (gone.reason, gone.ended) == ("Xid79", NOW)


def test_ended_faults_are_remembered_but_not_for_ever():
    """H14: the last ones of each GPU stand in its report."""
    _, verdict = run(*[gpu(recovery_action=1), gpu(), gpu()] * 20)
    past = verdict.gpus[0].past
    assert {p.reason for p in past} == {"RecoveryAction1"}
    assert len(past) == 8
    assert past[-1].ended == NOW + 59 * TICK


# --- laws ---

READINGS = st.builds(
    gpu,
    st.integers(0, 2),
    temp_c=st.none() | st.integers(20, 110),
    memory_temp_c=st.none() | st.integers(20, 110),
    throttle=st.none() | st.integers(0, 1023),
    sm_clock_mhz=st.none() | st.integers(200, 2000),
    utilisation_percent=st.none() | st.integers(0, 100),
    pcie_width=st.none() | st.sampled_from([4, 8, 16]),
    pcie_replays=st.none() | st.integers(0, 10_000),
    nvlinks=st.none() | st.lists(st.booleans(), max_size=4).map(tuple),
    nvlink_crc_errors=st.none() | st.integers(0, 10**6),
    fabric_state=st.none() | st.integers(0, 3),
    mig_enabled=st.none() | st.booleans(),
    remap_pending=st.none() | st.booleans(),
    remapped_uncorrectable=st.none() | st.integers(0, 600),
    lost=st.none() | st.booleans(),
    wedged=st.none() | st.booleans(),
    ecc_uncorrectable=st.none() | st.integers(0, 2),
    remap_failure=st.none() | st.booleans(),
    recovery_action=st.none() | st.integers(0, 9),
    xids=st.integers(1, 200).map(xid) | st.just(()),
)
ROUNDS = st.lists(st.lists(READINGS, max_size=3, unique_by=lambda r: r.index).map(tuple), max_size=12)


@given(ROUNDS)
def test_a_report_read_back_says_what_it_said(rounds):
    """A restart forgets counts of readings, never a fault that holds."""
    _, verdict = run(*rounds)
    again = verdict_of(remembered(report_of(verdict, WHO, NOW)), HEALTH)
    assert again.gpus == verdict.gpus
    assert again.faults == verdict.faults
    assert again.healthy == verdict.healthy or verdict.node_reasons


@given(ROUNDS)
def test_every_reason_is_known_and_has_a_sentence(rounds):
    _, verdict = run(*rounds, memory=Memory(expected=2))
    for reason in reasons(verdict):
        assert sentence(reason) != reason
    assert verdict.healthy == (verdict.reason is None)


@given(ROUNDS)
def test_a_node_that_only_reads_well_is_well_in_the_end(rounds):
    """Nothing holds for ever once every GPU answers, has all its links and lanes, and the driver asks for nothing."""
    memory, _ = run(*rounds)
    well = tuple(best(g.gpu.index) for g in memory.gpus.values())
    after_storm = 70 + HEALTH.readings_to_clear  # replays count for ten minutes
    _, verdict = run(*[well] * after_storm, memory=memory)
    assert verdict.healthy
    assert all(reason.startswith("Xid") for g in verdict.gpus for reason in g.watched)  # shown for an hour


def best(index: int) -> GpuReading:
    """A GPU that answers every question, and well."""
    return gpu(
        index,
        memory_temp_c=40, throttle=0, fabric_state=0, mig_enabled=False, nvlinks=(True,) * 4, nvlink_crc_errors=0,
        pcie_width=16, pcie_replays=0, remap_pending=False, remapped_uncorrectable=0, utilisation_percent=0,
    )  # fmt: skip


@given(ROUNDS)
def test_in_maintenance_no_fault_begins(rounds):
    memory = Memory(expected=3)
    for i, readings in enumerate(rounds):
        memory, verdict = judge(memory, readings, HEALTH, NOW + i * 10 * TICK, calm=True)
        assert verdict.healthy
    assert memory.faults == ()


@given(st.lists(st.integers(20, 110), max_size=10))
def test_heat_never_counts_before_its_row_is_full(temperatures):
    _, verdict = run(*[gpu(temp_c=t) for t in temperatures])
    hottest_row = max((sum(1 for _ in row) for row in _rows(temperatures)), default=0)
    if hottest_row < HEALTH.readings_to_fail:
        assert verdict.healthy


def _rows(temperatures):
    row: list[int] = []
    for t in [*temperatures, 0]:
        if t >= HEALTH.max_temperature:
            row.append(t)
        else:
            yield row
            row = []


# --- the tables ---


def test_no_xid_is_in_two_classes():
    numbers = [n for xids in XIDS.values() for n in xids]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("number", "want"),
    [(31, XidClass.APPLICATION), (63, XidClass.INFORMATIONAL), (79, XidClass.SERVICE), (95, XidClass.RESET),
     (74, XidClass.DEPENDS), (176, XidClass.UNKNOWN)],
)  # fmt: skip
def test_the_class_of_an_xid(number, want):
    assert class_of(number) is want


def test_only_what_a_machine_needs_mended_is_fatal():
    assert not FATAL & (XIDS[XidClass.APPLICATION] | XIDS[XidClass.INFORMATIONAL] | XIDS[XidClass.DEPENDS])
    assert not FATAL & WATCHED
    assert 0 not in RECOVERY_ACTIONS


def test_every_kind_of_fault_is_one_row():
    kinds = [*FAULT_KINDS, *NODE_FAULT_KINDS]
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert all(fault_kind(kind.name) is kind for kind in kinds)
    assert fault_kind("Xid13") is not None
    assert fault_kind("OfALaterRelease") is None


@pytest.mark.parametrize(
    ("reasons", "action", "want"),
    [
        (("Xid95",), GpuAction.REPLACE, True),
        (("Xid95",), GpuAction.RESET, False),
        (("RemapFailure", "Xid95"), GpuAction.REPLACE, False),
        ((), None, False),
    ],
)
def test_a_fault_came_back_if_only_that_asks_for_a_new_card(reasons, action, want):
    assert came_back(reasons, action) is want


def test_what_an_error_asks_for():
    wanted = {
        "Xid95": "reset",
        "Xid79": "replace",
        "Xid151": "reboot",
        "Xid94": "watch",
        "RecoveryAction2": "reboot",
    }
    assert {reason: fault_kind(reason).action for reason in wanted} == wanted
