"""What runs, through the SDK (A7, H16): GPUs, alerts, workloads, values, diagnoses, for `egs` and for `egs.aio`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from egs import exceptions
from egs.data.records import Items
from egs.data.running import Gpu
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/train", nodes=1, duration="4h", clusters=["east"], model={"name": "llama"})
    made.file("nlp/other", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 6, made.now)
    made.pass_time(40)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as address:
        yield address


@pytest.fixture(params=FACES)
def do(request: pytest.FixtureRequest, url: str) -> Any:
    call = FACES[request.param]
    session = call("authenticate", url, KEYS["bo-viewer"])
    return lambda name, *args, **kwargs: call(name, *args, authenticated_session=session, **kwargs)


def test_gpus_alerts_and_pods(do: Any) -> None:
    gpus = do("gpus", "vision")
    assert len(gpus) == 8
    assert {gpu.request for gpu in gpus} == {"vision/train"}
    assert [gpu.idle for gpu in gpus].count(True) == 2
    assert [gpu.closeness for gpu in gpus] == sorted((gpu.closeness for gpu in gpus), reverse=True)
    assert len(do("gpus", text="finetune")) == 6
    assert {alert.kind for alert in do("alerts")} == {"IdleGpu"}
    (load,) = do("workloads")
    assert load.summary["idleGpus"] == 2
    (pod,) = do("workload_pods", load.runs[0]["id"])
    assert (pod.name, pod.num_gpus, len(pod.gpus)) == ("finetune", 6, 6)


def test_a_workload_its_values_and_its_diagnosis(do: Any) -> None:
    one = do("workload", "vision/train")
    assert one["summary"]["idleGpuSeconds"] > 0
    values = do("gpu_values", "vision/train", metrics=["power_w"], since="30m")
    rows = list(values.rows())
    assert {row["metric"] for row in rows} == {"power_w"}
    assert len({row["uuid"] for row in rows}) == 8
    found = do("diagnose", "vision/train")
    assert found.findings[0].cause == "PartlyUsed"
    assert "8 GPUs are allocated, 6 work" in str(found)


def test_free_nodes_by_hour(do: Any) -> None:
    """G6: of the four nodes of east two are taken; west has two more."""
    rows = do("free_nodes", "H100-80GB", hours=2)
    assert [(row.gpu_shape, row.nodes, row.free) for row in rows] == [("H100-80GB", 6, 4)] * 2
    assert rows[0].likely_free is None, "too few requests have ended"


def test_what_others_have_is_not_there(do: Any) -> None:
    with pytest.raises(exceptions.EgsApplicationException, match="there is no workload"):
        do("diagnose", "nlp/other")


def test_rows_become_columns_without_pandas(do: Any) -> None:
    columns = do("gpus").to_dict()
    assert {len(column) for column in columns.values()} == {8}
    assert set(columns["limits.tempC"]) == {87}
    assert columns["pods"][0] in ((), [], ["vision/finetune"])
    assert Items().to_dict() == {}
    assert Items([Gpu(uuid="a")]).to_dict()["uuid"] == ["a"]
