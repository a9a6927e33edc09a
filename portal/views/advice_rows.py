"""`egs advise` on the wire: the data of the command, from the view's own plan."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool

from portal.views.queues import plan_of
from portal.views.view import View
from reconciler.model.observation import CountPast
from reconciler.queries.demand.served_load import Served
from reconciler.queries.demand.slice_advice import Question, check, slice_advice, what_was_served


def advice(view: View, slice_: str, asked: Question, served: Served | None = None) -> dict[str, Any]:
    """Costs up to a second. Raises UserError for terms that mean nothing, or if no pool has a node for the slice."""
    check(asked)
    return slice_advice(view.state, slice_, asked, view.once_planned(plan_of), served)


async def served(view: View, slice_: str, asked: Question, past: CountPast) -> Served | None:
    """What the endpoint of the question served; None: it names none. Other answers do not wait for Prometheus.

    Raises UserError, and Fault if a Prometheus is silent.
    """
    if not asked.endpoint:
        return None
    return await run_in_threadpool(what_was_served, view.state, slice_, asked, past)
