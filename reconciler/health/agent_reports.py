"""Agents' reports, from their own branches; one report per node, parsed once.

If agents sign, a report counts only if the branch's agent signed it, it is about the agent's own node, and it
is not older than the last one that counted; anything else on the branch, or its deletion, leaves that last
report in force, as long as its key counts. A report dated in the future is ignored until its time has come:
it hides neither earlier nor later reports.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import ValidationError

from reconciler.health.node_health import AHEAD
from reconciler.model.facts import NodeKey
from reconciler.store.believed_commit import UNREADABLE
from reconciler.store.store_port import REGULAR_MODE, Store
from reconciler.trust.machines import Machines, Signed
from schemas.documents.cluster import AgentKey, ClusterSpec
from schemas.errors import Fault
from schemas.reading.strict_yaml import MAX_BYTES, Refused, load
from schemas.status.node_status import AgentReport

log = logging.getLogger(__name__)

PREFIX = "egs/agents/"
PATTERN = f"{PREFIX}*/*"
FILE = "report.yaml"
SIGNATURE = "report.yaml.sig"
MOST_ALARMS = 20
"""Branches that are reported one by one."""
SEARCHED = 20
"""Commits below a branch's head that are searched for the last valid report; agents write on change only."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of one branch at the last look."""

    tip: str = ""  # empty: must be read again
    keys: tuple[AgentKey, ...] | None = None  # the agent's keys in the manifest; None: no signature needed
    report: AgentReport | None = None
    alarm: str = ""
    proof: Signed | None = None  # the signed report; None: no signature needed
    early: datetime | None = None  # when a report dated in the future is due


class Reports:
    """The last good report of every agent."""

    def __init__(self, store: Store, machines: Machines | None = None) -> None:
        """`machines` verifies agents' signatures; None: every report counts."""
        self._store, self._machines = store, machines
        self._known: dict[str, _Known] = {}
        self._keys: object = None  # the trust folder's keys at the last reading
        # What an earlier process fetched last from a shared mirror: older reports no longer count.
        self._before = {
            b: t for b, t in store.tips().items() if machines is not None and b.startswith(PREFIX)
        }

    @property
    def alarms(self) -> tuple[str, ...]:
        """A sentence for each branch whose head is not its agent's, as of the last reading."""
        found = [known.alarm for _, known in sorted(self._known.items()) if known.alarm]
        more = len(found) - MOST_ALARMS
        rest = [f"{more} more agent branches have foreign commits"] if more > 0 else []
        return (*found[:MOST_ALARMS], *rest)

    def read(self, clusters: Mapping[str, ClusterSpec], now: datetime) -> dict[NodeKey, AgentReport]:
        """Reports by cluster and node; an agent reports only for the cluster its branch is named after.

        A report dated in the future counts when its time has come: it must not hide newer reports until then.
        """
        found: dict[NodeKey, AgentReport] = {}
        machines = self._machines
        self._heed_keys(clusters)
        asked = {
            name for name, spec in clusters.items() if machines is not None and machines.asks(name, spec)
        }
        for branch, tip in sorted(self._tips().items()):
            cluster = branch.split("/")[2]
            if cluster not in clusters:
                self._known.pop(branch, None)
                continue
            if cluster in asked:
                self._known[branch] = self._look_signed(branch, tip, clusters[cluster], now)
            else:
                self._known[branch] = self._look(branch, tip, now)
            report = self._known[branch].report
            if report is None or report.at > now + AHEAD or report.cluster != cluster:
                continue
            key = (cluster, report.node)
            if key not in found or found[key].at < report.at:
                found[key] = report
        return found

    def _heed_keys(self, clusters: Mapping[str, ClusterSpec]) -> None:
        """After a change of the trust folder a report still counts if its key does, and every branch is read again."""
        keys = None if self._machines is None else self._machines.keys()
        if self._machines is None or keys is self._keys or keys == self._keys:
            return
        self._keys = keys
        for branch, known in self._known.items():
            spec = clusters.get(branch.split("/")[2])
            proof = known.proof
            if proof is not None and spec is not None and not self._machines.believes(proof, spec):
                known = _Known(keys=known.keys)
            self._known[branch] = replace(known, tip="")

    def _tips(self) -> dict[str, str | None]:
        """The heads of agents' branches; a deleted branch whose signed report counted is still listed."""
        there: dict[str, str | None] = {
            b: t for b, t in self._store.tips().items() if b.startswith(PREFIX) and b.count("/") == 3
        }
        self._known = {
            b: k for b, k in self._known.items() if b in there or (k.keys is not None and k.report)
        }
        return dict.fromkeys(self._known) | there

    def _look(self, branch: str, tip: str | None, now: datetime) -> _Known:
        """The state of a branch where every report counts."""
        last = self._known.get(branch, _Known())
        if tip is None:
            return _Known()
        if (last.tip, last.keys) == (tip, None) and not _is_due(last, now):
            return last
        return self._tried(branch, last, lambda: self._plain(branch, tip, last, now))

    def _look_signed(self, branch: str, tip: str | None, spec: ClusterSpec, now: datetime) -> _Known:
        """The state of a branch where the agent's signature is needed."""
        last = self._known.get(branch, _Known())
        if last.keys != spec.agent_keys:
            last = _Known(keys=spec.agent_keys)  # with other keys, the last report may no longer count
        before = self._before.pop(branch, None)
        if before is not None:
            last = self._tried(branch, last, lambda: self._signed(branch, before, spec, last, now))
        if tip is None:
            alarm = "" if last.report is None else _wrong(branch, "is gone")
            return replace(last, tip="", alarm=alarm)
        if last.tip == tip and not _is_due(last, now):
            return last
        return self._tried(branch, last, lambda: self._signed(branch, tip, spec, last, now))

    def _tried(self, branch: str, last: _Known, look: Callable[[], _Known]) -> _Known:
        """After a failed read the branch is read again; until then the last good report counts."""
        try:
            return look()
        except Fault as fault:
            log.debug("report not read branch=%s reason=%s", branch, fault.reason)
            return replace(last, tip="")

    def _plain(self, branch: str, tip: str, last: _Known, now: datetime) -> _Known:
        """The head's report, or the last good one."""
        data = self._read(branch, tip, FILE).get(FILE)
        report = None if data is None else _parsed(branch, data)
        if report is None or not _is_early(report, now):
            return _Known(tip, None, report or last.report)
        return _Known(tip, None, last.report, early=report.at)

    def _signed(self, branch: str, tip: str, spec: ClusterSpec, last: _Known, now: datetime) -> _Known:
        """The newest report signed by the branch's agent, unless a newer one counted already."""
        early: datetime | None = None
        commit, report, proof = "", last.report, last.proof
        for step, signed, found in self._believed(branch, tip, spec):
            if not _is_early(found, now):
                commit, report, proof = step, found, signed
                break
            early = found.at if early is None else min(early, found.at)
        if commit == tip:
            alarm = ""
        elif early is not None:
            alarm = f"branch {branch} has a report dated {early:%Y-%m-%dT%H:%M:%SZ}, which is in the future; {_CLOCK}"
        else:
            alarm = _wrong(branch, f"has a commit {tip[:12]} that is not by its agent")
        if report is not None and last.report is not None and report.at < last.report.at:
            alarm = alarm or _wrong(branch, f"was reset to {tip[:12]}")
            report, proof = last.report, last.proof
        if alarm and alarm != last.alarm:
            log.warning("report does not count branch=%s tip=%s; protect the branch", branch, tip[:12])
        return _Known(tip, spec.agent_keys, report, alarm, proof, early)

    def _believed(
        self, branch: str, tip: str, spec: ClusterSpec
    ) -> Iterator[tuple[str, Signed, AgentReport]]:
        """Commits with a validly signed report, newest first, along first parents."""
        assert self._machines is not None
        _, _, cluster, agent = branch.split("/")
        step: str | None = tip
        for _ in range(SEARCHED):
            if step is None:
                return
            files = self._read(branch, step, FILE, SIGNATURE)
            data, signature = files.get(FILE), files.get(SIGNATURE, b"").decode("ascii", "replace")
            report = _parsed(branch, data) if data is not None and signature else None
            if report is not None and data is not None and speaks_for(report, cluster, agent):
                signed = Signed(cluster, agent, data, signature, report.at)
                yield from [(step, signed, report)] if self._machines.believes(signed, spec) else []
            step = self._store.parent(step)

    def _read(self, branch: str, commit: str, *names: str) -> dict[str, bytes]:
        """As `_files`; empty for an unreadable commit, which no agent writes."""
        try:
            return self._files(branch, commit, *names)
        except Fault as fault:
            if fault.reason not in UNREADABLE - {"CorruptObjects"}:
                raise  # the mirror may be broken, and repaired by the next look
            log.warning("report not read branch=%s message=%s; protect the branch", branch, fault)
            return {}

    def _files(self, branch: str, commit: str, *names: str) -> dict[str, bytes]:
        """Those of a commit's files that are plain; files larger than any report are never read."""
        entries = self._store.diff(None, commit)
        there = {e.path: e.oid for e in entries if e.path in names and e.mode == REGULAR_MODE and e.oid}
        sizes = self._store.sizes(there.values())
        if any(size > MAX_BYTES for size in sizes.values()):
            log.warning("report too large branch=%s; the agent's operator should check it", branch)
            return {}
        contents = self._store.read(there.values())
        return {path: contents[oid] for path, oid in there.items()}


def _parsed(branch: str, data: bytes) -> AgentReport | None:
    try:
        return AgentReport.model_validate_json(json.dumps(load(data)), extra="ignore")  # of a newer agent
    except (Refused, ValidationError):
        log.warning("report not read branch=%s; the agent's operator should check it", branch)
        return None


def speaks_for(report: AgentReport, cluster: str, agent: str) -> bool:
    """True if it is by that agent, about the node the agent is named after (`NODE`, or `NODE.` and more)."""
    own = agent == report.node or agent.startswith(f"{report.node}.")
    return own and report.cluster == cluster and report.metadata.name == agent


def _is_early(report: AgentReport, now: datetime) -> bool:
    return report.at > now + AHEAD


def _is_due(known: _Known, now: datetime) -> bool:
    """True if a report dated in the future is now due."""
    return known.early is not None and known.early <= now + AHEAD


_CLOCK = "it counts once that time has come, until then the previous one does: correct the clock of the agent's machine"


def _wrong(branch: str, what: str) -> str:
    return (
        f"branch {branch} {what}; its last signed report stays in force. Only the agent may push there: protect "
        "the branch, or if the agent has a new key, list it in the cluster's agentKeys"
    )
