"""GPU pods that stay on a request's nodes after its end: reported in its condition. Pure.

The nodes (`reconciler.health.node_health`) are quarantined after a while, and the request no longer waits for
them. Held by tests/cases/reconciler/nodes.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.health.node_health import NOT_CLEAN, PODS_STAY
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context
from reconciler.model.status_edits import with_condition, without_condition
from schemas.status.gpr_status import Condition, GPRStatus
from schemas.status.node_status import NodeRecord

STAYING: Final = PODS_STAY
"""The condition of a request whose nodes are not clean because of remaining pods."""


def with_staying(
    key: str, status: GPRStatus, unclean: Iterable[str], context: Context
) -> tuple[GPRStatus, tuple[Event, ...]]:
    """The request with the pods remaining on its unclean nodes; an event reports the first time."""
    held = status.assignment
    if held is None or held.cluster not in context.seen.views:
        return status, ()
    found = {
        node: record for node in unclean if (record := _of_pods(held.cluster, node, context)) is not None
    }
    if not found:
        return without_condition(status, STAYING), ()
    text = "; ".join(f"{node} is {record.state}: {record.message}" for node, record in sorted(found.items()))
    noted = with_condition(status, Condition(type=STAYING, reason=STAYING, message=text, at=context.now))
    if any(condition.type == STAYING for condition in status.conditions):
        return noted, ()
    node = min(found)
    told = Event(
        context.now, EventReason.POST_CHECK_FAILED, f"not clean after {key}: {text}", key, held.cluster, node
    )
    return noted, (told,)


def is_given_up(cluster: str, node: str, context: Context) -> bool:
    """True if the node is left to operators because pods did not terminate."""
    record = context.nodes.get((cluster, node))
    return record is not None and record.reason == PODS_STAY


def _of_pods(cluster: str, node: str, context: Context) -> NodeRecord | None:
    """The node's record, if it is about pods."""
    record, view = context.nodes.get((cluster, node)), context.seen.views[cluster].nodes.get(node)
    if record is None or view is None or not view.staying or record.reason not in {NOT_CLEAN, PODS_STAY}:
        return None
    return record
