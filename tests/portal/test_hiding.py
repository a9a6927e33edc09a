"""What is told of others: B10."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.hiding import Veil
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("nlp/secret")
    made.file("vision/mine")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("sentence", "seen"),
    [
        pytest.param(
            "moved because of nlp/secret.", "moved because of another workspace's request.", id="named"
        ),
        pytest.param(
            "nlp/secret holds 2 nodes", "Another workspace's request holds 2 nodes", id="at the beginning"
        ),
        pytest.param("moved by vision/mine", "moved by vision/mine", id="their own"),
        pytest.param("in east/h100 until noon", "in east/h100 until noon", id="a pool is no request"),
        pytest.param("nlp/none is not there", "nlp/none is not there", id="nor is what nobody filed"),
        pytest.param("see /srv/nlp/secret", "see /srv/nlp/secret", id="nor a part of a path"),
        pytest.param("(nlp/secret)", "(another workspace's request)", id="in brackets"),
    ],
)
def test_requests_of_others_are_somebodys(site: Site, sentence: str, seen: str) -> None:
    """B10, D15: and an admin reads it as it is."""
    assert Veil(site.portal.caller("bo-viewer"), site.view).text(sentence) == seen
    assert Veil(site.portal.caller("ada-owner"), site.view).text(sentence) == sentence
