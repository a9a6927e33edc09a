"""What a view computes in the reader's thread before any caller asks, so that no caller waits for a plan.

A view that differs only in main takes it from the view before; see `View.after`.
"""

from __future__ import annotations

from portal.views.queues import line_of
from portal.views.quotes import desk_of
from portal.views.view import View


def prepare(view: View) -> View:
    """The same view, ready for every question. Costs a plan per status commit."""
    view.once_planned(line_of)
    view.once_planned(desk_of)
    _ = view.ids
    return view
