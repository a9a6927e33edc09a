"""The NVML reader on real GPUs, where there are some."""

from __future__ import annotations

import ctypes
from datetime import UTC, datetime

import pytest

from agent.judge import Memory, judge
from agent.nvml import installed
from schemas.documents.cluster import Health
from schemas.errors import EgsError

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def has_driver() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has libnvidia-ml.so.1")
def test_a_machine_without_a_driver_says_what_to_do():
    with pytest.raises(EgsError) as caught:
        installed(10.0).read(NOW)
    assert caught.value.reason == "GpuLibraryMissing"
    assert "--simulated" in str(caught.value)


@pytest.mark.skipif(not has_driver(), reason="no libnvidia-ml.so.1: this machine has no GPU driver")
def test_real_gpus_are_read_and_judged():
    """G1, H14 on hardware: identity, measurements, and the agent lets go of the driver again."""
    reader = installed(30.0)
    readings = reader.read(NOW)
    assert readings, "a machine with the driver has a GPU"
    for gpu in readings:
        assert gpu.uuid.startswith("GPU-")
        assert gpu.memory_mib > 1000
        assert gpu.lost is False
        assert gpu.wedged is False
        assert gpu.temp_c is not None
        assert 0 < gpu.temp_c < 110
    _, verdict = judge(Memory(expected=len(readings)), readings, Health(), NOW)
    assert [g.gpu.uuid for g in verdict.gpus] == [r.uuid for r in readings]
    reader.release()
    assert len(reader.read(NOW)) == len(readings)
    reader.release()
