"""Every alert reads metrics that exist, and a person who is woken by it finds what to do (every alert)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.acting.actions import Do
from reconciler.clock import ManualClock
from reconciler.model.events import EventReason
from reconciler.processes.metrics import Metrics
from reconciler.store.store_port import Outcome
from reconciler.telling.courier import Answer
from schemas.status.gpr_status import Cause
from schemas.status.node_status import NodeState
from tests.support.world import START

ROOT = Path(__file__).parents[2]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/chart/files/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DOCS = (ROOT / "docs/reference/controller-alerts.md").read_text(encoding="utf-8")
VALUES = {
    "reason": {str(told) for told in EventReason},
    "outcome": {outcome.value for outcome in Outcome},
    "answer": {"Accepted", "Refused", "Failed"} | {str(answer) for answer in Answer},
    "cause": {str(cause) for cause in Cause},
    "state": {str(state) for state in NodeState},
    "action": {do.name.lower() for do in Do},
}
"""What the labels that alerts compare may hold."""


def metrics() -> dict[str, tuple[str, ...]]:
    """Every name that can be asked for, with its labels."""
    registry = Metrics(ManualClock(START)).registry
    found: dict[str, tuple[str, ...]] = {}
    for collector, names in registry._collector_to_names.items():
        for name in names:
            found[name] = getattr(collector, "_labelnames", ())
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_reads_metrics_and_labels_that_exist(rule):
    known = metrics()
    names = re.findall(r"\begs_\w+", rule["expr"])
    assert names
    assert [name for name in names if name not in known] == []
    for label, _, text in re.findall(r"(\w+)(=~|!=|=)\"([^\"]*)\"", rule["expr"]):
        assert set(text.split("|")) <= VALUES[label], f"{label} never is {text}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_where_to_read_on(rule):
    name, text = rule["alert"], rule["annotations"]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert text["runbook"] == f"docs/reference/controller-alerts.md#{name.lower()}"
    assert text["summary"]
    assert text["description"].endswith(".")
    by = re.findall(r"by \(([^)]*)\)", rule["expr"])
    given = {label.strip() for labels in by for label in labels.split(",")}
    assert set(re.findall(r"\$labels\.(\w+)", text["summary"] + text["description"])) <= given


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_its_heading_and_severity_in_the_docs(rule):
    found = re.search(rf"^## {rule['alert']}\n\n(\w+)\. \S", DOCS, re.MULTILINE)
    assert found is not None, "docs/reference/controller-alerts.md does not say what to do"
    assert found[1].lower() == rule["labels"]["severity"]


def test_the_docs_explain_no_alert_that_is_not_there():
    assert re.findall(r"^## (Egs\w+)$", DOCS, re.MULTILINE) == [rule["alert"] for rule in RULES]
