"""The status branch's files of the last decision, computed again only if their inputs changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from reconciler.model.facts import Facts, Wanted
from reconciler.model.memo import Memo
from reconciler.status.render import Files, render
from reconciler.status.yaml_rows import Written
from schemas.rules.problems import Problem


@dataclass(slots=True)
class Rendered:
    """One owner. In most cycles nothing changes: without this memory each costs 25 % more (`benchmarks.cycle`)."""

    _written: Written = field(default_factory=Written)
    _last: Memo[Files] = field(default_factory=Memo)

    def files(
        self,
        facts: Facts,
        wanted: Wanted,
        order: tuple[str, ...],
        problems: Iterable[Problem],
        frozen: str = "",
    ) -> Files:
        """What `render` says; `frozen`: why main is not followed until a person acts."""
        state = (
            (facts.requests, facts.nodes, facts.clusters, facts.usage, facts.held_deletions),
            (facts.found, facts.unmanaged, facts.workspaces, facts.used_approvals, facts.trust),
            (
                facts.insights,
                facts.ended,
                facts.promises,
                facts.scales,
                facts.faults,
                facts.outbox,
                facts.cards,
                facts.alerts,
                facts.remedies,
                facts.workloads,
                facts.endpoints,
                facts.queues,
                facts.services,
            ),
        )
        # The order is left out: ageing changes it over time, and the next new fact updates it.
        made = partial(render, facts, wanted, order, problems, self._written, frozen=frozen)
        return self._last.of("", made, same=(wanted,), equal=(state, problems, frozen))
