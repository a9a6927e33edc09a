"""Tables of GPUs and their sums (H4, H7): what is unknown is empty, and a live table redraws itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from egs.commands import output
from egs.commands.running import top
from egs.commands.running.gpu_kinds import ALERTS, GPUS

NAMES = re.findall(
    r"\w+",
    """index gpuShape request slice utilisationPercent tempC powerW memoryUsedMib memoryMib closeness serial product
    driver migEnabled migDevices links linksUp action smClockMhz memoryTempC xid at stale idle""",
)
BARE: dict[str, Any] = {
    **dict.fromkeys(("cluster", "node", "uuid"), "x"),
    **dict.fromkeys(NAMES),
    "pods": [],
    "podsCertain": False,
    "workloads": [],
    "limits": {"tempC": None, "memoryTempC": None, "powerW": None},
    "reasons": [],
    "watched": [],
    "slowedBy": [],
    "hot": False,
}


def gpu(
    node: str = "h100-1", index: int = 0, request: str | None = "vision/train", **more: Any
) -> dict[str, Any]:
    slice_ = None if request is None else request.partition("/")[0]
    return {
        **BARE,
        "cluster": "east",
        "node": node,
        "index": index,
        "request": request,
        "slice": slice_,
        **more,
    }


def cells(row: dict[str, Any]) -> dict[str, str]:
    return {head: output.shown(cell(row)) for head, cell in (*GPUS.columns, *GPUS.wide)}


def test_what_is_not_measured_is_an_empty_cell() -> None:
    found = cells(gpu(index=None, uuid="GPU-1"))
    assert {head for head, text in found.items() if text} == {"GPU", "REQUEST", "UUID"}
    assert found["GPU"] == "east/h100-1/GPU-1"


def test_values_stand_beside_their_limits() -> None:
    limits = {"tempC": 87, "memoryTempC": 95, "powerW": 609}
    row = gpu(
        tempC=86, powerW=600.5, limits=limits, memoryUsedMib=61440, memoryMib=81920, closeness=0.989, hot=True,
        slowedBy=["DriverHeat"], stale=True, pods=["vision/a"],
    )  # fmt: skip
    found = cells(row)
    assert (found["TEMP"], found["POWER"], found["MEMORY"]) == ("86 / 87 °C", "600.5 / 609 W", "60 / 80 GiB")
    assert found["OF LIMIT"] == "99%"
    assert found["MARKS"] == "HOT, DriverHeat, stale"
    assert found["PODS"] == "? vision/a"


def test_sums_by_workload_and_slice() -> None:
    llama = [{"id": "wl-1", "kind": "Job", "name": "llama"}]
    rows = [
        gpu(
            index=0, utilisationPercent=90, tempC=70, powerW=600, closeness=0.98, idle=False, workloads=llama
        ),
        gpu(index=1, utilisationPercent=0, tempC=40, powerW=70, closeness=0.4, idle=True),
        gpu(node="h100-2", request="nlp/x", utilisationPercent=10, closeness=1.2, hot=True, idle=False),
        gpu(node="h100-3", request=None, closeness=2.0),
    ]
    by_slice = top.sums(rows, "slices")
    assert [(row["slice"], row["gpus"], row["idleGpus"], row["hotGpus"]) for row in by_slice] == [
        ("nlp", 1, 0, 1),
        ("vision", 2, 1, 0),
    ]
    assert by_slice[1]["utilisationPercent"] == 45
    assert by_slice[1]["powerW"] == 670
    works = top.sums(rows, "workloads")
    assert [(row["workload"], row["request"]) for row in works] == [
        (None, "nlp/x"),
        ("Job/llama", "vision/train"),
        (None, "vision/train"),
    ]
    assert top.sums([], "slices") == []


def test_unmeasured_gpus_have_no_sums() -> None:
    (row,) = top.sums([gpu()], "slices")
    assert (row["gpus"], row["idleGpus"], row["utilisationPercent"], row["powerW"]) == (1, None, None, None)


def test_a_live_table_is_drawn_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([[gpu(tempC=60)], [gpu(tempC=88, hot=True)]])
    drawn: list[Any] = []
    monkeypatch.setattr("rich.live.Live.update", lambda _self, table, refresh: drawn.append(table))
    top.live(lambda: list(next(looks)), GPUS.columns, iter([None, None]))
    assert len(drawn) == 2
    assert drawn[1].rows[0].style == "bold red"


def test_every_alert_has_a_name_of_its_own() -> None:
    assert ALERTS.name({**gpu(), "kind": "TooHot"}) == "TooHot/east/h100-1/0"
