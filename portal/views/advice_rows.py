"""`egs advise` on the wire: the data of the command, from the view's own plan."""

from __future__ import annotations

from typing import Any

from portal.views.queues import plan_of
from portal.views.view import View
from reconciler.queries.demand.slice_advice import Question, check, slice_advice


def advice(view: View, slice_: str, asked: Question) -> dict[str, Any]:
    """Costs up to a second. Raises UserError for terms that mean nothing, or if no pool has a node for the slice."""
    check(asked)
    return slice_advice(view.state, slice_, asked, view.once_planned(plan_of))
