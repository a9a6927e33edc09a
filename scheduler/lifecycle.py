"""The life of a request as one table. A pair that is absent is an illegal transition."""

from __future__ import annotations

from enum import StrEnum

from schemas.errors import Fault
from schemas.status.gpr_status import TERMINAL, Phase


class Event(StrEnum):
    """What can happen to a request."""

    APPROVE = "approve"  # an admin approves
    REJECT = "reject"  # an admin rejects
    ALLOW = "allow"  # after a change of policy or request no approval is needed any more
    WITHHOLD = "withhold"  # the same, or an expired approval: an approval is needed (again)
    CANCEL = "cancel"  # earlyRelease or a deleted file, before a decision
    DECIDE = "decide"  # nodes and start are committed
    CHECKS_FAILED = "checks failed"  # too few clean nodes at the start: back into the queue
    START = "start"  # the slice gets the nodes
    END = "end"  # strict end
    RELEASE = "release"  # earlyRelease after the decision, or idle nodes
    STOP = "stop"  # its people stop it after the decision and before its start: back into the queue
    EVICT = "evict"  # its nodes are taken with time left: for another request, or because its people stop it
    REQUEUE = "requeue"  # the last node is back and time is left: back into the queue
    NODES_FAILED = "nodes failed"  # too few nodes left, requeued for the rest of its time
    FAIL = "fail"  # nodes or checks failed for good: clean up, then Failed
    CLEAN = "clean"  # the last node is back, the lease was served
    CLEAN_AFTER_FAILURE = "clean after failure"  # the last node is back, the lease was not served


NEXT: dict[tuple[Phase, Event], Phase] = {
    (Phase.PENDING_APPROVAL, Event.APPROVE): Phase.QUEUED,
    (Phase.PENDING_APPROVAL, Event.ALLOW): Phase.QUEUED,
    (Phase.PENDING_APPROVAL, Event.REJECT): Phase.REJECTED,
    (Phase.PENDING_APPROVAL, Event.CANCEL): Phase.CANCELLED,
    (Phase.QUEUED, Event.WITHHOLD): Phase.PENDING_APPROVAL,
    (Phase.QUEUED, Event.CANCEL): Phase.CANCELLED,
    (Phase.QUEUED, Event.DECIDE): Phase.PROVISIONING,
    (Phase.PROVISIONING, Event.CHECKS_FAILED): Phase.QUEUED,
    (Phase.PROVISIONING, Event.START): Phase.PROVISIONED,
    (Phase.PROVISIONING, Event.RELEASE): Phase.RELEASING,
    (Phase.PROVISIONING, Event.STOP): Phase.QUEUED,
    (Phase.PROVISIONING, Event.FAIL): Phase.RELEASING,
    (Phase.PROVISIONED, Event.END): Phase.RELEASING,
    (Phase.PROVISIONED, Event.RELEASE): Phase.RELEASING,
    (Phase.PROVISIONED, Event.EVICT): Phase.RELEASING,
    (Phase.PROVISIONED, Event.NODES_FAILED): Phase.QUEUED,
    (Phase.PROVISIONED, Event.FAIL): Phase.RELEASING,
    (Phase.RELEASING, Event.REQUEUE): Phase.QUEUED,
    (Phase.RELEASING, Event.CLEAN): Phase.COMPLETED,
    (Phase.RELEASING, Event.CLEAN_AFTER_FAILURE): Phase.FAILED,
}

FIRST = (Phase.PENDING_APPROVAL, Phase.QUEUED)
"""Initial phases of a request."""


class IllegalMove(Fault):
    """A transition that the table does not have: a bug of ours, never a user's."""

    reason = "IllegalMove"

    def __init__(self, phase: Phase, event: Event) -> None:
        super().__init__(f"a request that is {phase} cannot {event}")
        self.phase, self.event = phase, event


def advance(phase: Phase, event: Event) -> Phase:
    """The phase after `event`; raises IllegalMove."""
    try:
        return NEXT[phase, event]
    except KeyError:
        raise IllegalMove(phase, event) from None


def diagram() -> str:
    """The table as a mermaid state diagram."""
    begins = [f"    [*] --> {phase}" for phase in FIRST]
    moves = [f"    {phase} --> {after}: {event}" for (phase, event), after in NEXT.items()]
    ends = [f"    {phase} --> [*]" for phase in Phase if phase in TERMINAL]
    return "\n".join(["stateDiagram-v2", *begins, *moves, *ends]) + "\n"
