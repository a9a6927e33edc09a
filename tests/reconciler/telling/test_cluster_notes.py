"""Which events a cluster's people see, once each, and that a cluster that fails holds up nobody (H10)."""

from __future__ import annotations

from reconciler.acting.apply import STALE, ClusterFailures, announce, compare, observe
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import ApiFails
from reconciler.model.cluster_port import ClusterDriver, ClusterView, SliceTerms
from reconciler.model.events import Event, EventReason, mark_text
from reconciler.model.facts import Facts
from reconciler.telling.cluster_notes import MOST_KEPT, ClusterNotes, cluster_of, note_of
from schemas.documents.cluster import Cluster
from schemas.status.gpr_status import Mark, Phase
from tests.reconciler.acting.test_actions import request, wanted
from tests.support.world import at, cluster, parsed

RUNNING = request("a/x", Phase.PROVISIONED, ("h100-1",), 0, marks=(Mark(percent=25, at=at(15)),))
FACTS = Facts(at(20), "c0", {"a/x": RUNNING})
MARK = Event(at(15), EventReason.MARK_25, mark_text("a/x", 25), "a/x")


def driver(name: str) -> EmbeddedCluster:
    manifest = parsed(f"clusters/{name}.yaml", cluster(name))
    assert isinstance(manifest, Cluster)
    return EmbeddedCluster(name, manifest.spec)


def test_an_event_goes_where_its_nodes_are_else_to_the_first_cluster_of_its_slice() -> None:
    assert cluster_of(MARK, wanted(), FACTS) == "east"
    filed = Event(at(0), EventReason.FILED, "a/y was filed", "a/y")
    assert cluster_of(filed, wanted(), FACTS) == "east"
    assert cluster_of(filed, wanted("observe"), FACTS) is None
    assert cluster_of(Event(at(0), EventReason.ALARM, "nobody's"), wanted(), FACTS) is None
    assert cluster_of(Event(at(0), EventReason.CLUSTER_UNREACHABLE, "…", "", "east"), wanted(), FACTS) is None
    assert (
        cluster_of(Event(at(0), EventReason.NODE_OUT, "…", "", "east", "h100-1"), wanted(), FACTS) == "east"
    )


def test_a_note_has_one_key_in_every_process_and_another_for_another_life_of_the_request() -> None:
    assert note_of(MARK, FACTS) == note_of(MARK, FACTS)
    other = RUNNING.model_copy(update={"uid": "gpr-other"})
    assert note_of(MARK, FACTS).key != note_of(MARK, Facts(at(20), "c0", {"a/x": other})).key
    assert (note_of(MARK, FACTS).slice, note_of(MARK, FACTS).request) == ("a", "a/x")


def test_whoever_takes_over_tells_recent_marks_again_under_their_old_keys() -> None:
    before, after = ClusterNotes(), ClusterNotes()
    before.post([MARK], 0, wanted(), FACTS)
    after.post([], 2, wanted(), FACTS)
    assert before.waiting(["east"]) == after.waiting(["east"]) != {}
    late = ClusterNotes()
    late.post([], 2, wanted(), Facts(at(80), "c0", {"a/x": RUNNING}))
    assert late.waiting(["east"]) == {}


def test_notes_wait_for_their_cluster_in_bounded_number() -> None:
    notes = ClusterNotes()
    notes.post(
        [Event(at(i), EventReason.EDITED, "…", "a/x") for i in range(MOST_KEPT + 3)], 0, wanted(), FACTS
    )
    assert notes.waiting(["west"]) == {}
    assert len(notes.waiting(["east"])["east"]) == MOST_KEPT
    notes.told(["east"])
    assert notes.waiting(["east"]) == {}


def test_a_cluster_that_fails_is_skipped_and_the_other_is_told() -> None:
    east, west = driver("east"), driver("west")
    east.inject(ApiFails(at=at(0), until=at(5)))
    note = note_of(MARK, FACTS)
    drivers: dict[str, ClusterDriver] = {"east": east, "west": west}
    notes = {"east": (note,), "west": (note,)}
    assert announce(drivers, notes, ClusterFailures(), at(1)) == {"west"}
    assert announce(drivers, notes, ClusterFailures(), at(6)) == {"east", "west"}
    assert (east.notes(), west.notes()) == ((note,), (note,))


def test_a_cluster_that_cannot_compare_is_left_out() -> None:
    east, west = driver("east"), driver("west")
    east.inject(ApiFails(at=at(0), until=at(5)))
    terms = {"east": (SliceTerms("a", ("a",)),), "west": (SliceTerms("a", ("a",)),)}
    found = compare({"east": east, "west": west}, terms, ClusterFailures(), at(1))
    assert [(name, [d.object for d in differences]) for name, differences in found.items()] == [
        ("west", ["Namespace a"])
    ]


class Old(EmbeddedCluster):
    """A cluster whose news are some minutes old."""

    def observe(self, now):  # type: ignore[no-untyped-def]
        view = super().observe(now)
        return ClusterView(at(0), view.nodes, view.slices)


def test_a_cluster_whose_last_news_are_too_old_counts_as_out_of_reach(caplog) -> None:  # type: ignore[no-untyped-def]
    """G5: a stale cluster gets nothing new."""
    manifest = parsed("clusters/east.yaml", cluster("east", stale="3m"))
    assert isinstance(manifest, Cluster)
    drivers: dict[str, ClusterDriver] = {"east": Old("east", manifest.spec)}
    assert list(observe(drivers, ClusterFailures(), at(3), {"east": manifest.spec})) == ["east"]
    assert observe(drivers, ClusterFailures(), at(3.1), {"east": manifest.spec}) == {}
    assert STALE in caplog.text
