"""Each API server is driven the way it can (issue: API 1.20 to the newest; discover once, choose per feature).

The documents of 1.20 and 1.36 are recordings of real servers; those of 1.25 and 1.30 are reduced to what is read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.clusters.kubernetes.api.api_features import (
    BATCH,
    Features,
    discover,
    features,
    serves_requests,
)
from tests.support.kube import eventually
from tests.support.requests import install

OLDEST = Features(
    version="v0.0.0-master+faecb196815e2",
    eviction="policy/v1beta1",
    disruption_budgets="policy/v1beta1",
    validating_policies=False,
    mutating_policies=False,
    match_conditions=False,
    ephemeral_containers=False,
    events=True,
    requests=False,
)
MIDDLE = replace(
    OLDEST,
    version="v1.25.0",
    eviction="policy/v1",
    disruption_budgets="policy/v1",
    ephemeral_containers=True,
)
NEWER = replace(MIDDLE, version="v1.30.0", validating_policies=True, match_conditions=True)
NEWEST = replace(NEWER, version="v0.0.0-master+$Format:%H$", mutating_policies=True)


def recorded(release: str) -> dict[str, dict[str, object]]:
    """Discovery documents by path."""
    documents: dict[str, dict[str, object]] = json.loads(
        (Path(__file__).parent / "discovery" / f"{release}.json").read_text(encoding="utf-8")
    )
    return documents


@pytest.mark.parametrize(
    ("release", "want"),
    [
        pytest.param("1.20", OLDEST, id="1.20 evicts by policy v1beta1 and has webhooks only"),
        pytest.param("1.25", MIDDLE, id="1.25 evicts by policy v1 and has webhooks only"),
        pytest.param(
            "1.30", NEWER, id="1.30 validates by policies, and webhooks see only what concerns them"
        ),
        pytest.param("1.36", NEWEST, id="1.36 changes pods by policies too"),
    ],
)
def test_features(release: str, want: Features) -> None:
    assert features(recorded(release)) == want


def test_a_server_that_names_no_version_for_evictions_takes_that_of_its_budgets() -> None:
    documents = recorded("1.25")
    documents["/api/v1"]["resources"] = []
    assert features(documents).eviction == "policy/v1"


def test_what_jobs_may_say_is_read_where_a_server_shows_it() -> None:
    """1.24 to 1.25 show Jobs, and nothing of failures of pods in them."""
    documents, name = recorded("1.25"), "io.k8s.api.batch.v1.JobSpec"
    for fields, want in (({"template": {}}, False), ({"template": {}, "podFailurePolicy": {}}, True)):
        documents[BATCH] = {"components": {"schemas": {name: {"properties": fields}}}}
        assert features(documents).failure_policies == want


def test_a_new_real_server_has_jobs_that_ignore_disruptions(new_kube) -> None:
    assert discover(new_kube.api).failure_policies


def test_our_custom_resource_is_seen_once_it_is_there() -> None:
    documents = recorded("1.25")
    documents["/apis"]["groups"].append({"name": "egs.dev", "versions": [{"version": "v1alpha1"}]})  # type: ignore[attr-defined]
    assert features(documents).requests


def test_a_custom_resource_is_seen_when_it_comes_and_when_it_goes(new_kube) -> None:
    """A8: a running controller hears of it."""
    assert not serves_requests(new_kube.api)
    install(new_kube)
    assert serves_requests(new_kube.api)
    assert discover(new_kube.api).requests
    new_kube.wipe()
    eventually(lambda: not serves_requests(new_kube.api), "it is gone")


def test_a_real_server_is_discovered(kube) -> None:
    """Its own word for its version differs from build to build."""
    found = discover(kube.api)
    assert found.events
    assert found.eviction == found.disruption_budgets
    assert not found.failure_policies
