"""A cluster without access from outside: known only through its own applier's reports.

If appliers sign, a report counts only if the cluster's own applier signed it; anything else on its branch
leaves the last valid one in force, until that is too old.

The centre has no credentials for it. It decides and commits as for any other cluster; the applier inside
(`reconciler.processes.applier`) reads that, carries it out and reports on a branch of its own. A write's
answer comes from the report: Done if it shows the result, Refused if reported, else Busy until the next look.
"""

# ruff: noqa: ARG002 - the port's arguments; stamps and reasons are used by the applier

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.clusters.applier_report import (
    FILE_BYTES,
    MOST_BYTES,
    MOST_FILES,
    RefusalKey,
    Report,
    digest_of,
    is_ours,
    report_from,
    rows_of,
)
from reconciler.model.cluster_port import (
    Answer,
    Busy,
    CheckResult,
    ClusterView,
    Difference,
    Done,
    LeaseRef,
    NodeView,
    Note,
    Refused,
    RemedyOrder,
    SliceTerms,
    Stage,
    Stamp,
)
from reconciler.model.workload_port import WorkloadTerms
from reconciler.store.believed_commit import Belief, Believes
from reconciler.store.store_port import REGULAR_MODE, Entry, Store
from reconciler.trust.machines import Machines
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

log = logging.getLogger(__name__)

PATTERN = "egs/clusters/*"
"""Appliers' branches, one per cluster."""
SETTLING = timedelta(minutes=1)
"""Appliers fetch several times in this time; one without a report by then counts as silent."""
LOOK = timedelta(seconds=10)
"""The centre's polling interval for expected reports; a webhook on the branch is faster."""


def branch_of(cluster: str) -> str:
    return PATTERN.replace("*", cluster)


class ReportBranches:
    """The reports on the last fetched branches; unchanged ones are not parsed again."""

    def __init__(self, store: Store, machines: Machines | None = None) -> None:
        """`machines` verifies appliers' signatures; None: every report counts."""
        self._store, self._machines = store, machines
        self._before = dict(store.tips())  # fetched earlier by another process that shares the mirror
        # By cluster: its keys and the verification with them.
        self._beliefs: dict[str, tuple[object, Belief]] = {}
        self._known: dict[str, tuple[str, Report | Fault]] = {}  # by cluster: the commit and its report
        self._parsed: dict[str, dict[str, tuple[str, Any]]] = {}  # by cluster and path: blob and rows
        self._told: dict[str, str | None] = {}  # problem of each branch, as last logged
        # Branch heads when the remote became unreachable; None: it is reachable.
        self._cut: Mapping[str, str] | None = None
        self._back: datetime | None = None  # since when it answers again

    def read(self, cluster: str, spec: ClusterSpec | None = None) -> Report | None:
        """The cluster's report; None: there never was one. Raises Fault for an invalid report.

        `spec` has the applier's keys; it is not needed without `machines`.
        """
        tip = self._counting(cluster, spec)
        if tip is None:
            return None
        if self._known.get(cluster, ("", None))[0] != tip:
            self._known[cluster] = (tip, self._at(cluster, tip))
        found = self._known[cluster][1]
        if isinstance(found, Fault):
            raise found
        return found

    def _counting(self, cluster: str, spec: ClusterSpec | None) -> str | None:
        """The commit that counts, usually the branch's head."""
        branch = branch_of(cluster)
        tip = self._store.tips().get(branch)
        belief = self._belief(cluster, spec)
        complaint = belief.complaint(tip)
        if complaint is not None and complaint != self._told.get(cluster):
            log.warning(
                "cluster report not believed cluster=%s why=%s; protect its branch", cluster, complaint
            )
        self._told[cluster] = complaint
        counts = belief.newest(tip)
        if counts is None and tip is not None:
            raise Fault(
                f"branch {branch}: no report is signed by a key of the applier of {cluster}; list its key under "
                f"spec.applierKeys of clusters/{cluster}.yaml",
                "ClusterReportNotSigned",
            )
        return counts

    def _belief(self, cluster: str, spec: ClusterSpec | None) -> Belief:
        """Made again when the listed keys change."""
        believes: Believes | None = None
        keys: tuple[object, ...] = ()
        if self._machines is not None:
            assert spec is not None, "the cluster's manifest lists the keys"
            believes, keys = self._machines.applier(cluster, spec), spec.applier_keys
        of = (keys, believes is None)
        if self._beliefs.get(cluster, (None,))[0] != of:
            before = self._before.get(branch_of(cluster))
            self._beliefs[cluster] = (of, Belief(self._store, believes, before))
        return self._beliefs[cluster][1]

    def settled(self, now: datetime, reachable: bool) -> bool:
        """True if the fetched reports can be used: after an outage the appliers get a moment to report first.

        Their recent actions are not reported yet; decisions by old reports would undo them.
        """
        if not reachable:
            self._cut, self._back = self._cut or self._tips(), None
            return False
        if self._cut is None:
            return True
        self._back = self._back or now
        silent = any(self._store.tips().get(branch_of(name)) == tip for name, tip in self._cut.items())
        if silent and now - self._back < SETTLING:
            return False
        self._cut = None
        return True

    def _tips(self) -> dict[str, str]:
        return {name: tip for name, (tip, _) in self._known.items()}

    def _at(self, cluster: str, tip: str) -> Report | Fault:
        try:
            entries = {e.path: e for e in self._store.diff(None, tip) if is_ours(e.path)}
            return report_from(cluster, self._contents(cluster, entries))
        except Fault as fault:
            if fault.reason != "ClusterReportBroken":
                raise
            text = f"branch {branch_of(cluster)}: {fault}; only the cluster's applier may push there"
            log.warning("cluster report not read cluster=%s message=%s; protect its branch", cluster, text)
            return Fault(text, fault.reason)

    def _contents(self, cluster: str, entries: Mapping[str, Entry]) -> dict[str, Any]:
        before = self._parsed.get(cluster, {})
        fresh = {p: e for p, e in entries.items() if p not in before or before[p][0] != e.oid}
        oids = {e.oid for e in fresh.values() if e.oid is not None}
        if len(entries) > MOST_FILES * 4 or any(e.mode != REGULAR_MODE for e in fresh.values()):
            raise Fault("the report has too many files, or invalid entries", "ClusterReportBroken")
        sizes = self._store.sizes(oids)
        if max(sizes.values(), default=0) > FILE_BYTES or sum(sizes.values()) > MOST_BYTES:
            raise Fault("the report is too large", "ClusterReportBroken")
        blobs = self._store.read(oids)
        known = {path: before[path] for path in entries.keys() - fresh.keys()}
        for path, entry in fresh.items():
            assert entry.oid is not None
            known[path] = (entry.oid, rows_of(path, blobs[entry.oid]))
        self._parsed[cluster] = known
        return {path: rows for path, (_, rows) in known.items()}


class PullCluster:
    """`reconciler.model.cluster_port.ClusterDriver` on an applier's reports; `read` returns the latest one."""

    def __init__(self, name: str, spec: ClusterSpec, read: Callable[[], Report | None]) -> None:
        self._name, self._spec, self._read = name, spec, read
        self._report: Report | None = None
        self._news: datetime | None = None  # when the report was received or made, whichever was earlier
        self._asked: datetime | None = None  # since when we have waited for something without news

    def observe(self, now: datetime) -> ClusterView:
        """As reported. Without news nothing has changed, as long as the applier reports in time."""
        view = self._view(now)
        assert self._report is not None
        return replace(view, at=now, fence=self._report.acted)

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """As reported, for these slices and none; a slice compared under other terms counts as different."""
        self._view(now)
        assert self._report is not None
        names = {"", *(terms.name for terms in slices)}
        reported = tuple(found for found in self._report.differences if found.slice in names)
        told = {found.slice for found in reported}
        old = [terms.name for terms in slices if terms.name not in told and not self._has(terms)]
        return (
            *reported,
            *(Difference(name, f"Slice {name}", "changed", "its terms are new") for name in old),
        )

    def ensure_slice(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Done if it was compared under these terms without a difference."""
        there = terms.name in self._view(now).slices
        whole = there and self._has(terms) and not self._differs(terms.name)
        key = ("ENSURE_SLICE", terms.name, "")
        return self._answer(whole, key, now, known=there and self._has(terms))

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Done once nothing of it is reported any more."""
        return self._answer(slice_ not in self._view(now).slices, ("REMOVE_SLICE", slice_, ""), now)

    def ensure_fleet(self, stamp: Stamp, now: datetime) -> Answer:
        """Done if nothing outside slices differs."""
        self._view(now)
        return self._answer(not self._differs(""), ("ENSURE_FLEET", "", ""), now, known=True)

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """As reported."""
        self._view(now)
        assert self._report is not None
        found = self._report.checks.get((lease.uid, node, stage))
        if isinstance(found, tuple) and found:
            return found
        answer = self._answer(False, ("CHECK", node, lease.uid), now)
        if isinstance(answer, Busy) and isinstance(found, Busy):
            return Busy(max(answer.until, found.until), found.message)
        assert not isinstance(answer, Done)
        return answer

    def remediate(
        self, node: str, order: RemedyOrder, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """As reported."""
        self._view(now)
        assert self._report is not None
        found = self._report.checks.get((order.uid, node, "remedy"))
        if isinstance(found, tuple) and found:
            return found
        answer = self._answer(False, ("REMEDIATE", node, ""), now, known=found is not None)
        assert not isinstance(answer, Done)
        return answer

    def add(self, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """Done if it has the lease with this end, and is not being released."""
        have = self._node(node, now)
        own = have is not None and have.lease is not None and have.lease.uid == lease.uid
        done = own and have is not None and have.lease is not None and have.lease.end == lease.end
        return self._answer(done and have is not None and not have.draining, ("ADD", node, lease.uid), now)

    def show_end(self, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """Done: the applier does it, and reports pods only now and then."""
        return Done()

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        """Done if it is draining, or has another lease."""
        have = self._node(node, now)
        return self._answer(have is None or have.draining or _left(have, uid), ("EVICT", node, uid), now)

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """Done if it does not have that lease."""
        have = self._node(node, now)
        return self._answer(have is None or _left(have, uid), ("REMOVE", node, uid), now)

    def isolate(self, node: str, reason: str, stamp: Stamp, now: datetime) -> Answer:
        """Done if it is isolated."""
        have = self._node(node, now)
        return self._answer(have is not None and have.isolated, ("ISOLATE", node, ""), now)

    def restore(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Done if it is not isolated by us."""
        have = self._node(node, now)
        return self._answer(have is not None and not have.isolated, ("RESTORE", node, ""), now)

    def drained(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Done if no request to drain it is open."""
        have = self._node(node, now)
        return self._answer(have is None or not have.drain_open, ("DRAINED", node, ""), now)

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """Done if its reported target size is this."""
        return self._answer(self._view(now).sizes.get(pool) == count, ("SCALE", pool, ""), now)

    def run_workload(self, terms: WorkloadTerms, stamp: Stamp, now: datetime) -> Answer:
        """Done if every object is reported as applied in this run."""
        placed = self._view(now).placed.get(terms.key)
        return self._answer(
            placed is not None and not placed.differs(terms), ("RUN_WORKLOAD", terms.key, ""), now
        )

    def end_workload(self, key: str, stamp: Stamp, now: datetime) -> Answer:
        """Done once it is not reported any more."""
        return self._answer(key not in self._view(now).placed, ("END_WORKLOAD", key, ""), now)

    def announce(self, notes: tuple[Note, ...], now: datetime) -> None:
        """Does nothing: the applier reads the same events from the status branch and writes them."""

    def close(self) -> None:
        """Does nothing: a report needs no connection."""

    def _node(self, node: str, now: datetime) -> NodeView | None:
        return self._view(now).nodes.get(node)

    def _differs(self, slice_: str) -> bool:
        assert self._report is not None
        return any(found.slice == slice_ for found in self._report.differences)

    def _has(self, terms: SliceTerms) -> bool:
        """True if the applier compared the slice under exactly these terms."""
        assert self._report is not None
        return self._report.terms.get(terms.name) == digest_of(terms)

    def _answer(self, done: bool, key: RefusalKey, now: datetime, *, known: bool = False) -> Answer:
        """`known`: the applier has reported it as being in progress; no news is expected for it."""
        assert self._report is not None
        if done:
            return Done()
        if (refused := self._report.refusals.get(key)) is not None:
            return refused
        if not known:
            self._asked = self._asked or now
        return Busy(now + LOOK, f"cluster {self._name} has not reported it yet")

    def _view(self, now: datetime) -> ClusterView:
        """The reported view; raises Fault if there is no valid one."""
        report = self._read()
        if report is None:
            raise self._silent("has not reported yet; start `egs-reconciler apply` inside it")
        if self._report is not report:
            self._report, self._news, self._asked = report, min(now, report.at), None
        assert self._news is not None
        if report.view is None:
            raise self._silent(f"is unreachable for its own applier: {report.trouble}")
        if now > self._news + report.every + self._spec.stale:
            raise self._silent(f"has been silent since {self._news:%Y-%m-%dT%H:%M:%SZ}; check its applier")
        if self._asked is not None and now - self._asked > self._spec.stale:
            since = f"{self._asked:%Y-%m-%dT%H:%M:%SZ}"
            raise self._silent(f"has not reported on the decisions of {since}; check its applier")
        return report.view

    def _silent(self, what: str) -> Fault:
        return Fault(f"cluster {self._name} {what}", "ClusterUnreachable")


def _left(node: NodeView, uid: str) -> bool:
    return node.lease is None or node.lease.uid != uid
