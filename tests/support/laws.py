"""What must hold after every cycle, whatever happened: on what was committed and on what the clusters show.

`Laws(world)` watches a world. It judges each commit against the one before it and each cluster as it stands, and
knows nothing of how decisions are made; `broken` collects sentences, so that one history tells all that it breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.clusters.simulated.simulated_world import view_of
from reconciler.cycle import Cycle
from reconciler.model.cluster_port import NodeView
from reconciler.model.events import MARKS
from reconciler.model.facts import Facts
from reconciler.model.status_edits import counted_end, lease_duration, promised_start
from schemas.status.gpr_status import HOLDING, Cause, GPRStatus, Phase, SlipCause
from schemas.status.node_status import NodeState
from tests.support.world import World

LATEST = timedelta(minutes=1)
"""A hand-over this long after the committed start still counts as on time."""


class Laws:
    """Judges every cycle of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broken: list[str] = []
        self.commits = 0
        self._before: Facts | None = None
        self._tip: str | None = None
        self._decided: tuple[object, datetime] | None = None  # which controller did, and when, last
        self._was_absent = True
        self._marks: Counter[tuple[str, str, str]] = Counter()
        self._owned_since: dict[tuple[str, str, str], datetime] = {}
        world.watchers.append(self.watch)

    def watch(self, cycle: Cycle) -> None:
        """Look at everything after one cycle."""
        tip = self.world.remote.tips.get(self.world.settings.status_branch)
        self.commits += tip != self._tip
        self._tip = tip
        found = [*self._on_clusters(cycle.at)]
        if cycle.facts is not None and cycle.leading and not self.world.remote.down:
            self._was_absent = self._missed(cycle.at)
            found += self._on_commit(cycle)
            self._before = cycle.facts
        self.broken += [f"{cycle.at:%H:%M:%S} {sentence}" for sentence in found]

    def _missed(self, now: datetime) -> bool:
        """Whether a look at the world did not happen that should have, or another process looks now."""
        last, self._decided = self._decided, (self.world.controller, now)
        if last is None or last[0] is not self.world.controller:
            return True
        return now - last[1] > self.world.settings.poll

    def reads_back(self) -> None:
        """A stranger reads from the branch exactly what the controller goes by; its page shows the tables."""
        if self._before is not None and self._tip is not None:
            read = self.world.facts()
            for name in ("requests", "nodes", "clusters", "usage", "held_deletions"):
                if getattr(read, name) != getattr(self._before, name):
                    self.broken.append(f"{name} read back otherwise than written")
        page = self.world.text("README.md") or ""
        if self._tip is not None and not all(
            f"## {head}" in page for head in ("Running", "Waiting", "Nodes")
        ):
            self.broken.append("the page of the status branch lacks its tables")

    # -- what is committed -----------------------------------------------------------------------------------

    def _on_commit(self, cycle: Cycle) -> Iterator[str]:
        facts = cycle.facts
        assert facts is not None
        yield from _one_holder_a_node(facts)
        yield from _one_request_a_slice(facts)
        yield from self._marks_once(cycle)
        for key, status in facts.requests.items():
            yield from _ends_are_strict(key, status, cycle.at)
            old = self._before.requests.get(key) if self._before is not None else None
            if old is not None and old is not status and old.uid == status.uid and self._before is not None:
                yield from _slips_are_named(key, old, status)
                yield from self._causes_happened(key, old, status, facts)
                yield from self._starts_are_kept(key, old, status, cycle.at)

    def _marks_once(self, cycle: Cycle) -> Iterator[str]:
        for event in cycle.events:
            if event.reason in MARKS.values() and cycle.facts is not None:
                status = cycle.facts.requests[event.request]
                old = self._before.requests.get(event.request) if self._before is not None else None
                begun = status.start_time if old is None or old.start_time is None else old.start_time
                mark = (status.uid, str(event.reason), str(begun))  # once in each lease of a requeued request
                self._marks[mark] += 1
                if self._marks[mark] > 1:
                    yield f"{event.request} was told {event.reason} twice"

    def _starts_are_kept(self, key: str, old: GPRStatus, new: GPRStatus, now: datetime) -> Iterator[str]:
        if (old.phase, new.phase) != (Phase.PROVISIONING, Phase.PROVISIONED):
            return
        assert new.assignment is not None
        if new.start_time != old.estimated_start_time:
            yield f"{key} was promised {old.estimated_start_time} and says it started {new.start_time}"
        cluster = new.assignment.cluster
        seen = [self._owned_since.get((cluster, node, new.uid), now) for node in new.assignment.nodes]
        if new.start_time is None or max(seen) - new.start_time > LATEST:
            yield f"{key} has its nodes since {max(seen)}, its start was {new.start_time}"

    def _causes_happened(self, key: str, old: GPRStatus, new: GPRStatus, facts: Facts) -> Iterator[str]:
        assert self._before is not None
        for slip in new.slips[len(old.slips) :] if new.slips[: len(old.slips)] == old.slips else ():
            for one in slip.causes:
                if not self._happened(one, one.by, facts):
                    yield f"{key} slipped for {one.cause} by {one.by!r}, and that did not change"

    def _happened(self, slip: SlipCause, by: str, facts: Facts) -> bool:
        """Whether what a slip blames really is another than it was in the commit before."""
        before = self._before
        assert before is not None
        if by in facts.requests or by in before.requests:
            return facts.requests.get(by) != before.requests.get(by) or facts.intent != before.intent
        if slip.cause in {Cause.CONTROLLER_ABSENT, Cause.POLICY_CHANGED, Cause.MAINTENANCE_ADDED}:
            absent = slip.cause is Cause.CONTROLLER_ABSENT and self._was_absent
            return absent or facts.intent != before.intent
        cluster, node = by.split("/")[0], by.split("/")[-1]
        if slip.cause is Cause.CLUSTER_UNREACHABLE:
            now, then = facts.clusters.get(cluster), before.clusters.get(cluster)
            return now is not None and (not now.reachable or now != then)
        if by in facts.clusters:  # its checks take longer than it said
            return slip.cause is Cause.CHECKS_FAILED
        record = facts.nodes.get((cluster, node))
        lost = record is not None and record != before.nodes.get((cluster, node))
        # One that is not clean yet was awaited until now.
        lost = lost or (record is not None and record.state is NodeState.DIRTY)
        lost = lost or _is_found(cluster, node, before) > _is_found(cluster, node, facts)
        lost = lost or facts.scales.get((cluster, node)) != before.scales.get(
            (cluster, node)
        )  # a late pool's
        return lost or _is_checked(node, facts) or facts.intent != before.intent

    # -- what clusters show ----------------------------------------------------------------------------------

    def _on_clusters(self, now: datetime) -> Iterator[str]:
        holders: dict[str, set[str]] = {}
        shown = set()
        for name, node in self.nodes(now):
            if node.lease is not None:
                key = (name, node.name, node.lease.uid)
                shown.add(key)
                self._owned_since.setdefault(key, now)
                if now < node.lease.end and not self._is_over(node.lease.request):
                    holders.setdefault(node.lease.slice, set()).add(node.lease.request)
        self._owned_since = {key: since for key, since in self._owned_since.items() if key in shown}
        for slice_, requests in sorted(holders.items()):
            if len(requests) > 1:
                yield f"slice {slice_} holds nodes for {', '.join(sorted(requests))} at once"

    def nodes(self, now: datetime) -> Iterator[tuple[str, NodeView]]:
        """Every node as it is in the simulation, also where its API does not answer."""
        for name, driver in sorted(self.world.drivers.items()):
            with driver._state.locked() as world:
                view = view_of(world, driver._fleet, now)
            for node in view.nodes.values():
                yield name, node

    def _is_over(self, key: str) -> bool:
        status = None if self._before is None else self._before.requests.get(key)
        return status is None or status.phase not in {Phase.PROVISIONING, Phase.PROVISIONED}


def _one_holder_a_node(facts: Facts) -> Iterator[str]:
    holders: dict[tuple[str, str], list[str]] = {}
    for key, status in sorted(facts.requests.items()):
        if status.phase not in HOLDING or status.assignment is None:
            continue
        clean = {check.node for check in status.checks if check.stage == "post"}
        for node in status.assignment.nodes:
            record = facts.nodes.get((status.assignment.cluster, node))
            gone = record is not None and record.state in {NodeState.LOST, NodeState.DIRTY}
            if not (status.phase is Phase.RELEASING and (node in clean or gone)):
                holders.setdefault((status.assignment.cluster, node), []).append(key)
    for (cluster, node), keys in sorted(holders.items()):
        if len(keys) > 1:
            yield f"{cluster}/{node} is committed to {' and '.join(keys)}"


def _one_request_a_slice(facts: Facts) -> Iterator[str]:
    running: dict[str, list[tuple[datetime, datetime, str]]] = {}
    for key, status in sorted(facts.requests.items()):
        start = status.start_time or status.estimated_start_time
        end = counted_end(status) or status.estimated_end_time
        if status.phase in HOLDING and start is not None and end is not None:
            running.setdefault(status.accepted_spec.slice, []).append((start, end, key))
    for slice_, leases in sorted(running.items()):
        for i, (start, end, key) in enumerate(leases):
            for other_start, other_end, other in leases[i + 1 :]:
                if start < other_end and other_start < end:
                    yield f"slice {slice_} runs {key} and {other} at once"


def _ends_are_strict(key: str, status: GPRStatus, now: datetime) -> Iterator[str]:
    if status.phase is not Phase.PROVISIONED:
        return
    assert status.start_time is not None
    least = status.start_time + lease_duration(status)
    # What was left of a request that queued again holds the grace that it had got by then.
    most = least + status.extended_by
    if (
        status.end_time is None
        or not (least if status.remaining is not None else most) <= status.end_time <= most
    ):
        yield f"{key} ends at {status.end_time}, which is not its start and its duration"
    if status.end_time is None or now >= status.end_time:
        yield f"{key} is Provisioned at {now}, past its end"


def _slips_are_named(key: str, old: GPRStatus, new: GPRStatus) -> Iterator[str]:
    planned, holding = {Phase.QUEUED, Phase.PROVISIONING}, {Phase.PROVISIONED, Phase.RELEASING}
    is_handed_over = old.phase in planned and new.phase is Phase.PROVISIONED
    was, now = promised_start(old), new.estimated_start_time if is_handed_over else promised_start(new)
    still_goes = old.phase in holding and new.phase in holding and new.eviction is not None
    waits = new.phase in planned or still_goes or is_handed_over
    if was is None or old.phase not in planned | holding or not waits:
        return
    if now is not None and now <= was:
        return
    if new.delayed_count <= old.delayed_count or not new.slips:
        yield f"{key} moved from {was} to {now} and nothing says why"
    elif now != new.slips[-1].now:
        yield f"{key} moved to {now}, its slip says {new.slips[-1].now}"


def _is_found(cluster: str, node: str, facts: Facts) -> bool:
    """The cluster shows that node in a pool that looks for its nodes."""
    return any(key[0] == cluster and node in nodes for key, nodes in facts.found.items())


def _is_checked(node: str, facts: Facts) -> bool:
    """A failed check of that node is on record with some request."""
    return any(c.node == node and not c.passed for s in facts.requests.values() for c in s.checks)
