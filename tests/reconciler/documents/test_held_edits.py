"""What counts where changes are held, kept up to date at the cost of what changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents.held_edits import Overlay, overlaid
from reconciler.documents.in_force import Desired
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Entry
from schemas.documents.base import Metadata
from schemas.reading.reader import READER_VERSION
from schemas.status.judgements import HeldChange, TrustRecord
from tests.support.world import START, World, gpr, gpr_path

PATHS = ["a", "b", "c"]
TREES = st.dictionaries(st.sampled_from(PATHS), st.sampled_from("123"))
HOLDS = st.dictionaries(
    st.sampled_from(PATHS), st.tuples(st.sampled_from(["1", "2", None]), st.sampled_from(["1", "2", None]))
)


def hold(path: str, authorised: str | None, found: str | None) -> HeldChange:
    return HeldChange(
        path=path, authorised=authorised, found=found, commit="0" * 40, rule="R", message="m", since=START
    )


@given(st.lists(st.tuples(TREES, HOLDS), min_size=1, max_size=5))
def test_what_counts_follows_from_the_tree_and_the_holds_alone(history: list) -> None:  # type: ignore[type-arg]
    """Whatever was before: a path that is held shows what was authorised, every other one what main has."""
    overlay, counted, main = Overlay(), dict[str, Entry](), dict[str, str]()
    for tree, wished in history:
        holds = [hold(path, *of) for path, of in wished.items()]
        changed = [
            Entry(p, tree.get(p)) for p in sorted(tree.keys() | main.keys()) if tree.get(p) != main.get(p)
        ]
        entries, overlay = overlaid(changed, holds, overlay, counted)
        for entry in entries:
            counted.pop(entry.path, None)
            if entry.oid is not None:
                counted[entry.path] = entry
        main = tree
        applied = {h.path: h.authorised for h in holds if main.get(h.path) == h.found}
        want = {path: applied[path] if path in applied else main.get(path) for path in PATHS}
        assert {path: counted[path].oid if path in counted else None for path in PATHS} == want


def test_a_reader_sees_what_counts_and_what_is_newer() -> None:
    world = World()
    first = world.commit({gpr_path("a/x"): gpr("a", "x", nodes=1)})
    second = world.commit({gpr_path("a/x"): gpr("a", "x", nodes=2)})
    blob = {e.path: e.oid for e in world.people.diff(None, first)}[gpr_path("a/x")]
    now = {e.path: e.oid for e in world.people.diff(None, second)}[gpr_path("a/x")]
    trust = TrustRecord(
        metadata=Metadata(name="trust"), main=second, held=(hold(gpr_path("a/x"), blob, now),)
    )
    desired = Desired(world.people, DocumentCache(None, READER_VERSION))
    for commit, nodes, is_held in [(second, 1, True), (first, 1, False)]:
        desired.update(commit, trust)
        filed = desired.wanted(world.facts()).filed["a/x"]
        assert filed.spec is not None
        assert (filed.spec.nodes, filed.held is not None) == (nodes, is_held)
    third = world.commit({gpr_path("a/x"): gpr("a", "x", nodes=3)})
    desired.update(third, trust)
    spec = desired.wanted(world.facts()).filed["a/x"].spec
    assert spec is not None
    assert spec.nodes == 3
