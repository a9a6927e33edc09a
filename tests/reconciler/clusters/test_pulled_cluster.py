"""What a report answers to the centre's calls, and how long its word is good (A2, A14).

The whole loop over reports is in tests/reconciler/clusters/test_pulled_world.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.applier_report import Rendering, Report, digest_of
from reconciler.clusters.pulled_cluster import LOOK, SETTLING, PullCluster, ReportBranches
from reconciler.model.cluster_port import (
    Busy,
    CheckResult,
    ClusterView,
    Difference,
    Done,
    LeaseRef,
    NodeView,
    Refused,
    SliceTerms,
    Stamp,
)
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Person
from schemas.errors import Fault
from tests.reconciler.clusters.rig import SPEC
from tests.support.memory_remote import MemoryRemote

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
EVERY, STALE = timedelta(minutes=5), SPEC.stale
STAMP = Stamp(2, 5)
LEASE = LeaseRef("u1", "a/x", "a", NOW + 60 * MINUTE)
OTHER = replace(LEASE, uid="u2", request="b/y", slice="b")
TERMS = SliceTerms("a", ("a-dev",), ("bo@example.com",))


def said(*nodes: NodeView, **more: object) -> Report:
    view = ClusterView(NOW, {n.name: n for n in nodes}, {"a": ("a-dev",)})
    return Report(NOW, EVERY, Stamp(2, 4), view, terms={"a": digest_of(TERMS)}, **more)  # type: ignore[arg-type]


def node(lease: LeaseRef | None = None, **more: object) -> NodeView:
    return NodeView("n", "h100", True, lease=lease, **more)  # type: ignore[arg-type]


def cluster(report: Report | None) -> PullCluster:
    return PullCluster("east", SPEC, lambda: report)


WAITS = Busy(NOW + LOOK, "cluster east has not reported it yet")
NO = Refused("StaleStamp", "another controller leads")


@pytest.mark.parametrize(
    ("report", "call", "want"),
    [
        pytest.param(said(node()), ("add", "n", LEASE), WAITS, id="add: not yet"),
        pytest.param(said(node(LEASE)), ("add", "n", LEASE), Done(), id="add: it has it"),
        pytest.param(
            said(node(LEASE)), ("add", "n", replace(LEASE, end=NOW)), WAITS, id="add: with another end"
        ),
        pytest.param(
            said(node(LEASE, draining=True)), ("add", "n", LEASE), WAITS, id="add: notice is not off yet"
        ),
        pytest.param(
            said(node(), refusals={("ADD", "n", "u1"): NO}), ("add", "n", LEASE), NO, id="add: refused"
        ),
        pytest.param(
            said(node(), refusals={("ADD", "n", "u2"): NO}), ("add", "n", LEASE), WAITS, id="add: another was"
        ),
        pytest.param(said(node(LEASE)), ("show_end", LEASE), Done(), id="show_end: the applier's own affair"),
        pytest.param(said(node(LEASE)), ("evict", "n", "u1", NOW), WAITS, id="evict: not yet"),
        pytest.param(
            said(node(LEASE, draining=True)), ("evict", "n", "u1", NOW), Done(), id="evict: it drains"
        ),
        pytest.param(said(node(LEASE)), ("remove", "n", "u1"), WAITS, id="remove: not yet"),
        pytest.param(said(node()), ("remove", "n", "u1"), Done(), id="remove: it is free"),
        pytest.param(said(node(OTHER)), ("remove", "n", "u1"), Done(), id="remove: it is another one's"),
        pytest.param(said(), ("remove", "n", "u1"), Done(), id="remove: it is gone"),
        pytest.param(said(node()), ("isolate", "n", "bad"), WAITS, id="isolate: not yet"),
        pytest.param(said(node(isolated=True)), ("isolate", "n", "bad"), Done(), id="isolate: it is"),
        pytest.param(said(node(isolated=True)), ("restore", "n"), WAITS, id="restore: not yet"),
        pytest.param(said(node()), ("restore", "n"), Done(), id="restore: it is"),
        pytest.param(said(), ("ensure_slice", TERMS), Done(), id="a slice that was looked at and is whole"),
        pytest.param(
            said(), ("ensure_slice", replace(TERMS, members=())), WAITS, id="a slice under new terms"
        ),
        pytest.param(
            said(differences=(Difference("a", "Role x", "missing"),)),
            ("ensure_slice", TERMS),
            WAITS,
            id="a slice that differs",
        ),
        pytest.param(said(), ("remove_slice", "a"), WAITS, id="a slice that is still there"),
        pytest.param(said(), ("remove_slice", "b"), Done(), id="a slice that is gone"),
        pytest.param(said(), ("ensure_fleet",), Done(), id="a fleet that is whole"),
        pytest.param(
            said(differences=(Difference("", "Node n", "changed"),)), ("ensure_fleet",), WAITS, id="and not"
        ),
        pytest.param(said(node()), ("check", "n", "pre", LEASE), WAITS, id="a check that is not begun"),
        pytest.param(
            said(node(), checks={("u1", "n", "pre"): Busy(NOW + MINUTE, "runs")}),
            ("check", "n", "pre", LEASE),
            Busy(NOW + MINUTE, "runs"),
            id="a check that runs",
        ),
        pytest.param(
            said(node(), checks={("u1", "n", "pre"): (CheckResult("nccl", True),)}),
            ("check", "n", "pre", LEASE),
            (CheckResult("nccl", True),),
            id="a check that is over",
        ),
    ],
)
def test_a_call_is_answered_from_the_report(report, call, want):
    name, *arguments = call
    assert getattr(cluster(report), name)(*arguments, STAMP, NOW) == want


@pytest.mark.parametrize(
    ("report", "at", "part"),
    [
        pytest.param(None, NOW, "has not reported yet", id="no report at all"),
        pytest.param(
            said(node()), NOW + EVERY + STALE + SECOND, "has been silent since", id="a word that is broken"
        ),
        pytest.param(
            Report(NOW, EVERY, trouble="no answer in 5 s"), NOW, "no answer in 5 s", id="trouble of its own"
        ),
        pytest.param(
            replace(said(node()), at=NOW - 20 * MINUTE),
            NOW,
            "has been silent since",
            id="an old report, first seen now",
        ),
    ],
)
def test_what_does_not_count_is_out_of_reach(report, at, part):
    with pytest.raises(Fault, match=part) as caught:
        cluster(report).observe(at)
    assert caught.value.reason == "ClusterUnreachable"


def test_no_news_is_good_news_until_the_word_is_broken():
    found = cluster(said(node()))
    assert found.observe(NOW).at == NOW
    last = NOW + EVERY + STALE
    assert found.observe(last).at == last, "as good as seen now: the cluster's own `stale` does not strike"


def test_a_clock_in_the_future_buys_no_time():
    found = cluster(replace(said(node()), at=NOW + timedelta(days=900)))
    found.observe(NOW)
    with pytest.raises(Fault):
        found.observe(NOW + EVERY + STALE + SECOND)


def test_who_is_asked_and_says_nothing_is_out_of_reach_within_stale():
    found = cluster(said(node()))
    assert found.add("n", LEASE, STAMP, NOW) == WAITS
    found.observe(NOW + STALE)
    with pytest.raises(Fault, match="has not reported on the decisions"):
        found.observe(NOW + STALE + SECOND)


def test_drift_that_the_applier_leaves_for_a_while_owes_no_news():
    """Whoever undoes a repair again and again meets pauses of up to an hour."""
    found = cluster(said(node(), differences=(Difference("a", "Role x", "changed"),)))
    assert found.ensure_slice(TERMS, STAMP, NOW) == WAITS
    found.observe(NOW + STALE + SECOND)
    assert isinstance(found.ensure_slice(replace(TERMS, members=()), STAMP, NOW + STALE), Busy)
    with pytest.raises(Fault):
        found.observe(NOW + 2 * STALE + SECOND)


def test_any_news_since_it_was_asked_keep_it_in_reach():
    reports = [said(node())]
    found = PullCluster("east", SPEC, lambda: reports[-1])
    found.add("n", LEASE, STAMP, NOW)
    reports.append(replace(said(node()), at=NOW + MINUTE))
    found.observe(NOW + MINUTE)
    found.add("n", LEASE, STAMP, NOW + MINUTE)
    found.observe(NOW + STALE + SECOND)


# -- the branch ----------------------------------------------------------------------------------------------


def push(remote: MemoryRemote, files: dict[str, bytes | None]) -> None:
    store = MemoryStore(remote)
    tip = store.fetch(["egs/clusters/east"]).get("egs/clusters/east")
    oid = store.write(Draft(files, "a report", Person("x", "x@example.com"), NOW, base=tip, parent=tip))
    store.push("egs/clusters/east", oid, tip)


def test_a_broken_report_is_told_once_and_mended_by_the_next(caplog):
    remote = MemoryRemote()
    store = MemoryStore(remote)
    reports = ReportBranches(store)
    good = Rendering().files("east", said(node()))
    push(remote, {**good, "nodes/000.yaml": b"- {name: ../x, pool: p, ready: true}"})
    store.fetch(["egs/clusters/*"])
    for _ in range(3):
        with pytest.raises(Fault) as caught:
            reports.read("east")
    assert caught.value.reason == "ClusterReportBroken"
    assert "branch egs/clusters/east: nodes/000.yaml" in str(caught.value)
    assert len(caplog.records) == 1
    push(remote, dict(good))
    store.fetch(["egs/clusters/*"])
    assert reports.read("east") == said(node())
    assert reports.read("east") is reports.read("east")


def test_what_did_not_change_is_not_read_again(monkeypatch):
    remote = MemoryRemote()
    store = MemoryStore(remote)
    reports = ReportBranches(store)
    push(remote, dict(Rendering().files("east", said(node()))))
    store.fetch(["egs/clusters/*"])
    reports.read("east")
    read: list[str] = []
    real = store.read
    monkeypatch.setattr(store, "read", lambda oids: read.extend(list(oids)) or real(read))
    push(remote, dict(Rendering().files("east", replace(said(node()), at=NOW + MINUTE))))
    store.fetch(["egs/clusters/*"])
    assert reports.read("east") == replace(said(node()), at=NOW + MINUTE, view=_seen_at(NOW + MINUTE))
    assert len(read) == 1


def _seen_at(at: datetime) -> ClusterView:
    view = said(node()).view
    assert view is not None
    return replace(view, at=at)


def test_too_large_a_report_is_not_read():
    remote = MemoryRemote()
    store = MemoryStore(remote)
    push(remote, {**Rendering().files("east", said(node())), "nodes/001.yaml": b"#" * 1_000_001})
    store.fetch(["egs/clusters/*"])
    with pytest.raises(Fault, match="too large"):
        ReportBranches(store).read("east")


def test_after_an_outage_nothing_is_decided_before_the_appliers_had_a_moment():
    """They did what was committed; to decide by what they said before would be to undo it."""
    remote = MemoryRemote()
    store = MemoryStore(remote)
    reports = ReportBranches(store)
    push(remote, dict(Rendering().files("east", said(node()))))
    store.fetch(["egs/clusters/*"])
    reports.read("east")
    assert reports.settled(NOW, True)
    assert not reports.settled(NOW + MINUTE, False)
    assert not reports.settled(NOW + 2 * MINUTE, True)
    assert reports.settled(NOW + 2 * MINUTE + SETTLING, True), "one that is gone for good holds up nobody"
    assert not reports.settled(NOW + 10 * MINUTE, False)
    push(remote, dict(Rendering().files("east", replace(said(node()), at=NOW + 11 * MINUTE))))
    store.fetch(["egs/clusters/*"])
    assert reports.settled(NOW + 11 * MINUTE, True)
