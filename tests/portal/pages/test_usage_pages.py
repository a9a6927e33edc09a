"""Usage (H17) and the ledger of promises (E9): the screen, the CSV and the API say the same; strangers see no names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from re import findall

import pytest

from tests.support.portal import Site
from tests.support.world import cluster


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision had a lease and has another; nlp has one; 2.50 USD for each GPU-hour in east."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/old", nodes=1, duration="1h", clusters=["east"])
    made.settle()
    made.pass_time(90)
    made.file("vision/train", nodes=2, duration="6h", clusters=["east"])
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(62)
    yield made
    made.close()


def page(site: Site, path: str, key: str | None = "bo-viewer", status: int = 200) -> str:
    answer = site.client(key).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


WAYS = ("month", "workspace", "request", "person")


@pytest.mark.parametrize("by", WAYS)
def test_the_csv_equals_the_screen(site: Site, by: str) -> None:
    text = page(site, f"/usage?by={by}")
    shown = findall(r'data-label="GPU-hours" class="num">([\d.,]+)</td>', text)[:-1]
    rows = list(csv.reader(io.StringIO(page(site, f"/usage.csv?by={by}"))))
    assert [row[-2] for row in rows[1:]] == [each.replace(",", "") for each in shown]
    assert rows[0][-2:] == ["GPU-hours", "Cost, USD"]


@pytest.mark.parametrize("by", WAYS)
def test_all_ways_to_look_at_it_have_the_same_sum(site: Site, by: str) -> None:
    (found,) = site.client("bo-viewer").get("/api/v1/usage").json()["data"]["items"]
    assert f'<td data-label="Cost" class="num">{found["cost"]:,.2f} USD</td><td></td>' in page(
        site, f"/usage?by={by}"
    )


@pytest.mark.parametrize("by", WAYS)
def test_usage_names_nobody_else(site: Site, by: str) -> None:
    for path in (f"/usage?by={by}", f"/usage.csv?by={by}"):
        assert "nlp" not in page(site, path)
        assert "secret-model" not in page(site, path)
    assert "nlp" in page(site, "/usage", "ada-owner")


def test_a_month_without_leases_is_empty(site: Site) -> None:
    assert "Nothing has run in 2025-01" in page(site, "/usage?month=2025-01")
    page(site, "/usage?month=now", status=422)


def test_use_by_request_is_in_the_api(site: Site) -> None:
    rows = site.client("bo-viewer").get("/api/v1/usage/requests").json()["data"]["items"]
    assert [(row["name"], row["isRunning"], row["people"]) for row in rows] == [
        ("vision/old", False, []),
        ("vision/train", True, []),
    ]
    assert (rows[0]["gpuHours"], rows[0]["cost"], rows[0]["month"]) == (8.0, 20.0, "2026-11")
    none = site.client("bo-viewer").get("/api/v1/usage/requests", params={"month": "2026-10"}).json()
    assert none["data"]["items"] == []


def test_without_a_price_there_are_hours_only(tmp_path) -> None:
    site = Site(tmp_path / "site", {"clusters/east.yaml": cluster("east", nodes=4)})
    try:
        site.settle()
        site.file("vision/old", nodes=1, duration="1h", clusters=["east"])
        site.settle()
        site.pass_time(90)
        text = page(site, "/usage")
        assert "No pool has a price" in text
        assert "USD" not in text
        assert "8.00" in text
        assert "Cost" not in page(site, "/usage.csv")
    finally:
        site.close()


def test_a_stranger_sees_counts_and_causes_of_promises_and_no_name(site: Site) -> None:
    public = page(site, "/promises", None)
    assert "2026-11" in public
    assert "3 of 3 promised starts" in public
    for word in ("nlp", "vision", "secret-model", "old"):
        assert f"/{word}" not in public
        assert f">{word}<" not in public
    assert 'class="side"' not in public


def test_a_person_sees_the_starts_of_their_workspaces(site: Site) -> None:
    text = page(site, "/promises")
    assert 'href="/requests/vision/old"' in text
    assert "secret-model" not in text
    assert "secret-model" in page(site, "/promises", "ada-owner")


def test_a_slip_has_its_cause_in_words(tmp_path) -> None:
    """A node that is lost delays a promise; the ledger counts the start under it."""
    site = Site(tmp_path / "site", {"clusters/east.yaml": cluster("east", nodes=1)})
    try:
        site.settle()
        site.file("vision/first", nodes=1, duration="1h", clusters=["east"])
        site.settle()
        site.file("nlp/later", nodes=1, duration="1h", clusters=["east"], priority=10)
        site.settle()
        site.file("vision/urgent", nodes=1, duration="2h", clusters=["east"], priority=250)
        site.settle()
        site.pass_time(400)
        text = page(site, "/promises", None)
        assert "A more urgent request came" in text
        assert "HigherRankArrived" in text
    finally:
        site.close()
