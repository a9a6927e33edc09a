"""The branch with an applier's reports: one writer, few pushes, and which of several appliers is active.

What the centre waits for (leases, failed checks, refusals) is pushed at once, other changes as the budget
allows; workloads change too often and are included with the next push. Without news a report is due every
`report_every`, and during operations twice per `stale`, so that the centre can tell a working applier from a
dead one.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.clusters.applier_report import Files, Rendering, Report
from reconciler.clusters.pulled_cluster import ReportBranches, branch_of
from reconciler.model.cluster_port import ClusterView, NodeView
from reconciler.settings import Settings
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.store_port import Commit, Person, Store
from reconciler.store.write_decision import WriterSettings
from reconciler.store.write_results import Postponed, outcome_of
from reconciler.trust.machines import Machines
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

log = logging.getLogger(__name__)

AUTHOR = Person("EGS applier", "applier@egs.dev")
_NEVER = timedelta(days=1)


class Bulletin:
    """One applier's branch. One owner."""

    def __init__(
        self, store: Store, cluster: str, settings: Settings, writer: str, machines: Machines | None = None
    ) -> None:
        """`machines` verifies the cluster's appliers; None: any writer with a later term is one."""
        self._store, self._cluster, self._machines = store, cluster, machines
        self._spec: ClusterSpec | None = None  # as last checked
        self._branch = branch_of(cluster)
        budget = WriterSettings(pushes_per_minute=settings.pushes_per_minute)
        believes = None if machines is None else self._believes
        self._writer = BranchWriter(store, self._branch, writer, AUTHOR, budget, believes=believes)
        self._others = ReportBranches(store, machines)
        self._rendering = Rendering()
        self._settings = settings
        self._begun = False  # the branch has been ours since our turn began
        self._told: Report | None = None  # the report on the branch
        self._at: datetime | None = None  # since when it does
        # The other applier's last report, and since when we have it.
        self._heard: tuple[Report | None, datetime] = (None, datetime.min.replace(tzinfo=UTC))
        self._outcome = ""  # of the last take-over
        self.pushed = ""
        """The result of the last push."""

    def _believes(self, commit: Commit) -> bool:
        """True if it is by an applier of this cluster, as far as keys show."""
        assert self._machines is not None
        assert self._spec is not None, "`takes` comes first"
        by_keys = self._machines.applier(self._cluster, self._spec)
        return by_keys is None or by_keys(commit)

    def begin(self) -> None:
        """Our turn begins: the branch is taken from its present owner."""
        self._begun = False

    def takes(self, now: datetime, spec: ClusterSpec, *, reachable: bool) -> bool:
        """True if this process is active: it started last, or the one that did is silent.

        While the branch is unreachable, every applier carries out what is committed: stamps keep the order.
        """
        self._spec = spec
        if self._writer.check() or not reachable:
            return True
        if self._begun and self._writer.superseded and not self._is_silent(spec, now):
            return False
        self._told = None
        try:
            outcome = outcome_of(self._writer.take_over(now))
        except Fault as fault:
            outcome = fault.reason
        self._begun = self._begun or self._writer.leading
        if not self._writer.leading and outcome != self._outcome:
            log.warning(
                "branch not taken branch=%s outcome=%s; check the permission to push it",
                self._branch,
                outcome,
            )
        self._outcome = outcome
        return not self._writer.superseded

    def _is_silent(self, spec: ClusterSpec, now: datetime) -> bool:
        try:
            other = self._others.read(self._cluster, spec)
        except Fault:
            return True
        if other is None:
            return True
        if other != self._heard[0]:
            self._heard = (other, min(now, other.at))  # a fast clock must not keep its turn for long
        return now > self._heard[1] + other.every + spec.stale

    def publish(
        self, report: Report, spec: ClusterSpec, now: datetime, *, reachable: bool, busy: bool
    ) -> datetime:
        """Pushes the report if it has news or is due; returns when to check again."""
        self.pushed = ""
        every = min(report.every, spec.stale / 2) if busy else report.every
        report = replace(report, every=every)
        old = self._told
        wait = every if old is None else min(every, old.every)
        due = now if self._at is None else self._at + wait
        if old is not None and now < due and _said(old) == _said(report):
            return due
        if not reachable or not self._writer.leading:
            return now + _NEVER  # the next fetch comes first
        urgent = old is None or _awaited(old) != _awaited(report)
        try:
            changes, summary = self._changes(report), self._summary(report)
            result = self._writer.write(changes, None, now, summary, urgent=urgent)
        except Fault as fault:
            log.warning("report not written reason=%s message=%s; retrying", fault.reason, fault)
            return now + self._settings.poll
        self.pushed = outcome_of(result)
        if result.landed:
            self._told, self._at = report, now
            return now + every
        return result.until if isinstance(result, Postponed) else now + self._settings.poll

    def _changes(self, report: Report) -> dict[str, bytes | None]:
        files: Files = self._rendering.files(self._cluster, report)
        tip = self._writer.tip
        there = () if tip is None else (entry.path for entry in self._store.diff(None, tip))
        return {path: None for path in there if path not in files} | files

    def _summary(self, report: Report) -> str:
        if report.view is None:
            return f"{self._cluster}: its API server does not answer"
        leased = sum(node.lease is not None for node in report.view.nodes.values())
        return f"{self._cluster}: {len(report.view.nodes)} nodes, {leased} leased"


def _said(report: Report) -> tuple[object, ...]:
    """The parts whose changes are news; not workloads, the time, and past leases."""
    view = report.view
    if view is None:
        seen: tuple[object, ...] | None = None
    else:
        seen = (
            view.nodes,
            view.slices,
            view.unmanaged,
            view.sizes,
            view.queues,
            view.exports,
            _waiting(view),
        )
    return seen, report.differences, report.terms, report.checks, _awaited(report)


def _waiting(view: ClusterView) -> frozenset[str]:
    """Slices with a GPU workload waiting for nodes: some requests begin early for one."""
    return frozenset(w.slice for w in view.workloads if w.gpus > 0 and w.phase == "Pending")


def _awaited(report: Report) -> tuple[object, ...]:
    """What the centre waits for, or must act on before a start."""
    view = report.view
    held = {} if view is None else {name: _hands(node) for name, node in view.nodes.items()}
    failed = {
        key: found
        for key, found in report.checks.items()
        if isinstance(found, tuple) and not all(result.passed for result in found)
    }
    return held, failed, report.refusals, bool(report.trouble), None if view is None else view.sizes


def _hands(node: NodeView) -> tuple[object, ...]:
    return node.lease, node.draining, node.isolated
