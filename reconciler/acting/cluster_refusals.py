"""Which refusals of clusters are news: each is told once as long as it is met in every round."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.acting.apply import Answers
from reconciler.model.events import Event, EventReason


@dataclass(slots=True)
class Refusals:
    """One owner."""

    _met: set[tuple[str, str, str]] = field(default_factory=set)

    def fresh(self, answers: Answers, now: datetime) -> list[Event]:
        """What this round met and the one before did not."""
        told: list[Event] = []
        met: set[tuple[str, str, str]] = set()
        for action, refused in answers.refused:
            token = (action.cluster, action.node, refused.reason)
            if token not in self._met | met:
                what = f"{action.cluster}: {action.do.name.lower()} {action.node} was refused"
                text = f"{what}: {refused.message}"
                told.append(
                    Event(now, EventReason.ACTION_REFUSED, text, action.request, action.cluster, action.node)
                )
            met.add(token)
        self._met = met
        return told
