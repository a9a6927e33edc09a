"""The palette: what it finds for whom, and the wishes that it understands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from portal.pages.palette import Wish, wish_in
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/train", nodes=2, duration="6h")
    made.file("nlp/secret-plan", nodes=1, duration="1h")
    made.settle()
    yield made
    made.close()


def hits(client: TestClient, q: str) -> str:
    answer = client.get("/palette", params={"q": q}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("8 H100 for 2h", (1, 8, 120)),
        ("8 h100 for 2 hours?", (1, 8, 120)),
        ("2 nodes H100 6h", (2, 8, 360)),
        ("2 nodes of H100-80GB for 1d", (2, 8, 1440)),
        ("3x1 H100 for 90m", (3, 1, 90)),
        ("ask for 1 H100 for 1w", (1, 1, 10_080)),
        ("0 H100 for 2h", None),
        ("8 B300 for 2h", None),
        ("8 H100", None),
        ("train", None),
        ("", None),
    ],
)
def test_a_wish_is_understood(site: Site, text: str, want: tuple[int, int, int] | None):
    """The pools of this fleet have eight GPUs per node."""
    found = wish_in(text, site.view.wanted.pools.values())
    assert found == (None if want is None else Wish(want[0], want[1], "H100-80GB", want[2]))


def test_gpus_become_whole_nodes(site: Site):
    """8 GPUs of nodes with 4 are 2 nodes; 3 are one node with at least 3."""
    pools = [replace(next(iter(site.view.wanted.pools.values())), gpus_per_node=4)]
    assert wish_in("8 H100 for 2h", pools) == Wish(2, 4, "H100-80GB", 120)
    assert wish_in("3 H100 for 2h", pools) == Wish(1, 3, "H100-80GB", 120)


def test_a_wish_is_quoted_and_leads_to_the_form(site: Site):
    with site.client("bo-editor") as client:
        found = hits(client, "2 H100 for 2h")
    assert "1 node × 2 H100-80GB for 2h in" in found
    assert "/requests/new?workspace=vision&amp;nodes=1&amp;gpus=2" in found


def test_a_verb_leads_to_that_part_of_a_request(site: Site):
    with site.client("bo-editor") as client:
        assert "/requests/vision/train#cancel" in hits(client, "cancel train")


def test_a_member_finds_nothing_of_others(site: Site):
    with site.client("bo-editor") as client:
        assert "secret-plan" not in hits(client, "secret").replace('value="secret"', "")
        assert "/admin" not in hits(client, "")
    with site.client("ada-owner") as client:
        assert "nlp/secret-plan" in hits(client, "secret")
        assert "/admin/nodes/east/" in hits(client, "east")
