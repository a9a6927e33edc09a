"""GPUs as a map: H4."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.views.fleet import heat_map
from portal.views.fleet.heat_map import By
from reconciler.telemetry.telemetry_port import GpuKey, GpuSample, Metric
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.thresholds import Limits
from schemas.status.node_status import GpuReport

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def gpu(index: int, values: dict[Metric, float] | None = None, *, reasons: tuple[str, ...] = ()) -> Gpu:
    uuid = f"GPU-{index}"
    sample = None if values is None else GpuSample(GpuKey("east", "n1", uuid), NOW, values)
    device = GpuReport(
        uuid=uuid, index=index, product="H100", memory_mib=1, healthy=not reasons, reasons=reasons
    )
    return Gpu("east", "n1", index, uuid, "h100", "H100", device, sample, limits=Limits(temp_c=87.0))


@pytest.mark.parametrize(
    ("by", "values", "step"),
    [
        pytest.param("temperature", {Metric.TEMPERATURE: 30}, 0, id="cool"),
        pytest.param("temperature", {Metric.TEMPERATURE: 87}, 5, id="hot"),
        pytest.param("limit", {Metric.TEMPERATURE: 87}, 5, id="at its own limit"),
        pytest.param("use", {Metric.UTILISATION: 0}, 0, id="idle"),
        pytest.param("use", {}, None, id="absent is not idle"),
        pytest.param("power", None, None, id="never measured"),
    ],
)
def test_steps(by: By, values: dict[Metric, float] | None, step: int | None) -> None:
    ((cell,),) = (row.cells for row in heat_map.rows([gpu(0, values)], {}, by))
    assert cell.step == step
    assert (cell.value is None) == (step is None)


def test_cells_are_in_the_order_of_the_machine() -> None:
    (row,) = heat_map.rows([gpu(7), gpu(0), gpu(3)], {}, "limit")
    assert [cell.gpu.index for cell in row.cells] == [0, 3, 7]


def test_an_error_of_the_source_is_told_once() -> None:
    """What the agent says and what the exporter says is one fault."""
    both = gpu(1, {Metric.XID: 79.0}, reasons=("Xid79",))
    told = heat_map.faults([both, gpu(2, {Metric.XID: 0.0}), gpu(3, {Metric.XID: 31.0})])
    assert [(one.gpu.index, one.reason) for one in told] == [(1, "Xid79"), (3, "Xid31")]
