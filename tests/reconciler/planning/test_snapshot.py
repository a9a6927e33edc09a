"""The planner's world is the same whether it is worked out anew or from what the last look knew (E4, F11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import manifest_pools
from reconciler.planning.snapshot import STEADY, build_snapshot
from schemas.documents.base import Person
from schemas.documents.cluster import Cluster
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.scheduling import Ageing, Fairness, Scheduling
from schemas.documents.slice import SliceSpec
from schemas.status.gpr_status import GPRStatus, Phase, Place
from tests.support import world as build
from tests.support.profile import law
from tests.support.world import START, at

EAST = build.parsed("clusters/east.yaml", build.cluster())
ADA = (Person(email="ada@example.com"),)
AGEING = Ageing(every=timedelta(hours=1), step=10)
FAIRNESS = Fairness(half_life=timedelta(hours=6), step=1)


def wanted(ageing: Ageing | None = AGEING, fairness: Fairness | None = FAIRNESS) -> Wanted:
    """One cluster, two slices, ranks that change as time passes."""
    assert isinstance(EAST, Cluster)
    clusters = {"east": EAST.spec}
    slices = {name: SliceSpec(members=ADA, clusters=("east",), namespaces=(name,)) for name in "ab"}
    project = ProjectSpec(admins=ADA, scheduling=Scheduling(ageing=ageing, fairness=fairness))
    return Wanted("c", project, clusters, slices, {}, {}, manifest_pools(clusters))


def waiting(slice_: str, minute: int, used: float, ahead: float) -> GPRStatus:
    """A request that took its place then."""
    spec = RequestSpec(slice=slice_, nodes=1, duration=timedelta(hours=1), priority=110)
    place = Place(used=used, ahead=ahead)
    return GPRStatus(
        phase=Phase.QUEUED, uid="gpr-1", filed_at=at(minute), place=place, accepted_spec=spec, spec_digest="x"
    )


requests = st.dictionaries(
    st.sampled_from(["a/x", "a/y", "b/x", "b/y"]),
    st.tuples(st.integers(0, 100), st.floats(0, 200), st.floats(0, 50)),
    max_size=4,
)
policies = st.tuples(st.sampled_from([None, AGEING]), st.sampled_from([None, FAIRNESS]))


@law(100)
@given(requests, policies, st.lists(st.integers(0, 40 * 3600), max_size=12))
def test_whatever_is_remembered_changes_nothing(filed: Any, policy: Any, seconds: list[int]) -> None:
    """Looks at any instants, also one before another: clocks differ between what is committed and now."""
    known, statuses = wanted(*policy), {key: waiting(key[0], *about) for key, about in filed.items()}
    for second in seconds:
        facts = Facts(START + timedelta(seconds=second), requests=statuses)
        anew = build_snapshot(replace(known, worked_out={}), facts, None, frozenset())
        assert build_snapshot(known, facts, None, frozenset()) == anew


def test_what_waiting_adds_is_seen_at_the_second_at_which_it_adds_it() -> None:
    known, statuses = wanted(), {"a/x": waiting("a", 0, 0, 0)}

    def boost(second: int) -> int:
        facts = Facts(START + timedelta(seconds=second), requests=statuses)
        return build_snapshot(known, facts, None, frozenset()).requests["a/x"].boost

    assert timedelta(hours=1) > STEADY
    assert [boost(s) for s in (1, 3540, 3599, 3600, 3601, 7200)] == [0, 0, 0, 10, 10, 20]
