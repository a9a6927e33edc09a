"""Policies of workspaces: the vendor's words for a slice's limits (A9, K1)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.vendor.policy_models import CEILINGS, PolicyWish, limits_of, longest, policy_of, range_of, shown
from schemas.documents.base import Person
from schemas.documents.project import ProjectSpec
from schemas.documents.scheduling import Preemption, Scheduling
from schemas.documents.slice import SliceLimits
from tests.support.portal import Site
from tests.support.profile import law

POLICIES = "/api/v1/workspace-policies"
PROJECT = ProjectSpec(admins=(Person(email="ada@example.com"),))
SHAPES = st.lists(st.sampled_from(["H100-80GB", "A100-80GB", "L40S"]), unique=True).map(tuple)
LIMITS = st.builds(
    SliceLimits,
    max_duration=st.none() | st.integers(1, 500_000).map(lambda minutes: timedelta(minutes=minutes)),
    max_priority=st.sampled_from(sorted(CEILINGS.values())),
    max_gpus=st.none() | st.integers(1, 1_000_000),
    max_memory_per_gpu=st.none() | st.integers(1, 4096),
    gpu_shapes=SHAPES,
    max_waiting=st.none() | st.integers(1, 1000),
)


@law(200)
@given(LIMITS)
def test_there_and_back_is_the_same(limits):
    policy = policy_of("vision", limits, PROJECT).model_dump(by_alias=True)
    constraints = policy["globalGPUConstraints"]
    body = {
        "priorityRange": policy["PriorityRange"],
        "maxGPRs": policy["maxGPRs"] or 0,
        "maxExitDurationPerGPR": policy["maxExitDurationPerGPR"] or "",
        "gpuShapes": constraints["gpuShapes"],
        "maxGpuPerGpr": constraints["maxGPUPerGpr"] or 0,
        "maxMemoryPerGpr": constraints["maxMemoryPerGpr"] or 0,
        "requeueOnFailure": policy["requeueOnFailure"],
        "enableAutoEviction": policy["enableAutoEviction"],
        "enforceIdleTimeOut": policy["enforceIdleTimeOut"],
    }
    assert limits_of(PolicyWish.model_validate(body), SliceLimits(), PROJECT) == limits


@law(100)
@given(LIMITS)
def test_a_change_that_says_nothing_changes_nothing(limits):
    bounded = limits.model_copy(update={"max_nodes": 4, "gpu_hours_per_month": 100})
    assert limits_of(PolicyWish(), bounded, PROJECT) == bounded


@pytest.mark.parametrize(
    ("priority", "want"),
    [(1, "low"), (100, "low"), (101, "medium"), (200, "medium"), (201, "high"), (300, "high")],
)
def test_a_ceiling_lies_in_a_range(priority, want):
    assert range_of(priority) == want


def test_a_ceiling_within_the_range_asked_for_stays():
    """150 is medium already: asking for medium does not raise it."""
    limits = SliceLimits(max_priority=150)
    assert limits_of(PolicyWish(priority_range="medium"), limits, PROJECT) == limits


@pytest.mark.parametrize(
    ("text", "days"),
    [
        pytest.param("1W", 7, id="a week"),
        pytest.param("2M", 60, id="two months of 30 days"),
        pytest.param("2w", 14, id="weeks as files have them"),
        pytest.param("0d36h0m", 1.5, id="hours"),
        pytest.param("2880m", 2, id="small m are minutes"),
    ],
)
def test_the_longest_duration_reads(text, days):
    assert longest(text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["0W", "1Y", "W", "-1W", "1W1M", "1000W", "ever"])
def test_what_is_no_longest_duration(text):
    with pytest.raises(ApiError):
        longest(text)


def test_durations_are_shown_in_the_vendors_words_where_they_fit():
    assert [shown(timedelta(days=days)) for days in (7, 30, 60, 10)] == ["1W", "1M", "2M", "10d0h0m"]
    assert shown(None) is None


@pytest.mark.parametrize(
    ("field", "value", "file"),
    [
        pytest.param("requeue_on_failure", False, "spec.requeueOnFailure", id="queueing again"),
        pytest.param(
            "enable_auto_eviction", True, "spec.scheduling.preemption of project.yaml", id="making room"
        ),
        pytest.param(
            "enforce_idle_time_out", True, "spec.scheduling.idle.maxTimeout of project.yaml", id="idle nodes"
        ),
    ],
)
def test_what_is_decided_elsewhere_is_refused_with_where(field, value, file):
    with pytest.raises(ApiError) as caught:
        limits_of(PolicyWish.model_validate({field: value}, by_name=True), SliceLimits(), PROJECT)
    assert file in str(caught.value)
    same = PolicyWish.model_validate({field: not value}, by_name=True)
    assert limits_of(same, SliceLimits(), PROJECT) == SliceLimits()


def test_what_the_project_says_is_read_as_it_is():
    project = PROJECT.model_copy(update={"scheduling": Scheduling(preemption=Preemption())})
    assert policy_of("vision", SliceLimits(), project).enable_auto_eviction


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path)
    yield found
    found.close()


def test_a_policy_changes_the_limits_in_the_file_and_nothing_else(site):
    before = site.main("slices/vision/slice.yaml").replace("gpus: 64", "gpus: 64   # until May")
    site.commit({"slices/vision/slice.yaml": before + "\n"})
    with site.client("ada-owner") as ada:
        body = {
            "PriorityRange": "medium",
            "maxGPRs": 3,
            "maxExitDurationPerGPR": "1W",
            "gpuShapes": ["H100-80GB"],
        }
        answer = ada.put(f"{POLICIES}/vision", json=body).json()
        assert answer["data"]["policyName"] == "vision"
        found = ada.get(f"{POLICIES}/vision").json()["data"]
        assert (found["PriorityRange"], found["maxGPRs"], found["maxExitDurationPerGPR"]) == (
            "medium",
            3,
            "1W",
        )
        assert site.main("slices/vision/slice.yaml").startswith(before)
        assert ada.put(f"{POLICIES}/vision", json={"maxGPRs": 0}).status_code == 200
        assert ada.get(f"{POLICIES}/vision").json()["data"]["maxGPRs"] is None
        assert len(ada.get(POLICIES).json()["data"]["items"]) == 2
        wrong = ada.put(f"{POLICIES}/vision", json={"gpuShapes": ["no shape"]})
        assert (wrong.status_code, wrong.json()["message"][:10]) == (422, "gpuShapes:")
    with site.client("olga-owner") as olga:
        assert olga.put(f"{POLICIES}/vision", json={"maxGPRs": 9}).status_code == 403
    with site.client("cy-editor") as cy:
        assert cy.get(f"{POLICIES}/vision").status_code == 404
        assert [each["workspaceName"] for each in cy.get(POLICIES).json()["data"]["items"]] == ["nlp"]
