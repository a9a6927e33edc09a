"""What a view works out before anybody asks it, in the reader's thread: nobody waits for a plan then.

A view of another main alone has it from the view before; see `View.after`.
"""

from __future__ import annotations

from portal.views.queues import line_of
from portal.views.quotes import desk_of
from portal.views.view import View


def prepare(view: View) -> View:
    """The same view, ready for every question. Costs a plan for each status commit."""
    view.once_planned(line_of)
    view.once_planned(desk_of)
    _ = view.ids
    return view
