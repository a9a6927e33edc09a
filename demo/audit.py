"""Watches a run and reports at its end whether every promise was kept. Pure; fed with committed statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.lifecycle.provisioned import is_clean
from reconciler.model.status_edits import lease_duration
from schemas.status.gpr_status import TERMINAL, GPRStatus, Phase


@dataclass(slots=True)
class History:
    """The history of one request, as committed."""

    first_promise: datetime | None = None
    promise: datetime | None = None
    known_slips: int = 0
    last: GPRStatus | None = None


@dataclass(slots=True)
class Audit:
    """Collects broken promises as sentences; an empty list is a good run."""

    broken: list[str] = field(default_factory=list)
    requests: dict[str, History] = field(default_factory=dict)

    def see(self, requests: Mapping[str, GPRStatus]) -> None:
        """Check one commit's statuses."""
        for key, status in requests.items():
            history = self.requests.setdefault(key, History())
            if status is not history.last:
                self._compare(key, history, status)
                history.last = status
        self._two_at_once(requests)

    def _compare(self, key: str, history: History, status: GPRStatus) -> None:
        start = status.start_time or status.estimated_start_time
        if start is not None:
            later = history.promise is not None and start > history.promise
            if later and len(status.slips) <= history.known_slips:
                self.broken.append(f"{key} moved from {history.promise} to {start} without a cause")
            history.first_promise = history.first_promise or start
            history.promise = start
        history.known_slips = max(history.known_slips, len(status.slips))
        if status.phase is Phase.COMPLETED and status.start_time and status.end_time:
            strict = status.start_time + lease_duration(status) + status.extended_by
            if status.end_time > strict:
                self.broken.append(f"{key} ended at {status.end_time}, after its strict end {strict}")

    def _two_at_once(self, requests: Mapping[str, GPRStatus]) -> None:
        slices: dict[str, str] = {}
        nodes: dict[tuple[str, str], str] = {}
        for key, status in sorted(requests.items()):
            held = status.assignment
            if held is None or status.phase in TERMINAL:
                continue
            for name in held.nodes:
                if is_clean(status, name):
                    continue  # a clean node may serve the next request while the others still drain
                other = nodes.setdefault((held.cluster, name), key)
                if other != key:
                    self.broken.append(f"{held.cluster}/{name} belongs to {other} and to {key}")
            if status.phase is Phase.PROVISIONED:
                other = slices.setdefault(status.accepted_spec.slice, key)
                if other != key:
                    self.broken.append(f"{status.accepted_spec.slice} holds {other} and {key} at once")

    def finish(self) -> None:
        """Report requests that never finished."""
        for key, history in sorted(self.requests.items()):
            if history.last is not None and history.last.phase not in TERMINAL:
                self.broken.append(f"{key} is still {history.last.phase}")
