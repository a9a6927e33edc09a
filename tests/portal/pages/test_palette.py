"""The palette: what it finds for whom, and the wishes that it understands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from portal.pages.palette_words import FreeAsk, Wish, asks_for_hottest, free_ask_in, wish_in
from schemas.reading.units import parse_instant
from schemas.reading.yaml_text import dump
from tests.support.endpoints import document as endpoint
from tests.support.portal import Site
from tests.support.world import START


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload"}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    jobs = {}
    for slice_, name in (("vision", "tune"), ("nlp", "secret-tune")):
        spec = {"slice": slice_, "gpr": "train", "manifests": [settings]}
        jobs[f"slices/{slice_}/workloads/{name}.yaml"] = dump(
            {**head, "metadata": {"name": name}, "spec": spec}
        )
        jobs[f"slices/{slice_}/endpoints/{name}-chat.yaml"] = endpoint(f"{name}-chat", slice_)
    made = Site(tmp_path_factory.mktemp("site"), jobs)
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
        ("2 H100 nodes for 6h", (2, 8, 360)),
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
    found = wish_in(text, site.view.wanted.pools.values(), START)
    assert found == (None if want is None else Wish(want[0], want[1], "H100-80GB", want[2]))


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("4 h100 nodes tomorrow 9:00 for 6h", "2026-11-22T09:00:00Z"),
        ("4 H100 nodes for 6h tomorrow at 09:00", "2026-11-22T09:00:00Z"),
        ("4 nodes H100 on 2026-11-25 for 6h", "2026-11-25T00:00:00Z"),
        ("4 nodes H100 for 6h monday 07:30 UTC", "2026-11-23T07:30:00Z"),
        ("4 nodes H100 for 6h saturday", "2026-11-28T00:00:00Z"),
        ("4 nodes H100 at 18:00 for 6h", "2026-11-21T18:00:00Z"),
        ("4 nodes H100 at 7:00 for 6h", "2026-11-22T07:00:00Z"),
        ("4 nodes H100 today for 6h", None),
        ("4 nodes H100 on 2026-13-45 for 6h", None),
    ],
)
def test_a_wish_may_say_when(site: Site, text: str, begin: str | None):
    """In UTC; START is a Saturday at 08:00. A day that has begun, or that there is not, leaves it to the plan."""
    want = None if begin is None else parse_instant(begin)
    assert wish_in(text, site.view.wanted.pools.values(), START) == Wish(4, 8, "H100-80GB", 360, want)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("when are 4 nodes free", (4, "")),
        ("When are 4 H100 nodes free?", (4, "H100-80GB")),
        ("2 nodes of H100 free", (2, "H100-80GB")),
        ("when is a node free", (1, "")),
        ("when are 4 B300 nodes free", None),
        ("when are 0 nodes free", None),
        ("free", None),
    ],
)
def test_a_question_about_free_nodes_is_understood(site: Site, text: str, want: tuple[int, str] | None):
    found = free_ask_in(text, site.view.wanted.pools.values())
    assert found == (None if want is None else FreeAsk(*want))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("hottest gpu", True),
        ("the hottest GPU?", True),
        ("hot gpus", True),
        ("hottest-run", False),
        ("", False),
    ],
)
def test_a_question_about_heat_is_understood(text: str, want: bool):
    assert asks_for_hottest(text) is want


def test_questions_are_answered_with_a_way_on(site: Site):
    with site.client("bo-editor") as client:
        free = hits(client, "when are 2 nodes free")
        assert "2 nodes H100-80GB: free now" in free
        assert 'href="/requests/new?shape=H100-80GB&amp;nodes=2"' in free
        assert 'href="/calendar?need=2"' in free
        assert "9 nodes H100-80GB: never" in hits(client, "when are 9 nodes free")
        later = hits(client, "1 H100 node tomorrow 9:00 for 6h")
        assert "1 node × 8 H100-80GB for 6h in" in later
        assert "starts Nov 22, 09:" in later
        assert "notBefore=2026-11-22T09:00Z" in later
        assert "/workloads/gpus" in hits(client, "hottest gpu")


def test_gpus_become_whole_nodes(site: Site):
    """8 GPUs of nodes with 4 are 2 nodes; 3 are one node with at least 3."""
    pools = [replace(next(iter(site.view.wanted.pools.values())), gpus_per_node=4)]
    assert wish_in("8 H100 for 2h", pools, START) == Wish(2, 4, "H100-80GB", 120)
    assert wish_in("3 H100 for 2h", pools, START) == Wish(1, 3, "H100-80GB", 120)


def test_a_wish_is_quoted_and_leads_to_the_form(site: Site):
    with site.client("bo-editor") as client:
        found = hits(client, "2 H100 for 2h")
    assert "1 node × 2 H100-80GB for 2h in" in found
    assert "/requests/new?workspace=vision&amp;nodes=1&amp;gpus=2" in found


def test_a_verb_leads_to_that_part_of_a_request(site: Site):
    with site.client("bo-editor") as client:
        assert "/requests/vision/train#cancel" in hits(client, "cancel train")


def test_an_endpoint_is_found_by_those_who_may_see_it(site: Site):
    """J2."""
    assert 'href="/endpoints/vision/tune-chat"' in hits(site.client("bo-editor"), "chat")
    assert "secret" not in hits(site.client("bo-editor"), "chat")


def test_a_job_is_found_by_those_who_may_see_it(site: Site):
    """A9."""
    assert 'href="/jobs/vision/tune"' in hits(site.client("bo-editor"), "tune")
    assert "secret-tune" not in hits(site.client("bo-editor"), "tune")
    assert 'href="/jobs/nlp/secret-tune"' in hits(site.client(), "tune")


def test_a_member_finds_nothing_of_others(site: Site):
    with site.client("bo-editor") as client:
        assert "secret-plan" not in hits(client, "secret").replace('value="secret"', "")
        assert "/admin" not in hits(client, "")
    with site.client("ada-owner") as client:
        assert "nlp/secret-plan" in hits(client, "secret")
        assert "/admin/nodes/east/" in hits(client, "east")
