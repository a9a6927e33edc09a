"""An endpoint's document: versions and weights, GPUs of its request, and what its clusters need (J2)."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.rules.check import check_files
from schemas.rules.endpoint_rules import packs
from tests.support.endpoints import document, version
from tests.support.world import cluster, gpr, project, slice_

PATH = "slices/a/endpoints/chat.yaml"
GATEWAY = {"name": "public", "namespace": "gateways"}
PROMETHEUS = {"prometheus": {"url": "https://prometheus.example.com"}}


def found(
    name: str = "chat", nodes: int = 1, of_cluster: dict[str, Any] | None = None, **spec: Any
) -> list[str]:
    """Rules that the endpoint breaks."""
    path = f"slices/a/endpoints/{name}.yaml"
    files = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(**(of_cluster or {})),
        "slices/a/slice.yaml": slice_("a"),
        "slices/a/gprs/x.yaml": gpr("a", "x", nodes=nodes, gpusPerNode=8),
        path: document(name, **spec),
    }
    result = check_files((path, 0o100644, text.encode()) for path, text in files.items())
    return [problem.rule for problem in result.problems if problem.file == path]


def test_an_endpoint_of_a_request_is_fine() -> None:
    assert found() == []
    route = {"hostnames": ["chat.example.com"]}
    rollout = {"bounds": {"errorRate": 0.02}}
    assert found(of_cluster={"gateway": GATEWAY, "metrics": PROMETHEUS}, route=route, rollout=rollout) == []


SCALING = {"by": "hpa"}
TWO_TO_NINE = {"replicas": {"min": 2, "max": 9}}


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        pytest.param({"weights": {"v1": 90}}, "WeightsNotWhole", id="weights are 100 together"),
        pytest.param({"weights": {"v1": 50, "v2": 50}}, "UnknownVersion", id="weights are of versions"),
        pytest.param({"versions": [version("v1"), version("v1")]}, "DuplicateVersion", id="versions differ"),
        pytest.param(
            {"versions": [version(replicas={"min": 3, "max": 2})]},
            "ReplicasReversed",
            id="min is not above max",
        ),
        pytest.param(
            {"versions": [version(replicas={"min": 1, "max": 2})]}, "ScalingMissing", id="something scales it"
        ),
        pytest.param({"scaling": {"by": "keda"}}, "PortalMissing", id="KEDA must know whom to ask"),
        pytest.param(
            {"versions": [version(**TWO_TO_NINE)], "scaling": SCALING},
            "TooManyGpusServed",
            id="no more GPUs at most than the request has",
        ),
        pytest.param(
            {"versions": [version(gpusPerReplica=9)]}, "TooManyGpusServed", id="a replica fits into one node"
        ),
        pytest.param(
            {"versions": [version(gpusPerReplica=3, replicas={"min": 3, "max": 3})]},
            "TooManyGpusServed",
            id="replicas do not cross nodes",
        ),
        pytest.param(
            {"versions": [version(gpusPerReplica=8)], "maxSurge": 1},
            "NoSpareGpu",
            id="surge needs spare GPUs",
        ),
        pytest.param(
            {"namespace": "elsewhere"}, "NamespaceNotInSlice", id="in one of the slice's namespaces"
        ),
        pytest.param({"gpr": "later"}, "RequestMissing", id="the request may come later"),
        pytest.param({"route": {}}, "GatewayMissing", id="a route needs a Gateway"),
        pytest.param(
            {"rollout": {"bounds": {"errorRate": 0.1}}}, "MetricsMissing", id="a bound needs metrics"
        ),
        pytest.param({"rollout": {"bounds": {}}}, "BadValue", id="bounds bind something"),
        pytest.param({"versions": [version(replicas={"min": 0})]}, "BadValue", id="no scale to zero"),
        pytest.param({"drain": "25h"}, "BadValue", id="no answer takes longer than a day"),
        pytest.param({"route": {"path": "/a//b"}}, "BadValue", id="no empty part of a path"),
        pytest.param({"route": {"path": "/a/../b"}}, "BadValue", id="no way back in a path"),
        pytest.param({"backend": "tgi"}, "BadValue", id="only backends that are rendered"),
    ],
)
def test_what_an_endpoint_may_not_be(spec: dict[str, Any], rule: str) -> None:
    assert set(found(**spec)) == {rule}


def named(*hostnames: str) -> dict[str, Any]:
    return {"hostnames": list(hostnames)}


OF_A, OF_B = "slices/a/endpoints/chat.yaml", "slices/b/endpoints/chat.yaml"
CHAT, ALL = named("chat.example.com"), named("*.example.com")


@pytest.mark.parametrize(
    ("theirs", "ours", "is_taken"),
    [
        pytest.param(CHAT, CHAT, True, id="the same name"),
        pytest.param(ALL, CHAT, True, id="a name below another slice's wildcard"),
        pytest.param(ALL, named("*.a.example.com"), True, id="a wildcard below another slice's"),
        pytest.param(CHAT, named("talk.example.com"), False, id="another name"),
        pytest.param(ALL, named("example.com"), False, id="the domain itself is not below its wildcard"),
        pytest.param({}, CHAT, True, id="a name of a Gateway of which another slice has all"),
        pytest.param({}, {"path": "/v1/chat"}, True, id="a path of such a Gateway"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_hostname_is_of_one_slice(
    theirs: dict[str, Any], ours: dict[str, Any], is_taken: bool, turned: bool
) -> None:
    """J2: both are told, on whichever side the wildcard is."""
    first, second = (theirs, ours) if turned else (ours, theirs)
    result = check_files((name, 0o100644, text.encode()) for name, text in two_slices(first, second).items())
    told = {(problem.file, problem.rule) for problem in result.problems}
    assert told == ({(OF_A, "HostnameTaken"), (OF_B, "HostnameTaken")} if is_taken else set())
    assert all("slices/" in problem.message for problem in result.problems)


def test_a_route_without_names_has_those_of_its_own_clusters_alone() -> None:
    files = two_slices({}, CHAT) | {
        "clusters/west.yaml": cluster("west", gateway=GATEWAY),
        "slices/b/slice.yaml": slice_("b", ("west",)),
    }
    assert not check_files((name, 0o100644, text.encode()) for name, text in files.items()).problems


def two_slices(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, str]:
    return {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(gateway=GATEWAY),
        "slices/a/gprs/x.yaml": gpr("a", "x", gpusPerNode=8),
        "slices/b/gprs/x.yaml": gpr("b", "x", gpusPerNode=8),
        OF_A: document(route=ours),
        OF_B: document(slice_="b", route=theirs),
    } | {f"slices/{name}/slice.yaml": slice_(name) for name in "ab"}


FOUR = [version(replicas={"min": 4, "max": 4})]


@pytest.mark.parametrize(
    ("others", "rule"),
    [
        pytest.param([{"gpr": "x", "versions": FOUR}], None, id="together just what the request has"),
        pytest.param([{"gpr": "x", "versions": FOUR}, {"gpr": "x"}], "TooManyGpusServed", id="one more"),
        pytest.param([{"gpr": "y", "versions": FOUR}, {"gpr": "y"}], None, id="another request's"),
        pytest.param(
            [{"gpr": "x", "versions": [version(gpusPerReplica=5)]}],
            "TooManyGpusServed",
            id="no room on a node",
        ),
    ],
)
def test_endpoints_of_one_request_share_its_gpus(others: list[dict[str, Any]], rule: str | None) -> None:
    """Also with `maxSurge`: what others may have is no spare GPU."""
    files = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(),
        "slices/a/slice.yaml": slice_("a"),
        **{f"slices/a/gprs/{name}.yaml": gpr("a", name, gpusPerNode=8) for name in "xy"},
        PATH: document("chat", versions=FOUR),
        **{f"slices/a/endpoints/b{n}.yaml": document(f"b{n}", **spec) for n, spec in enumerate(others)},
    }
    surges = files | {PATH: document("chat", versions=FOUR, maxSurge=1)}
    told = [_told(files), _told(surges)]
    if rule is None:
        spare = [] if any(spec["gpr"] == "x" for spec in others) is False else ["NoSpareGpu"]
        assert told == [[], spare]
    else:
        assert told == [[rule], [rule]]


def _told(files: dict[str, str]) -> list[str]:
    """Rules that the endpoint at PATH breaks."""
    result = check_files((path, 0o100644, text.encode()) for path, text in files.items())
    return [problem.rule for problem in result.problems if problem.file == PATH]


def test_its_name_leaves_room_for_the_versions() -> None:
    assert found("c" * 43) == []
    assert found("c" * 44) == ["EndpointNameTooLong"], (
        "chat-v1 is a Deployment's name, and pods' names begin with it"
    )
    assert found("c" * 33, backend="kserve") == []
    assert found("c" * 34, backend="kserve") == ["EndpointNameTooLong"], "it adds -predictor"
    assert found("4chat") == ["EndpointNameDigit"]


@pytest.mark.parametrize(
    ("sizes", "nodes", "fit"),
    [
        ([4, 2, 1, 1], 1, True),
        ([5, 5], 2, True),
        ([5, 5], 1, False),
        ([3, 3, 3], 1, False),
        ([3, 3, 2, 8], 2, True),
        ([4] * 20_000, 10_000, True),
        ([4] * 20_001, 10_000, False),
    ],
)
def test_replicas_are_packed_onto_nodes_of_8_gpus(sizes: list[int], nodes: int, fit: bool) -> None:
    assert packs(sizes, nodes, 8) is fit
