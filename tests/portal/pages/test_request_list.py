"""The list of requests as a page: D15, D16, B10. What it finds, in which order, whose rows it has, and cancelling."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest

from tests.support.page_reader import HTML, page, read, send
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Of vision one runs, four wait and one is new; of nlp two wait."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/train", nodes=2, duration="6h", displayName="=Llama 70B", model={"name": "llama-70b"})
    made.settle()
    made.file("nlp/tune", nodes=3, duration="2h", priority=250)
    made.file("vision/next", nodes=4, duration="3h", gpuShape="H100-80GB")
    made.file("vision/small", nodes=1, duration="1h", priority=50)
    made.file("vision/never", nodes=9, duration="1h")
    made.file("nlp/later", nodes=1, duration="4h")
    made.settle()
    made.file("vision/fresh", nodes=1, duration="90m")
    yield made
    made.close()


def names(site: Site, query: str = "", who: str = "bo-owner") -> list[str]:
    """`slice/name` of the rows, in order."""
    found = page(site.client(who), f"/requests{query}")
    return [row[1].split()[-1] for row in found.rows]


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(
            "", ["small", "next", "fresh", "never", "train"], id="waiting ones by start, then running ones"
        ),
        pytest.param("?which=running", ["train"], id="running"),
        pytest.param("?which=Filed", ["fresh"], id="one state alone"),
        pytest.param("?shape=H100-80GB&q=VISION+small", ["small"], id="shape and all words, in any case"),
        pytest.param("?q=llama", ["train"], id="display name and model"),
        pytest.param("?sort=name", ["fresh", "never", "next", "small", "train"], id="by name"),
        pytest.param("?sort=priority", ["small", "fresh", "never", "next", "train"], id="by priority"),
        pytest.param(
            "?sort=starts&desc=true", ["next", "small", "train", "fresh", "never"], id="no start comes last"
        ),
        pytest.param("?sort=place", ["never", "next", "small", "fresh", "train"], id="no place comes last"),
        pytest.param("?sort=cost&desc=true", ["train", "small", "next", "never", "fresh"], id="by cost"),
    ],
)
def test_filters_and_order_are_in_the_address(site: Site, query: str, want: list[str]) -> None:
    """D15: the address alone says what is shown."""
    got = [name.removeprefix("vision/") for name in names(site, query)]
    assert got == want


def test_nobody_sees_a_name_of_another_workspace(site: Site) -> None:
    """B10: not in rows, not in a search, and the places say what they count."""
    found = page(site.client("bo-viewer"), "/requests?which=all")
    assert "nlp" not in found.html
    assert "Places count the requests of all workspaces" in found.text
    assert names(site, "?q=nlp") == []
    assert {name.partition("/")[0] for name in names(site, who="ada-owner")} == {"vision", "nlp"}
    assert set(names(site, "?workspace=nlp", "ada-owner")) == {"nlp/tune", "nlp/later"}


def test_a_part_for_a_script_has_no_frame(site: Site) -> None:
    answer = site.client("bo-owner").get("/requests", headers={**HTML, "HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert 'id="rows"' in answer.text


def test_the_csv_has_what_the_screen_has(site: Site) -> None:
    """The same rows in the same order, with the same states and costs."""
    client = site.client("bo-owner")
    found = page(client, "/requests?sort=name&which=all")
    answer = client.get("/requests.csv?sort=name&which=all")
    assert answer.headers["Content-Type"].startswith("text/csv")
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [line["File"] for line in lines] == [row[1].split()[-1] for row in found.rows]
    assert [line["State"] for line in lines] == [row[2].split()[0] for row in found.rows]
    assert "'=Llama 70B" in answer.text  # else a spreadsheet takes it for a formula
    assert [line["Cost"] or "—" for line in lines] == [row[8] for row in found.rows]


def test_a_search_without_a_hit_offers_everything(site: Site) -> None:
    found = page(site.client("bo-owner"), "/requests?q=nothing+like+this")
    assert found.rows == []
    assert found.links["Show all requests"] == "/requests?which=all"


@pytest.mark.parametrize("query", ["?which=nonsense", "?sort=nonsense", "?first=-1"])
def test_an_address_that_makes_no_sense_is_refused(site: Site, query: str) -> None:
    page(site.client("bo-owner"), f"/requests{query}", 422)


def test_who_may_only_look_gets_no_actions(site: Site) -> None:
    found = page(site.client("bo-viewer"), "/requests")
    assert "Actions" not in found.text
    assert "Cancel picked" not in found.text
    assert found.forms.keys() <= {"/logout", "/requests"}


# -- cancelling ------------------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.file("vision/train", nodes=2, duration="6h")
    made.settle()
    for name in ("one", "two", "three"):
        made.file(f"vision/{name}", nodes=1, duration="1h")
    made.settle()
    yield made
    made.close()


def test_several_are_cancelled_at_once_and_only_once(own: Site) -> None:
    """D16: a commit each; the same form again changes nothing."""
    client = own.client("bo-owner")
    found = page(client, "/requests?sort=name")
    picked = {"pick vision/one": "on", "pick vision/two": "on"}
    answer = send(client, found, "/requests", **picked)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/requests?sort=name&cancelled=2")
    assert "2 requests are cancelled, on main." in page(client, answer.headers["Location"]).text
    send(client, found, "/requests", **picked)
    told = [line for line in own.log() if "Cancel" in line]
    assert sorted(line.rpartition("|")[2] for line in told) == ["Cancel vision/one", "Cancel vision/two"]
    own.settle()
    assert names(own) == ["vision/three", "vision/train"]


def test_what_cannot_be_cancelled_is_named_with_its_reason(own: Site) -> None:
    client = own.client("bo-owner")
    found = page(client, "/requests")
    picked = {"pick vision/one": "on", "pick vision/train": "on", "pick nlp/other": "on"}
    answer = read(send(client, found, "/requests", **picked))
    assert answer.status == 409
    assert "1 request cancelled" in answer.text
    assert 'title="GpuAlreadyProvisioned"' in answer.html
    assert "there is no request nlp/other" in answer.text
    assert "earlyRelease: true" in (own.main("slices/vision/gprs/one.yaml") or "")


def test_one_is_cancelled_by_its_own_button(own: Site) -> None:
    client = own.client("bo-owner")
    send(client, page(client, "/requests"), "/requests", one="vision/three")
    assert next(line for line in own.log() if "Cancel" in line).endswith("Cancel vision/three")


def test_nothing_picked_says_so(own: Site) -> None:
    client = own.client("bo-owner")
    answer = read(send(client, page(client, "/requests"), "/requests"))
    assert "pick at least one request" in answer.text


def test_who_may_only_look_cancels_nothing(own: Site) -> None:
    found = page(own.client("bo-owner"), "/requests")
    answer = read(send(own.client("bo-viewer"), found, "/requests", one="vision/one"))
    assert 'title="Forbidden"' in answer.html
    assert not [line for line in own.log() if "Cancel" in line]
