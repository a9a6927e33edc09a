"""The inventory (G5): what a workspace may use, when and at which price; nodes without names of others."""

from __future__ import annotations

from collections.abc import Iterator
from re import findall

import pytest

from schemas.status.node_status import GpuReport
from tests.support.portal import Site
from tests.support.world import slice_


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision has two of east's four nodes, nlp one. `none` may use no GPU that there is."""
    limits = {"maxMemoryPerGpu": 10}
    files = {"slices/none/slice.yaml": slice_("none", members=[{"email": "cy@example.com"}], limits=limits)}
    made = Site(tmp_path_factory.mktemp("site"), files)
    made.settle()
    made.file("vision/train", nodes=2, duration="6h", clusters=["east"])
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    report = GpuReport(uuid="GPU-0", index=0, product="NVIDIA H100 HBM3", memory_mib=81_559, healthy=False)
    made.running.devices[("east", "h100-4")] = (report,)
    yield made
    made.close()


def page(site: Site, path: str, key: str = "bo-viewer", status: int = 200) -> str:
    answer = site.client(key).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


def test_shapes_have_free_nodes_next_start_and_price(site: Site) -> None:
    text = page(site, "/inventory")
    ask = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h"}
    quotes = site.client("bo-viewer").post("/api/v1/gpr/waittime", json=ask).json()["data"]["items"]
    assert len(quotes) == 2
    for one in quotes:
        assert one["clusterName"] in text
        assert f'<time datetime="{one["estimatedStartTime"]}"' in text or one["estimatedWaitSeconds"] == 0
    assert "2.50 USD" in text
    assert "shape=H100-80GB" in text


def test_free_nodes_are_told_by_hour_as_the_api_tells_them(site: Site) -> None:
    rows = site.client("bo-viewer").get("/api/v1/tables/capacity").json()["data"]["items"]
    text = page(site, "/inventory")
    cells = [int(found) for found in findall(r'<td class="num f\d">(\d+)</td>', text)]
    assert cells[: len(rows)] == [row["free"] for row in rows]
    assert len(rows) == 24


def test_nodes_of_others_are_taken_and_no_more(site: Site) -> None:
    for path in (
        "/inventory",
        "/inventory?values=now",
        "/inventory/east/h100-1",
        "/inventory/east/h100-3?values=now",
    ):
        text = page(site, path)
        assert "nlp" not in text
        assert "secret-model" not in text
    assert "another workspace" in page(site, "/inventory").replace("&#39;", "'")
    page(site, "/inventory/north/x", status=404)


def test_devices_come_after_the_page(site: Site) -> None:
    assert "H100 HBM3" not in page(site, "/inventory")
    assert "unhealthy: 0" in page(site, "/inventory?values=now")
    assert "Unhealthy" in page(site, "/inventory/east/h100-4?values=now")
    assert "no agent has reported them" in page(site, "/inventory/east/h100-1?values=now")


def test_nodes_are_filtered(site: Site) -> None:
    assert page(site, "/inventory?q=h100-4").count('href="/inventory/') == 1
    assert "No node matches" in page(site, "/inventory?state=Lost")


def test_a_workspace_that_may_use_nothing_is_told_why(site: Site) -> None:
    text = page(site, "/inventory?workspace=none", "cy-editor")
    assert "No node is allowed for none" in text
    assert "Its limits" in text


def test_a_person_of_no_workspace_is_sent_to_workspaces(site: Site) -> None:
    assert "You are in no workspace" in page(site, "/inventory", "eve-editor")
