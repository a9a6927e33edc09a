"""Which pools fit, and who must approve (design, section 6; features E5, F15, C4, D17)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.choices.fit import approval_reasons, candidate_pools, limit_violations, usable_pools, would_fit
from scheduler.snapshot import Pool
from schemas.documents.approval import ApprovalLimit
from schemas.documents.base import Person
from schemas.documents.gpr import Network, RequestSpec
from schemas.documents.project import ApprovalPolicy, ProjectLimits, ProjectSpec
from schemas.documents.slice import Quota, SliceLimits, SliceSpec

PROJECT = ProjectSpec(admins=(Person(email="ada@example.com"),), limits=ProjectLimits(nodes_per_request=8))


def spec(**given: object) -> RequestSpec:
    return RequestSpec(slice="vision", duration=timedelta(hours=1), **{"nodes": 1, **given})


def slice_(**given: object) -> SliceSpec:
    return SliceSpec(
        members=(Person(email="bo@example.com"),),
        namespaces=("train",),
        **{"clusters": ("east", "west"), **given},
    )


def some_pool(cluster: str, name: str, shape: str, gpus: int, memory: int, nodes: int = 10) -> Pool:
    return Pool((cluster, name), shape, gpus, memory, tuple(f"{name}-{i}" for i in range(nodes)))


BIG = replace(some_pool("east", "big", "H100-80GB", 8, 80), rdma=True, instance_type="p5.48xlarge")
SMALL = some_pool("east", "small", "H100-80GB", 4, 80)
OLD = replace(some_pool("west", "old", "A100-40GB", 4, 40), secondary_network=True)
POOLS = {pool.key: pool for pool in (BIG, SMALL, OLD)}


def test_a_pool_that_finds_its_nodes_stays_a_candidate_while_it_has_too_few() -> None:
    """G1: its size is no property of it; a start is planned when there are enough."""
    pools = {pool.key: replace(pool, discovered=pool is SMALL) for pool in (BIG, SMALL)}
    assert names(candidate_pools(spec(nodes=11), slice_(), pools)) == ["small"]


def names(keys: tuple[tuple[str, str], ...]) -> list[str]:
    return [name for _, name in keys]


@pytest.mark.parametrize(
    ("asked", "bounds", "want"),
    [
        pytest.param(
            spec(), slice_(), ["small", "big", "old"], id="the slice's clusters, then the smallest node"
        ),
        pytest.param(
            spec(clusters=("west", "east")), slice_(), ["old", "small", "big"], id="its own clusters first"
        ),
        pytest.param(spec(clusters=("north",)), slice_(), [], id="a cluster that the slice does not span"),
        pytest.param(spec(), slice_(clusters=("west",)), ["old"], id="only the slice's clusters"),
        pytest.param(spec(gpus_per_node=5), slice_(), ["big"], id="at least so many GPUs"),
        pytest.param(spec(memory_per_gpu=41), slice_(), ["small", "big"], id="at least so much memory"),
        pytest.param(spec(gpu_shapes=("A100-40GB",)), slice_(), ["old"], id="only its shape"),
        pytest.param(
            spec(gpu_shapes=("A100-40GB", "H100-80GB")),
            slice_(clusters=("east", "west")),
            ["small", "big", "old"],
            id="clusters come before shapes",
        ),
        pytest.param(spec(instance_type="p5.48xlarge"), slice_(), ["big"], id="only its machine type"),
        pytest.param(spec(network=Network(rdma=True)), slice_(), ["big"], id="RDMA"),
        pytest.param(spec(network=Network(secondary=True)), slice_(), ["old"], id="a second network"),
        pytest.param(spec(nodes=11), slice_(), [], id="more nodes than any pool has"),
        pytest.param(
            spec(),
            slice_(limits=SliceLimits(gpu_shapes=("A100-40GB",))),
            ["old"],
            id="any means any allowed shape",
        ),
    ],
)
def test_candidates(asked: RequestSpec, bounds: SliceSpec, want: list[str]) -> None:
    assert names(candidate_pools(asked, bounds, POOLS)) == want


def test_shapes_are_tried_in_the_order_of_the_request() -> None:
    pools = {pool.key: pool for pool in (SMALL, replace(OLD, key=("east", "old")))}
    asked = spec(gpu_shapes=("A100-40GB", "H100-80GB"))
    assert names(candidate_pools(asked, slice_(), pools)) == ["old", "small"]


def test_equal_pools_keep_the_order_of_the_manifest() -> None:
    pools = {
        pool.key: pool for pool in (replace(SMALL, key=("east", "z")), replace(SMALL, key=("east", "a")))
    }
    assert names(candidate_pools(spec(), slice_(), pools)) == ["z", "a"]


def test_a_closed_pool_stays_a_candidate() -> None:
    assert names(candidate_pools(spec(), slice_(), {OLD.key: replace(OLD, open=False)})) == ["old"]


@pytest.mark.parametrize(
    ("asked", "quota", "reasons", "usable"),
    [
        pytest.param(spec(nodes=2), None, [], ["small", "big", "old"], id="no quota, no bound"),
        pytest.param(spec(nodes=2), 16, [], ["small", "big", "old"], id="within quota everywhere"),
        pytest.param(spec(nodes=2), 8, [], ["small", "old"], id="only the pools within quota are used"),
        pytest.param(spec(nodes=2), 7, ["QuotaExceeded"], [], id="whole nodes: all their GPUs count"),
        pytest.param(spec(nodes=9), None, ["NodeLimitExceeded"], [], id="beyond the project's node limit"),
        pytest.param(spec(nodes=9), 8, ["QuotaExceeded", "NodeLimitExceeded"], [], id="beyond both"),
        pytest.param(
            spec(nodes=99), 8, ["NodeLimitExceeded"], [], id="what fits nowhere has no GPUs to count"
        ),
    ],
)
def test_approval(asked: RequestSpec, quota: int | None, reasons: list[str], usable: list[str]) -> None:
    bounds = slice_(quota=None if quota is None else Quota(gpus=quota))
    assert [need.reason for need in approval_reasons(asked, bounds, PROJECT, POOLS)] == reasons
    assert names(usable_pools(asked, bounds, PROJECT, POOLS, None)) == usable


@pytest.mark.parametrize(
    ("asked", "policy", "reasons", "usable"),
    [
        pytest.param(
            spec(), {"duration": timedelta(hours=1)}, [], ["small", "big", "old"], id="as long as may be"
        ),
        pytest.param(
            spec(), {"duration": timedelta(minutes=59)}, ["DurationNeedsApproval"], [], id="longer than that"
        ),
        pytest.param(
            spec(priority=200), {"priority": 200}, [], ["small", "big", "old"], id="as urgent as may be"
        ),
        pytest.param(
            spec(priority=201), {"priority": 200}, ["PriorityNeedsApproval"], [], id="more urgent than that"
        ),
        pytest.param(
            spec(nodes=2), {"gpu_hours": 8}, [], ["small", "old"], id="only the pools within the hours"
        ),
        pytest.param(
            spec(nodes=2),
            {"gpu_hours": 7},
            ["GpuHoursNeedApproval"],
            [],
            id="more hours than any pool allows",
        ),
        pytest.param(
            spec(), {"gpu_shapes": ("A100-40GB",)}, ["ShapeNeedsApproval"], [], id="it may get that shape"
        ),
        pytest.param(
            spec(gpu_shapes=("H100-80GB",)),
            {"gpu_shapes": ("A100-40GB",)},
            [],
            ["small", "big"],
            id="it may not",
        ),
    ],
)
def test_policy(asked: RequestSpec, policy: dict[str, Any], reasons: list[str], usable: list[str]) -> None:
    """E5, C4: what waits for an admin beside quota and node limit."""
    project = PROJECT.model_copy(update={"approval": ApprovalPolicy(**policy)})
    assert [need.reason for need in approval_reasons(asked, slice_(), project, POOLS)] == reasons
    assert names(usable_pools(asked, slice_(), project, POOLS, None)) == usable


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        pytest.param(ApprovalLimit(gpus=80, nodes=9), ["small", "big", "old"], id="as far as approved"),
        pytest.param(ApprovalLimit(gpus=40, nodes=9), ["small", "old"], id="not more GPUs than approved"),
        pytest.param(ApprovalLimit(gpus=80, nodes=8), [], id="not more nodes than approved"),
    ],
)
def test_an_approval_binds(limit: ApprovalLimit, want: list[str]) -> None:
    assert names(usable_pools(spec(nodes=9), slice_(quota=Quota(gpus=1)), PROJECT, POOLS, limit)) == want


@pytest.mark.parametrize(
    ("asked", "limits", "want"),
    [
        pytest.param(spec(), SliceLimits(), [], id="no limits"),
        pytest.param(
            spec(),
            SliceLimits(max_duration=timedelta(minutes=30)),
            ["duration is 0d1h0m but the slice allows at most 0d0h30m"],
            id="duration",
        ),
        pytest.param(
            spec(priority=201),
            SliceLimits(max_priority=200),
            ["priority is 201 but the slice allows at most 200"],
            id="priority",
        ),
        pytest.param(
            spec(nodes=3), SliceLimits(max_nodes=2), ["nodes is 3 but the slice allows at most 2"], id="nodes"
        ),
        pytest.param(
            spec(gpu_shapes=("H100-80GB", "A100-40GB")),
            SliceLimits(gpu_shapes=("A100-40GB",)),
            ["gpuShape is H100-80GB but the slice allows A100-40GB"],
            id="shape",
        ),
    ],
)
def test_limits(asked: RequestSpec, limits: SliceLimits, want: list[str]) -> None:
    assert [violation.message for violation in limit_violations(asked, slice_(limits=limits))] == want


def test_what_would_fit_is_said_for_each_pool_that_the_slice_may_use() -> None:
    assert would_fit(spec(clusters=("east",)), slice_(), POOLS) == (
        "east/big has up to 10 nodes with 8 H100-80GB of 80 GB each, RDMA, p5.48xlarge; "
        "east/small has up to 10 nodes with 4 H100-80GB of 80 GB each"
    )


def test_where_there_is_nothing_it_says_so() -> None:
    assert would_fit(spec(), slice_(clusters=("north",)), POOLS) == (
        "no GPU nodes that the slice may use exist in north"
    )
