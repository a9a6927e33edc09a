"""From workloads over pods to GPUs and their values over time (H1-H5, H18): pages never wait, and nothing leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from re import findall

import pytest

from reconciler.clusters.simulated.scripted_faults import GpuFails
from reconciler.telemetry.telemetry_port import GpuKey, GpuSample, Metric
from schemas.status.node_status import GpuReport
from tests.support.portal import Site
from tests.support.telemetry import FixedTelemetry


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs two workloads on two nodes, one GPU of which is hot; nlp runs something hidden."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    model = {"name": "llama", "framework": "jax", "parameters": {"batch": "64"}}
    made.file("vision/train", nodes=2, duration="6h", clusters=["east"], model=model)
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 8, made.now)
    made.running.submit("east", "nlp", "hidden-job", 8, made.now)
    made.pass_time(40)
    node = nodes_of(made, "vision/train")[0]
    fault = GpuFails(node=node, gpu=2, at=made.now - timedelta(minutes=10), xid=63, temp_c=91)
    made.running.cluster("east").inject(fault)
    made.pass_time(5)
    yield made
    made.close()


def nodes_of(site: Site, key: str) -> tuple[str, ...]:
    held = site.view.facts.requests[key].assignment
    assert held is not None
    return held.nodes


def page(site: Site, path: str, key: str = "bo-viewer", status: int = 200, part: bool = False) -> str:
    headers = {"Accept": "text/html"} | ({"HX-Request": "true"} if part else {})
    answer = site.client(key).get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.text


PLACES = (
    "/workloads",
    "/workloads/vision/train",
    "/workloads/vision/train/pods",
    "/workloads/vision/train/gpus",
    "/workloads/gpus",
    "/workloads/dashboard?workload=vision/train",
)


@pytest.mark.parametrize("path", PLACES)
def test_a_page_waits_for_no_source_and_has_its_values_without_scripts(site: Site, path: str) -> None:
    parts = site.portal.app.state.parts
    site.portal.app.state.parts = Sourceless(parts)
    try:
        first = page(site, path)
    finally:
        site.portal.app.state.parts = parts
    join = "&" if "?" in path else "?"
    (target,) = findall(r'http-equiv="refresh" content="0; url=([^"]+)"', first)
    assert "values=now" in target
    assert f'hx-get="{target}"' in first or "hx-include" in first
    later = page(site, f"{path}{join}values=now")
    assert "<table" in later
    assert "http-equiv" not in later


class Sourceless:
    """Parts without sources: asking for them is a fault."""

    def __init__(self, parts: object) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> object:
        assert name != "sources", "a source was asked"
        return getattr(self._parts, name)


def test_the_list_says_which_model_runs_and_where_each_word_comes_from(site: Site) -> None:
    """H1, H2."""
    assert "llama" in page(site, "/workloads"), "what the request says is known at once"
    text = page(site, "/workloads?values=now")
    assert "finetune" in text
    assert "from request" in text
    assert "91 °C" in text
    details = page(site, "/workloads/vision/train?values=now")
    for word in ("jax", "batch", "64", "Average use", "Hottest GPU", "Most power", "Idle"):
        assert word in details


def test_a_model_is_diagnosed_in_sentences(site: Site) -> None:
    """H18: the same as the API says."""
    told = (
        site.client("bo-viewer").get("/api/v1/workloads/vision%2Ftrain/diagnosis").json()["data"]["findings"]
    )
    text = unescape(page(site, "/workloads/vision/train?values=now"))
    assert told
    for finding in told:
        assert finding["sentence"][1:] in text


def test_the_hot_gpu_comes_first_and_is_three_clicks_away(site: Site) -> None:
    """H3, H4: AI workloads, model details, GPUs, dashboard."""
    assert 'href="/workloads/vision/train"' in page(site, "/workloads")
    details = page(site, "/workloads/vision/train")
    assert 'href="/workloads/vision/train/gpus"' in details
    assert 'href="/workloads/vision/train/pods"' in details
    gpus = page(site, "/workloads/vision/train/gpus?values=now")
    rows = findall(r'<tr id="g-([^"]+)"( class="hot")?>', gpus)
    assert len(rows) == 16
    assert [bool(hot) for _, hot in rows] == [True] + [False] * 15
    board = page(site, f"/workloads/dashboard?gpu={rows[0][0]}&workload=vision/train&values=now")
    assert f'href="/workloads/dashboard?gpu={rows[0][0]}&amp;workload=vision%2Ftrain"' in gpus
    assert "Xid 63" in board
    assert "slowed down by heat" in board
    assert "of 87" in gpus


def test_gpus_are_filtered_by_text_and_by_heat(site: Site) -> None:
    path = "/workloads/vision/train/gpus?values=now"
    assert page(site, f"{path}&hot=yes").count('<tr id="g-') == 1
    assert page(site, f"{path}&q=finetune").count('<tr id="g-') == 8
    nothing = page(site, f"{path}&q=nowhere")
    assert "0 of 16 GPUs match" in nothing
    assert page(site, "/workloads/gpus?values=now").count('<tr id="g-') == 16


def test_the_address_keeps_filters_but_not_how_values_came(site: Site) -> None:
    headers = {"Accept": "text/html", "HX-Request": "true"}
    answer = site.client("bo-viewer").get("/workloads/gpus?values=now&q=east&hot=yes", headers=headers)
    assert answer.headers["HX-Replace-Url"] == "/workloads/gpus?q=east&hot=yes"


def test_a_chart_and_the_table_beside_it_say_the_same(site: Site) -> None:
    """H5: the numbers of the table are those of the lines."""
    text = page(site, "/workloads/dashboard?workload=vision/train&since=6h&values=now")
    charts = [json.loads(unescape(found)) for found in findall(r'data-chart="([^"]+)"', text)]
    assert [chart["unit"] for chart in charts] == ["%", "°C", "W", "MiB"]
    heat = charts[1]
    assert heat["limit"] == 87
    assert len(heat["series"]) == 8, "the eight nearest to their limits"
    highest = max(value for value in heat["series"][0]["values"] if value is not None)
    assert f'<td class="num">{highest:,.0f}</td>' in text
    assert {what for _, what in heat["marks"]} == {"Xid 63", "slowed down by heat"}
    assert all(len(one["values"]) == len(heat["times"]) for one in heat["series"])
    assert None in heat["series"][0]["values"], "before the lease there is nothing, and nothing is not 0"


def test_a_range_that_is_too_long_is_refused_in_a_sentence(site: Site) -> None:
    assert "at most 7 days" in page(site, "/workloads/dashboard?since=9d&values=now", status=422)


@pytest.mark.parametrize("path", PLACES)
def test_no_name_of_another_workspace_is_on_a_page(site: Site, path: str) -> None:
    join = "&" if "?" in path else "?"
    for text in (page(site, path), page(site, f"{path}{join}values=now")):
        for word in ("nlp", "secret-model", "hidden-job", *nodes_of(site, "nlp/secret-model")):
            assert word not in text
    for hidden in ("nlp/secret-model", "nlp/secret-model/gpus"):
        page(site, f"/workloads/{hidden}?values=now", status=404)


def test_without_values_nothing_is_zero_and_the_page_says_what_is_missing(tmp_path) -> None:
    """A source that is silent: absent is a dash; health is what the agents say."""
    site = Site(tmp_path / "site")
    try:
        site.settle()
        site.file("vision/train", nodes=1, duration="6h", clusters=["east"])
        site.settle()
        site.pass_time(5)
        node = nodes_of(site, "vision/train")[0]
        report = GpuReport(uuid="GPU-0", index=0, product="H100", memory_mib=81_559, healthy=True)
        site.running.devices[("east", node)] = (report,)
        site.running.latest = FixedTelemetry().latest  # type: ignore[method-assign]
        site.running.range = FixedTelemetry().range  # type: ignore[method-assign]
        site.running.silent.add("east")
        listed = page(site, "/workloads?values=now")
        assert "Health comes from agents only; an admin connects Prometheus" in listed
        assert "cluster east does not answer" in listed
        assert '<td data-label="Use" class="num">—</td>' in listed
        gpus = page(site, "/workloads/vision/train/gpus?values=now")
        assert "Healthy" in gpus
        assert "no values" in gpus
        assert '<td data-label="Temperature" class="num">—</td>' in gpus
        assert "There is no value in this range" in page(
            site, "/workloads/dashboard?workload=vision/train&values=now"
        )
    finally:
        site.close()


def test_an_old_value_is_marked_as_stale(tmp_path: Path) -> None:
    """Older than a minute: shown, and said to be old."""
    site = Site(tmp_path / "site")
    try:
        site.settle()
        site.file("vision/train", nodes=1, duration="6h", clusters=["east"])
        site.settle()
        site.pass_time(5)
        gpu = GpuKey("east", nodes_of(site, "vision/train")[0], "GPU-0")
        for age_s, is_stale in ((90, True), (30, False)):
            sample = GpuSample(gpu, site.now - timedelta(seconds=age_s), {Metric.TEMPERATURE: 50.0})
            site.running.latest = FixedTelemetry((sample,)).latest  # type: ignore[method-assign]
            text = page(site, "/workloads/vision/train/gpus?values=now")
            assert (": stale" in text) is is_stale
            assert "50 °C" in text
    finally:
        site.close()
