"""Whether a request that holds nodes has the namespaces of its slice; a condition reports missing ones. Pure.

It keeps its nodes: only pods in those namespaces can use them, so the condition explains why none runs.
"""

from __future__ import annotations

from reconciler.model.cluster_port import Difference
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, RequestOutcome
from reconciler.model.status_edits import with_condition, without_condition
from schemas.status.gpr_status import Condition, GPRStatus, Phase

NOT_READY = "NamespaceNotReady"
"""The condition of a request whose slice lacks one of its namespaces."""
OBJECT = "Namespace "


def says_so(status: GPRStatus) -> bool:
    return any(condition.type == NOT_READY for condition in status.conditions)


def home_outcome(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """The request with the problems of its slice's namespaces; a cluster that cannot report them changes nothing."""
    held = status.assignment
    if held is None or status.phase not in {Phase.PROVISIONING, Phase.PROVISIONED}:
        return RequestOutcome(without_condition(status, NOT_READY))
    found = context.seen.differences.get(held.cluster)
    if found is None:
        return RequestOutcome(status)
    wrong = [d for d in found if d.slice == status.accepted_spec.slice and _matters(d, status)]
    if not wrong:
        return _ready(key, status, context)
    text = (
        f"{'; '.join(_sentence(d) for d in wrong[:3])}; until this is fixed its pods may not run on its nodes"
    )
    noted = with_condition(status, Condition(type=NOT_READY, reason=NOT_READY, message=text, at=context.now))
    if says_so(status):
        return RequestOutcome(noted)
    told = Event(context.now, EventReason.NAMESPACE_NOT_READY, f"{key}: {text}", key, held.cluster)
    return RequestOutcome(noted, (told,))


def _ready(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    if not says_so(status):
        return RequestOutcome(status)
    assert status.assignment is not None
    text = f"{key}: the namespaces of its slice are correct again"
    told = Event(context.now, EventReason.NAMESPACE_READY, text, key, status.assignment.cluster)
    return RequestOutcome(without_condition(status, NOT_READY), (told,))


def _matters(difference: Difference, status: GPRStatus) -> bool:
    """Before the start a missing namespace is normal: it is just being created."""
    if not difference.object.startswith(OBJECT):
        return False
    is_new = difference.found == "missing" and status.phase is Phase.PROVISIONING
    return difference.found != "extra" and not is_new


def _sentence(difference: Difference) -> str:
    name = difference.object.removeprefix(OBJECT)
    if difference.found == "missing":
        return f"namespace {name} of its slice is missing"
    return f"namespace {name} differs from what its slice needs: {difference.detail}"
