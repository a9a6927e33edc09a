"""Who waits for whom, by the calendars of the nodes as the plan would choose them now. Pure.

Held by tests/portal/pages/test_queue_page.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from portal.views import table_rows
from portal.views.view import View

SHOWN = 3
"""Most requests named for one that waits."""


def ahead_of(view: View) -> Mapping[str, tuple[str, ...]]:
    """By waiting request, those that have its nodes until it gets them; call it through `View.once`."""
    found: dict[str, dict[str, None]] = {}
    for row in view.once(table_rows.all_nodes):
        before = None
        for entry in row["schedule"]:
            is_next = before is not None and before["end"] == entry["begin"]
            if entry["tentative"] and is_next and before is not None and before["request"]:
                found.setdefault(entry["request"], {})[before["request"]] = None
            before = entry
    return {key: tuple(names)[:SHOWN] for key, names in found.items()}
