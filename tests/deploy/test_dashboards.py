"""Dashboards: a real Prometheus answers every question of theirs, and Grafana finds what it needs (H4, H6, H8).

The Prometheus has what the controller's own `/metrics` said in a simulated hour, and what agents serve.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from agent.telemetry.openmetrics import ShownGpu, text_of
from reconciler.clock import ManualClock
from reconciler.deploying.generate import FILES
from reconciler.deploying.monitoring.dashboards import DASHBOARDS
from reconciler.deploying.monitoring.grafana import COLUMNS, Ask, Dashboard, Panel, Variable
from reconciler.deploying.monitoring.grafana import text_of as file_of
from reconciler.processes.metrics import Metrics
from reconciler.processes.wake import Attempt
from reconciler.telemetry.telemetry_port import Metric, PodRef
from tests.support.prometheus import prometheus, with_time
from tests.support.world import START, World, at, gpr, gpr_path

LASTS_S, EVERY_S = 3600, 30
STANDS_FOR = {"$__rate_interval": "5m", "$__range": "1h"}
PANELS = [(board, panel) for board in DASHBOARDS for panel in board.panels]
VARIABLES = [(board, one) for board in DASHBOARDS for one in board.variables]


def controller() -> Iterator[str]:
    """An hour of a fleet in which one request moves another."""
    clock, world = ManualClock(START), World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    metrics = Metrics(clock)
    metrics.expect("fleet")
    world.watchers.append(lambda cycle: metrics.attempted("fleet", Attempt(0.2, cycle)))
    world.file("b/z", nodes=2)
    for second in range(0, LASTS_S + 1, EVERY_S):
        if second == 300:
            world.file("a/urgent", nodes=2, priority=290)
        world.run(at(second / 60))
        clock.set(at(second / 60))
        page = metrics.page("text/plain")[0].decode()
        yield from with_time(page, START.timestamp() + second)


def gpu(index: int, second: int, pod: PodRef | None) -> ShownGpu:
    """One that knows every metric, and has some of every error."""
    values = dict.fromkeys(Metric, 1.0) | {
        Metric.TEMPERATURE: 60.0 + 20 * index,
        Metric.THROTTLE: 0x20 if index else 0,
        Metric.ENERGY: 600.0 * second,
    }
    return ShownGpu(f"GPU-{index}", index, "NVIDIA H100 80GB HBM3", values, () if pod is None else (pod,))


def agents() -> Iterator[str]:
    """Scraped twice over: labels honoured, and renamed, where a free GPU seems to be the exporter's own pod's."""
    for second in range(0, LASTS_S + 1, EVERY_S):
        used = gpu(0, second, PodRef("vision-train", "train"))
        yield from scraped(text_of([used], "h100-1"), second)
        page = text_of([gpu(1, second, PodRef("nlp", "chat"))], "h100-2")
        for label in ("container", "namespace", "pod"):
            page = re.sub(rf'\b{label}="([^"]*)"', rf'{label}="exporter",exported_{label}="\1"', page)
        yield from scraped(page, second)
        page = text_of(
            [gpu(2, second, PodRef("gpu-operator", "exporter-7", "nvidia-dcgm-exporter"))], "h100-2"
        )
        yield from scraped(page, second)


def scraped(page: str, second: int) -> Iterator[str]:
    yield from with_time(page.replace("{", '{cluster="east",'), START.timestamp() + second)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prometheus(tmp_path_factory.mktemp("prometheus"), [*controller(), *agents()]) as address:
        yield address


def answered(url: str, expr: str, **chosen: str) -> list[dict[str, str]]:
    """The labels of each series, and its value under the empty key."""
    for name, value in STANDS_FOR.items():
        expr = expr.replace(name, value)
    expr = re.sub(r"\$(\w+)", lambda found: chosen.get(found[1], ".*"), expr.replace('"$1"', '"<1>"'))
    question = urlencode({"query": expr.replace("<1>", "$1"), "time": START.timestamp() + LASTS_S})
    with urlopen(f"{url}/api/v1/query?{question}") as answer:
        data = json.load(answer)["data"]["result"]
    return [{**row["metric"], "": row["value"][1]} for row in data]


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=lambda one: one.title)
def test_every_question_has_an_answer_and_its_legend_its_labels(
    url: str, board: Dashboard, panel: Panel
) -> None:
    for ask in panel.asks:
        rows = answered(url, ask.expr)
        assert rows, ask.expr
        for label in re.findall(r"{{(\w+)}}", ask.legend):
            assert all(label in row for row in rows), (label, rows[0])
        assert "NaN" not in {row[""] for row in rows} or "histogram_quantile" in ask.expr


@pytest.mark.parametrize(("board", "variable"), VARIABLES, ids=lambda one: getattr(one, "name", one.title))
def test_every_choice_offers_values(url: str, board: Dashboard, variable: Variable) -> None:
    rows = answered(url, variable.series)
    assert {row[variable.read] for row in rows if variable.read in row} - {""}
    if variable.is_expr:
        text = f'{{{variable.read}="{rows[0][variable.read]}"}} 1 1'
        found = re.search(variable.regex.strip("/"), text)
        assert found is not None
        assert found[1] == rows[0][variable.read]


def test_a_choice_narrows_a_dashboard_down(url: str) -> None:
    by_title = {(board.uid, panel.title): panel.asks[0] for board, panel in PANELS}
    hot = by_title["egs-cluster", "GPUs hot"]
    assert [row[""] for row in answered(url, hot.expr, cluster="east")] == ["1"]
    assert [row[""] for row in answered(url, hot.expr, cluster="west")] == ["0"]
    heat = by_title["egs-gpu", "Temperature"]
    assert [row[""] for row in answered(url, heat.expr, gpu="GPU-1")] == ["80"]


@pytest.mark.parametrize(
    ("namespace", "gpus"),
    [
        pytest.param("vision-train", {"GPU-0"}, id="labels honoured by the scrape"),
        pytest.param("nlp", {"GPU-1"}, id="labels renamed by the scrape"),
        pytest.param(".*", {"GPU-0", "GPU-1"}, id="a free GPU is not the exporter's"),
    ],
)
def test_a_slice_has_the_gpus_that_its_pods_use(url: str, namespace: str, gpus: set[str]) -> None:
    asks = [panel.asks[0] for board, panel in PANELS if board.uid == "egs-slice" and panel.title == "Use"]
    assert {row["UUID"] for row in answered(url, asks[0].expr, namespace=namespace)} == gpus


def test_promises_kept_are_one_while_nothing_broke(url: str) -> None:
    """What another's priority moves is not the equipment's fault."""
    asks = [panel.asks[0] for _, panel in PANELS if panel.title == "Promises kept"]
    assert [row[""] for row in answered(url, asks[0].expr)] == ["1"]
    moved = next(panel.asks[0] for _, panel in PANELS if panel.title.startswith("Promises that moved"))
    slips = {row["cause"]: float(row[""]) for row in answered(url, moved.expr)}
    assert slips["HigherRankArrived"] > 0
    assert slips["NodeLost"] == 0


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_a_file_is_what_grafana_imports(board: Dashboard) -> None:
    data = json.loads(FILES.texts()[f"files/dashboards/{board.uid}.json"])
    assert data["uid"] == board.uid
    assert len({panel["id"] for panel in data["panels"]}) == len(board.panels)
    cells = [
        (x, y)
        for panel in data["panels"]
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < COLUMNS
    names = {one["name"] for one in data["templating"]["list"]}
    used = set(re.findall(r"\$(\w+)", " ".join(ask.expr for panel in board.panels for ask in panel.asks)))
    assert {name for name in used if not name.startswith("__")} <= names
    assert {panel["datasource"]["uid"] for panel in data["panels"]} == {"${datasource}"}


def test_a_panel_turns_yellow_then_red() -> None:
    board = Dashboard("u", "t", "", (), (Panel("p", (Ask("up"),), "", "stat", steps=(1, 2)),))
    steps = json.loads(file_of(board))["panels"][0]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["color"], step["value"]) for step in steps] == [("green", None), ("yellow", 1), ("red", 2)]
