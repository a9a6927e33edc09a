"""What agents report, from their own branches; one report a node, parsed once."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from reconciler.facts import NodeKey
from reconciler.store.port import Store
from schemas.status import AgentReport
from schemas.strictyaml import Refused, load

log = logging.getLogger(__name__)

PATTERN = "egs/agents/*/*"
FILE = "report.yaml"


class Reports:
    """The last good report of every agent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[str, AgentReport | None]] = {}

    def read(self, clusters: Mapping[str, Any]) -> dict[NodeKey, AgentReport]:
        """Reports by cluster and node; an agent speaks only for the cluster its branch is named after."""
        found: dict[NodeKey, AgentReport] = {}
        tips = {b: t for b, t in self._store.tips().items() if b.startswith("egs/agents/")}
        self._known = {b: known for b, known in self._known.items() if b in tips}
        for branch, tip in sorted(tips.items()):
            if self._known.get(branch, ("", None))[0] != tip:
                last = self._known.get(branch, ("", None))[1]
                self._known[branch] = (tip, self._parse(branch, tip) or last)
            report, cluster = self._known[branch][1], branch.split("/")[2]
            if report is not None and report.cluster == cluster and cluster in clusters:
                key = (cluster, report.node)
                if key not in found or found[key].at < report.at:
                    found[key] = report
        return found

    def _parse(self, branch: str, tip: str) -> AgentReport | None:
        data = self._store.read_path(tip, FILE)
        if data is None:
            return None
        try:
            return AgentReport.model_validate_json(json.dumps(load(data)))
        except (Refused, ValidationError):
            log.warning("report not read branch=%s; the agent's operator should look at it", branch)
            return None
