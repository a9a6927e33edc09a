"""The status branch's files of the last decision, computed again only if their inputs changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.deciding.decide import Decision
from reconciler.model.facts import Wanted
from reconciler.status.render import Files, render
from reconciler.status.yaml_rows import Written
from schemas.rules.problems import Problem


@dataclass(slots=True)
class Rendered:
    """One owner. In most cycles nothing changes."""

    _written: Written = field(default_factory=Written)
    _last: tuple[Wanted, object, Files] | None = None

    def files(
        self, decision: Decision, wanted: Wanted, problems: Iterable[Problem], frozen: str = ""
    ) -> Files:
        """The rendered decision; `frozen`: why main is not followed until a person acts."""
        facts = decision.facts
        state = (
            (facts.requests, facts.nodes, facts.clusters, facts.usage, facts.held_deletions),
            (facts.found, facts.unmanaged, facts.workspaces, facts.spent_words, facts.trust),
            (facts.insights, facts.ended, facts.scales, facts.faults, facts.outbox),
        )
        # The order is left out: ageing changes it over time, and the next new fact updates it.
        of = (state, problems, frozen)
        if self._last is None or self._last[0] is not wanted or self._last[1] != of:
            files = render(facts, wanted, decision.plan.order, problems, self._written, frozen=frozen)
            self._last = (wanted, of, files)
        return self._last[2]
