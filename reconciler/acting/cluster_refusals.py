"""Which refusals of clusters are new: each is reported once while it recurs in every round."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.acting.apply import Answers
from reconciler.model.events import Event, EventReason


@dataclass(slots=True)
class Refusals:
    _met: set[tuple[str, str, str]] = field(default_factory=set)

    def fresh(self, answers: Answers, now: datetime) -> list[Event]:
        """Refusals of this round that the previous one did not have."""
        told: list[Event] = []
        met: set[tuple[str, str, str]] = set()
        for action, refused in answers.refused:
            about = action.node or action.workload
            token = (action.cluster, about, refused.reason)
            if token not in self._met | met:
                what = f"{action.cluster}: {action.do.name.lower().replace('_', ' ')} {about} was refused"
                text = f"{what}: {refused.message}"
                told.append(
                    Event(now, EventReason.ACTION_REFUSED, text, action.request, action.cluster, action.node)
                )
            met.add(token)
        self._met = met
        return told
