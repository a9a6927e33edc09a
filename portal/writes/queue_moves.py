"""The files of a move in the queue: the numbers that take a request to its place. Pure.

Held by tests/portal/views/test_what_if.py and tests/portal/pages/test_queue_page.py: a move that is asked about and one
that is made write the same files.
"""

from __future__ import annotations

from portal.http.errors import bad_parameters, conflict
from portal.identity.callers import Caller
from portal.vendor.what_if_models import Moving
from portal.views.view import View
from portal.writes import gpr_changes
from portal.writes.write_request import Changes, Tree
from reconciler.changes.move import Target, numbers_for, with_move
from reconciler.sources.command_errors import NotAllowed
from schemas.rules.view import gpr_path


def moved(view: View, tree: Tree, caller: Caller, moving: Moving) -> Changes:
    """ApiError 404 for a request that the caller does not see, 409 for one that cannot go there."""
    found = gpr_changes.seen(view, caller, moving.gpr_id)
    before = gpr_changes.seen(view, caller, moving.before).key if moving.before else ""
    if before == found.key:
        raise bad_parameters(f"before: {before} cannot be put before itself")
    try:
        numbers = numbers_for(view.state, found.key, Target(moving.to, before))
        paths = {gpr_path(*key.split("/")): number for key, number in numbers.items()}
        return {path: with_move(path, tree.read(path), number) for path, number in sorted(paths.items())}
    except NotAllowed as error:
        raise conflict(str(error)) from error
