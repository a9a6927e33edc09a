"""What agents report, from their own branches; one report a node, parsed once."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from reconciler.facts import NodeKey
from reconciler.health import AHEAD
from reconciler.store.port import REGULAR_MODE, Store
from schemas.errors import Fault
from schemas.status import AgentReport
from schemas.strictyaml import MAX_BYTES, Refused, load

log = logging.getLogger(__name__)

PATTERN = "egs/agents/*/*"
FILE = "report.yaml"


class Reports:
    """The last good report of every agent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[str, AgentReport | None]] = {}

    def read(self, clusters: Mapping[str, Any], now: datetime) -> dict[NodeKey, AgentReport]:
        """Reports by cluster and node; an agent speaks only for the cluster its branch is named after.

        A report dated in the future counts when its time has come: it must not hide what is newer by then.
        """
        found: dict[NodeKey, AgentReport] = {}
        tips = {b: t for b, t in self._store.tips().items() if b.startswith("egs/agents/")}
        self._known = {b: known for b, known in self._known.items() if b in tips}
        for branch, tip in sorted(tips.items()):
            if self._known.get(branch, ("", None))[0] != tip:
                self._learn(branch, tip)
            report, cluster = self._known[branch][1], branch.split("/")[2]
            if report is None or report.at > now + AHEAD:
                continue
            if report.cluster == cluster and cluster in clusters:
                key = (cluster, report.node)
                if key not in found or found[key].at < report.at:
                    found[key] = report
        return found

    def _learn(self, branch: str, tip: str) -> None:
        """The branch's new report, or the last good one; what could not be looked at is looked at again."""
        last = self._known.get(branch, ("", None))[1]
        try:
            self._known[branch] = (tip, self._parse(branch, tip) or last)
        except Fault as fault:
            log.debug("report not read branch=%s reason=%s", branch, fault.reason)
            self._known[branch] = ("", last)

    def _data(self, branch: str, tip: str) -> bytes | None:
        """The report's bytes; nothing larger than a report can be is ever read."""
        entries = self._store.diff(None, tip)
        oid = next((e.oid for e in entries if e.path == FILE and e.mode == REGULAR_MODE), None)
        if oid is None:
            return None
        if self._store.sizes([oid])[oid] > MAX_BYTES:
            log.warning("report too large branch=%s; the agent's operator should look at it", branch)
            return None
        return self._store.read([oid])[oid]

    def _parse(self, branch: str, tip: str) -> AgentReport | None:
        data = self._data(branch, tip)
        if data is None:
            return None
        try:
            return AgentReport.model_validate_json(json.dumps(load(data)))
        except (Refused, ValidationError):
            log.warning("report not read branch=%s; the agent's operator should look at it", branch)
            return None
