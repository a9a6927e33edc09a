"""What is told of others: B10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import pytest

from portal.identity.redaction import Redactor
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.file("nlp/secret")
    made.file("vision/mine")
    made.settle()
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
        pytest.param("see /srv/nlp/secret", "see /srv/nlp/secret", id="nor a part of a path"),
        pytest.param("label egs.nlp/secret", "label egs.nlp/secret", id="nor a label's name"),
        pytest.param("(nlp/secret)", "(another workspace's request)", id="in brackets"),
        pytest.param(
            "waits for nlp/gone.",
            "waits for another workspace's request.",
            id="one that is not there any more",
        ),
        pytest.param(
            "see slices/nlp/gprs/gone.yaml, please",
            "see another workspace's request, please",
            id="its file",
        ),
        pytest.param(
            "https://forge/x/slices/nlp/gprs/secret.yaml",
            "https://forge/x/another workspace's request",
            id="its file's address",
        ),
        pytest.param("nlp/gone.yaml", "another workspace's request", id="with the file's ending"),
        pytest.param("by nlp/gone/3", "by another workspace's request/3", id="and what stands behind it"),
        pytest.param("…因为nlp/secret", "…因为another workspace's request", id="in another script"),
        pytest.param("slices/vision/gprs/mine.yaml", "slices/vision/gprs/mine.yaml", id="their own file"),
    ],
)
def test_requests_of_others_are_somebodys(site: Site, sentence: str, seen: str) -> None:
    """B10, D15: and an admin reads it as it is."""
    assert Redactor(site.portal.caller("bo-viewer"), site.view).text(sentence) == seen
    assert Redactor(site.portal.caller("ada-owner"), site.view).text(sentence) == sentence


def redactor(site: Site, **wanted: Any) -> Redactor:
    """Of bo, in a view whose manifests are others."""
    view = site.view
    changed = replace(view, wanted=replace(view.wanted, **wanted), _of_plan={}, _worked_out={})
    return Redactor(site.portal.caller("bo-viewer"), changed)


def test_a_slice_that_is_gone_is_somebodys_still(site: Site) -> None:
    """B10: as long as there are records of its requests."""
    slices = {name: spec for name, spec in site.view.wanted.slices.items() if name != "nlp"}
    seen = redactor(site, slices=slices, filed={}).text("as nlp/secret and nlp/older were")
    assert seen == "as another workspace's request and another workspace's request were"


def test_a_cluster_may_be_called_like_a_slice(site: Site) -> None:
    """B10: its pools and nodes are no requests."""
    slices = {**site.view.wanted.slices, "east": site.view.wanted.slices["nlp"]}
    seen = redactor(site, slices=slices).text("east/h100 and east/h100-1 wait for east/train")
    assert seen == "east/h100 and east/h100-1 wait for another workspace's request"


@pytest.mark.parametrize("piece", ["a", "a-", "slices/", "slices/a", "nlp/", "a/", "-", ".", "nlp/x.", "a."])
def test_a_long_sentence_takes_no_longer_than_it_is_long(site: Site, piece: str) -> None:
    """B10: whoever writes sentences stops nobody; quadratic would be a minute."""
    seen, sentence = Redactor(site.portal.caller("bo-viewer"), site.view), piece * 200_000 + "/"
    begun_s = process_time()
    seen.text(sentence)
    assert process_time() - begun_s < 5
