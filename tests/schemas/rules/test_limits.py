"""What quota and limits mean for one request, of a slice and of the project for every slice (C4, C5, E5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.base import Person
from schemas.documents.gpr import RequestSpec
from schemas.documents.pool import Pool
from schemas.documents.project import ProjectLimits, ProjectSpec
from schemas.documents.slice import LimitsWhere, Quota, QuotaWhere, SliceLimits, SliceSpec
from schemas.rules.fit import approval_needs
from schemas.rules.limits import NO_SHAPE, broken, broken_there, hour_bounds, in_project, over_quota
from tests.schemas.build import GONE, SLICE, TRAIN, check
from tests.support.profile import law

HOUR = timedelta(hours=1)
NODE = Pool(name="h100", gpu_shape="H100-80GB", gpus_per_node=8, memory_per_gpu=80, nodes=9)
SMALL = Pool(name="a100", gpu_shape="A100-40GB", gpus_per_node=4, memory_per_gpu=40, nodes=9)
ADMINS = (Person(email="ada@example.com"),)


def spec(**given: Any) -> RequestSpec:
    return RequestSpec(slice="vision", **{"nodes": 2, "duration": HOUR, **given})


def slice_(limits: SliceLimits | None = None, quota: Quota | None = None) -> SliceSpec:
    return SliceSpec(
        members=(Person(email="bo@example.com"),),
        clusters=("east", "west"),
        namespaces=("train",),
        limits=limits or SliceLimits(),
        quota=quota,
    )


CASES = [
    pytest.param(
        {TRAIN: {"duration": "366d"}, SLICE: {"limits.maxDuration": None}},
        "DurationTooLong",
        TRAIN,
        ("spec", "duration"),
        id="longer than a year where nobody says how long",
    ),
    pytest.param(
        {SLICE: {"limits.maxMemoryPerGpu": 79}, TRAIN: {"memoryPerGpu": 80}},
        "TooMuchMemory",
        TRAIN,
        ("spec", "memoryPerGpu"),
        id="more memory than the slice allows",
    ),
    pytest.param(
        {SLICE: {"limits.maxGpus": 15}},
        "TooManyNodes",
        TRAIN,
        ("spec", "nodes"),
        id="more GPUs than the slice allows, counted as whole nodes",
    ),
    pytest.param(
        {SLICE: {"limits.gpuHoursPerMonth": 11}},
        "TooManyGpuHours",
        TRAIN,
        ("spec",),
        id="one request that takes more hours than a month has",
    ),
    pytest.param(
        {SLICE: {"limits.where": [{"cluster": "east", "maxDuration": "5h"}]}},
        "DurationTooLong",
        TRAIN,
        ("spec", "duration"),
        id="longer than the slice allows in its only cluster",
    ),
    pytest.param(
        {"project.yaml": {"limits.everySlice": {"maxPriority": 100}}, "slices/nlp/gprs/tune.yaml": GONE},
        "PriorityTooHigh",
        TRAIN,
        ("spec", "priority"),
        id="more urgent than the project allows every slice",
    ),
    pytest.param(
        {"project.yaml": {"quota": {"where": [{"gpuShape": "H100-80GB", "nodes": 1}]}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="more nodes of a shape than the project's quota",
    ),
    pytest.param(
        {"project.yaml": {"limits.everySlice": {"where": [{"cluster": "oost", "maxNodes": 1}]}}},
        "UnknownCluster",
        "project.yaml",
        ("spec", "limits", "everySlice", "where", 0, "cluster"),
        id="a bound in a cluster that is not there",
    ),
    pytest.param(
        {
            "project.yaml": {"limits.everySlice": {"gpuShapes": ["A100-80GB"]}},
            SLICE: {"limits.gpuShapes": ["H100-80GB"]},
        },
        "ShapeNotAllowed",
        SLICE,
        ("spec", "limits", "gpuShapes"),
        id="a slice of whose shapes the project allows none",
    ),
]


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_bound_that_is_broken_is_found_where_it_is_broken(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    found = [problem for problem in check(changes).problems if problem.file == file]
    assert {problem.rule for problem in found} == {rule}
    assert all(problem.message and problem.fix for problem in found)


OF_REQUESTS = [case for case in CASES if TRAIN in case.values]


@pytest.mark.parametrize(("changes", "rule", "file", "path"), OF_REQUESTS)
def test_a_request_that_is_to_end_breaks_no_bound(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    ending = {**changes, TRAIN: {**changes.get(TRAIN, {}), "earlyRelease": True}}
    assert [problem for problem in check(ending).problems if problem.file == TRAIN] == []


@pytest.mark.parametrize(
    ("limits", "asked", "cluster", "node", "want"),
    [
        pytest.param(SliceLimits(max_gpus=16), spec(), "east", NODE, [], id="as many GPUs as may be"),
        pytest.param(
            SliceLimits(max_gpus=15),
            spec(),
            "east",
            NODE,
            ["nodes is 2 (16 GPUs) but the slice allows at most 15 GPUs"],
            id="whole nodes: all their GPUs count",
        ),
        pytest.param(
            SliceLimits(max_gpus=15), spec(), "west", SMALL, [], id="of smaller nodes it may be two"
        ),
        pytest.param(
            SliceLimits(max_memory_per_gpu=40),
            spec(),
            "east",
            NODE,
            ["memoryPerGpu is 80 but the slice allows at most 40 GB"],
            id="nodes with more memory are not for it",
        ),
        pytest.param(
            SliceLimits(where=(LimitsWhere(cluster="east", max_nodes=1),)),
            spec(),
            "east",
            NODE,
            ["nodes is 2 but the slice allows at most 1 in east"],
            id="a bound of this cluster",
        ),
        pytest.param(
            SliceLimits(where=(LimitsWhere(cluster="east", max_nodes=1),)),
            spec(),
            "west",
            NODE,
            [],
            id="a bound of another cluster",
        ),
        pytest.param(
            SliceLimits(where=(LimitsWhere(gpu_shape="H100-80GB", max_duration=HOUR / 2, max_priority=100),)),
            spec(),
            "west",
            NODE,
            [
                "duration is 0d1h0m but the slice allows at most 0d0h30m of H100-80GB",
                "priority is 101 but the slice allows at most 100 of H100-80GB",
            ],
            id="bounds of a shape",
        ),
        pytest.param(
            SliceLimits(where=(LimitsWhere(cluster="east", gpu_shape="A100-40GB", max_nodes=0),)),
            spec(),
            "east",
            NODE,
            [],
            id="a bound of both is none of one alone",
        ),
        pytest.param(
            SliceLimits(gpu_shapes=("A100-40GB",)),
            spec(),
            "east",
            NODE,
            ["gpuShape is H100-80GB but the slice allows A100-40GB"],
            id="a shape that is not among its own",
        ),
    ],
)
def test_what_keeps_a_request_from_the_nodes_of_a_pool(
    limits: SliceLimits, asked: RequestSpec, cluster: str, node: Pool, want: list[str]
) -> None:
    assert [violation.message for violation in broken_there(asked, limits, (cluster, node))] == want


@pytest.mark.parametrize(
    ("quota", "cluster", "want"),
    [
        pytest.param(Quota(gpus=16), "east", None, id="within quota"),
        pytest.param(
            Quota(nodes=1),
            "east",
            "asks for 2 nodes but its slice may hold 1 per request without approval",
            id="more nodes",
        ),
        pytest.param(
            Quota(gpus=64, where=(QuotaWhere(cluster="east", gpus=8),)),
            "east",
            "asks for 16 GPUs but its slice may hold 8 in east per request without approval",
            id="less of it in one cluster",
        ),
        pytest.param(
            Quota(gpus=64, where=(QuotaWhere(cluster="east", gpus=8),)), "west", None, id="and not in others"
        ),
    ],
)
def test_quota(quota: Quota, cluster: str, want: str | None) -> None:
    assert over_quota(spec(), slice_(quota=quota), (cluster, NODE)) == want


def test_an_admin_is_asked_only_where_no_pool_does_without() -> None:
    """E5, C4: the pool that needs the least speaks for the request."""
    project = ProjectSpec(admins=ADMINS)
    bounded = slice_(quota=Quota(where=(QuotaWhere(cluster="east", gpus=8),)))
    assert approval_needs(spec(), bounded, project, [("east", NODE), ("west", NODE)]) == ()
    (need,) = approval_needs(spec(), bounded, project, [("east", NODE)])
    assert need.reason == "QuotaExceeded"


def test_the_stricter_of_slice_and_project_counts() -> None:
    every = SliceLimits(max_nodes=4, max_priority=200, gpu_shapes=("A", "B"), gpu_hours_per_month=10)
    project = ProjectSpec(
        admins=ADMINS, limits=ProjectLimits(every_slice=every), quota=Quota(gpus=8, nodes=2)
    )
    own = SliceLimits(max_nodes=8, max_priority=100, gpu_shapes=("B", "C"))
    found = in_project(slice_(own, Quota(gpus=16)), project)
    assert found.limits == SliceLimits(
        max_nodes=4, max_priority=100, gpu_shapes=("B",), gpu_hours_per_month=10
    )
    assert found.quota == Quota(gpus=8, nodes=2)
    assert in_project(slice_(SliceLimits(gpu_shapes=("C",))), project).limits.gpu_shapes == NO_SHAPE


def test_a_project_without_bounds_leaves_a_slice_as_it_is() -> None:
    alone = slice_(SliceLimits(max_nodes=1))
    assert in_project(alone, ProjectSpec(admins=ADMINS)) is alone


def test_hours_of_a_month_are_bounded_hard_before_by_quota_and_whole_before_parts() -> None:
    where = (LimitsWhere(cluster="east", gpu_hours_per_month=5), LimitsWhere(cluster="west", max_nodes=1))
    limits = SliceLimits(gpu_hours_per_month=50, where=where)
    found = hour_bounds(slice_(limits, Quota(gpu_hours_per_month=20)))
    assert [(bound.gpu_hours, bound.is_hard, bound.where) for bound in found] == [
        (50, True, ""),
        (5, True, " in east"),
        (20, False, ""),
    ]


SMALLS = st.none() | st.integers(1, 20)
LIMITS = st.builds(
    SliceLimits,
    max_nodes=SMALLS,
    max_gpus=SMALLS,
    max_memory_per_gpu=st.none() | st.sampled_from((40, 80)),
    max_priority=st.integers(1, 300),
    gpu_shapes=st.sampled_from(((), ("A100-40GB",), ("H100-80GB",), ("A100-40GB", "H100-80GB"))),
    where=st.lists(
        st.builds(
            LimitsWhere,
            cluster=st.none() | st.sampled_from(("east", "west")),
            gpu_shape=st.none() | st.sampled_from(("A100-40GB", "H100-80GB")),
            max_nodes=SMALLS,
            max_gpus=SMALLS,
        ),
        max_size=2,
    ).map(tuple),
)
ASKED = st.builds(
    spec, nodes=st.integers(1, 4), gpus_per_node=st.integers(1, 8), priority=st.integers(1, 300)
)


@law(100)
@given(LIMITS, LIMITS, ASKED, st.sampled_from(("east", "west")), st.sampled_from((NODE, SMALL)))
def test_in_a_project_a_slice_may_do_what_both_allow_and_no_more(
    own: SliceLimits, every: SliceLimits, asked: RequestSpec, cluster: str, node: Pool
) -> None:
    """C4: no slice gets around the project's bounds, and none loses more than they say."""

    def is_allowed(limits: SliceLimits) -> bool:
        return not broken(asked, limits) and not broken_there(asked, limits, (cluster, node))

    project = ProjectSpec(admins=ADMINS, limits=ProjectLimits(every_slice=every))
    assert is_allowed(in_project(slice_(own), project).limits) == (is_allowed(own) and is_allowed(every))


@pytest.mark.parametrize(
    ("own", "every", "days", "allowed"),
    [
        pytest.param(None, None, 365, "", id="a year needs no word"),
        pytest.param(None, None, 366, "at most 365d0h0m", id="more than a year needs one"),
        pytest.param(1000, None, 900, "", id="the slice allows more"),
        pytest.param(None, 1000, 900, "", id="the project allows more for every slice"),
        pytest.param(1000, 30, 31, "at most 30d0h0m", id="of two bounds the stricter counts"),
    ],
)
def test_a_duration_has_a_bound_where_nobody_says_one(
    own: int | None, every: int | None, days: int, allowed: str
) -> None:
    bound = SliceLimits(max_duration=None if own is None else timedelta(days=own))
    project = ProjectSpec(
        admins=ADMINS,
        limits=ProjectLimits(
            every_slice=SliceLimits(max_duration=None if every is None else timedelta(days=every))
        ),
    )
    limits = in_project(slice_(bound), project).limits
    assert [v.allowed for v in broken(spec(duration=timedelta(days=days)), limits)] == [allowed] * bool(
        allowed
    )
