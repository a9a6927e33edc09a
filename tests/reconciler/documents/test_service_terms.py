"""A slice's Services across clusters: its peers, what the status says, and which events are told (C7)."""

from __future__ import annotations

import pytest

from reconciler.deciding.slice_parts import service_events
from reconciler.documents.service_terms import peers_in, service_rows
from reconciler.model.cluster_port import ClusterView, SliceTerms
from reconciler.model.events import EventReason
from reconciler.model.facts import Facts
from reconciler.model.service_port import ExportState, ExportsView, ExportView, Peer
from schemas.documents.cluster import Cluster, ClusterSpec
from schemas.documents.slice import Slice
from schemas.status.inventory import SliceServices
from tests.support.world import World, at, cluster, parsed, slice_

BY_ADDRESS = Peer("west", "west", ("10.8.0.0/14",))


def spec(name: str, **more: object) -> ClusterSpec:
    found = parsed(f"clusters/{name}.yaml", cluster(name, 2, **more))
    assert isinstance(found, Cluster)
    return found.spec


def test_peers_are_the_slice_s_other_clusters_as_the_mesh_names_them() -> None:
    document = parsed(
        "slices/a/slice.yaml", slice_("a", ("west", "east", "gone"), services={"across": "mcs"})
    )
    assert isinstance(document, Slice)
    mesh = {"name": "west-1", "addresses": ["10.9.0.0/14", "fd00:8::/32"]}
    clusters = {"east": spec("east"), "west": spec("west", mesh=mesh), "north": spec("north")}
    assert peers_in("east", document.spec, clusters) == (
        Peer("west", "west-1", ("10.8.0.0/14", "fd00:8::/32")),
    )
    assert peers_in("west", document.spec, clusters) == (Peer("east", "east"),)
    without = parsed("slices/a/slice.yaml", slice_("a"))
    assert isinstance(without, Slice)
    assert peers_in("east", without.spec, clusters) is None


@pytest.mark.parametrize("text", ["0.0.0.0/0", "10.8.0.0", "10.8.0.0/33", "pods"])
def test_addresses_that_are_none_or_all_are_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        spec("west", mesh={"addresses": [text]})


def row(peers: tuple[Peer, ...], have: ExportsView | None, mode: str = "manage") -> SliceServices:
    views = {} if have is None else {"a": have}
    view = ClusterView(at(0), {}, {}, exports=views)
    (found,) = service_rows(spec("east", mode=mode), (SliceTerms("a", ("a",), peers=peers),), view)
    return found


@pytest.mark.parametrize(
    ("peers", "have", "policy", "message"),
    [
        pytest.param((BY_ADDRESS,), ExportsView(by_name=True), "ClusterNames", "", id="Cilium knows names"),
        pytest.param(
            (BY_ADDRESS,),
            ExportsView(),
            "Addresses",
            "a NetworkPolicy cannot tell slices of another cluster apart: pods with the label egs.dev/export let in "
            "all pods of west (10.8.0.0/14)",
            id="addresses are those of all slices",
        ),
        pytest.param(
            (Peer("west", "west"),),
            ExportsView(),
            "None",
            "pods of west are not let in: a NetworkPolicy cannot name pods of another cluster; set "
            "spec.mesh.addresses of that cluster, or use Cilium's cluster mesh",
            id="no address is known",
        ),
        pytest.param((), ExportsView(by_name=True), "None", "the slice has no other cluster", id="no peer"),
        pytest.param(
            (BY_ADDRESS,),
            ExportsView(omitted=3, by_name=True),
            "ClusterNames",
            "3 more Services have the label; the first 100 are exported",
            id="too many",
        ),
    ],
)
def test_the_status_says_what_policies_cannot_do(
    peers: tuple[Peer, ...], have: ExportsView, policy: str, message: str
) -> None:
    found = row(peers, have)
    assert (found.state, found.policy, found.message) == ("Kept", policy, message)


def test_observed_and_missing() -> None:
    """A12."""
    assert row((BY_ADDRESS,), None, "observe").state == "Observed"
    missing = row((BY_ADDRESS,), ExportsView(problem="no such API"))
    assert (missing.state, missing.policy, missing.message) == ("Missing", "None", "no such API")


def facts(have: ExportsView) -> Facts:
    return Facts(at(0), services={"east": (row((BY_ADDRESS,), have),)})


def exports(*states: ExportState) -> ExportsView:
    views = tuple(ExportView("a", f"s{n}", state, "why") for n, state in enumerate(states))
    return ExportsView(views, by_name=True)


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        pytest.param(exports(), exports("Exported", "Waiting"), [], id="nothing is wrong"),
        pytest.param(
            exports(),
            ExportsView(problem="no such API"),
            ["slice a in east: no such API"],
            id="a cluster without the API",
        ),
        pytest.param(
            exports("Conflict"),
            exports("Conflict", "Refused"),
            ["slice a in east: Service a/s1: why"],
            id="only what is new",
        ),
        pytest.param(exports("Unanswered"), exports("Unanswered"), [], id="once"),
        pytest.param(
            exports(),
            exports("Refused", "Refused", "Refused", "Refused"),
            ["slice a in east: Service a/s0: why; Service a/s1: why; Service a/s2: why; and 1 more"],
            id="never too long",
        ),
    ],
)
def test_what_is_missing_is_told_once(before: ExportsView, after: ExportsView, texts: list[str]) -> None:
    found = list(service_events(facts(before), facts(after)))
    assert [event.message for event in found] == texts
    assert all((e.reason, e.cluster, e.slice) == (EventReason.NOT_EXPORTED, "east", "a") for e in found)


# --- in the loop ---


def test_the_status_follows_the_clusters_and_is_read_back() -> None:
    """C7: with no drift told; a slice that wants it no more loses it."""
    both = {name: cluster(name, 2) for name in ("east", "west")}
    files = {f"clusters/{name}.yaml": text for name, text in both.items()}
    wanted = slice_("a", ("east", "west"), services={"across": "mcs"})
    world = World({**files, "slices/a/slice.yaml": wanted})
    world.run(at(2))
    kept = SliceServices(slice="a", state="Kept", policy="ClusterNames")
    assert world.facts().services == {"east": (kept,), "west": (kept,)}
    assert not {EventReason.DRIFT, EventReason.DRIFT_SEEN, EventReason.NOT_EXPORTED} & set(world.told())
    world.commit({"slices/a/slice.yaml": slice_("a", ("east", "west"))})
    world.run(at(6))
    assert world.facts().services == {}
    assert world.drivers["east"].observe(world.now).exports == {}
