"""Which commit set a document or a status, for one caller: as `egs blame`, without the names of hidden requests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from portal.http.errors import bad_parameters, not_found
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.table_rows import clusters_seen, veiled
from portal.views.view import View
from reconciler.queries.past.blame import Blamed, main_changes, status_changes
from reconciler.status.past_states import PastStates
from reconciler.store.store_port import Store
from schemas.reading.reader import rule_of
from schemas.reading.units import format_instant

Row = dict[str, Any]


def blame(store: Store, states: PastStates, view: View, caller: Caller, asked: Blamed) -> Row:
    """The newest changes of the file on main, and of the request's record. ApiError 404 or 422."""
    try:
        asked.check()
    except ValueError as error:
        raise bad_parameters(f"field: {error}") from error
    if rule_of(asked.path) is None or not may_see_file(view, caller, asked.path):
        raise not_found("document", asked.path)
    main = main_changes(store, view.main, asked) if asked.is_of_main else []
    status = _status(store, states, view, asked) if asked.is_of_status else []
    if not main and not status:
        raise not_found("change of", f"{asked.path} {asked.field or ''}".strip())
    redactor = Redactor(caller, view)
    return {
        "path": asked.path,
        "field": asked.field,
        "main": [{**row, "subject": redactor.text(row["subject"])} for row in main],
        "status": [veiled(redactor, row) for row in status],
    }


def may_see_file(view: View, caller: Caller, path: str) -> bool:
    """Files of the caller's workspaces and clusters, and templates; other documents are for admins."""
    if caller.is_admin or caller.sees is None:
        return caller.is_admin or not path.startswith("keys/")
    folder, _, rest = path.partition("/")
    name = rest.partition("/")[0].removesuffix(".yaml")
    match folder:
        case "slices" | "approvals" | "bindings":
            return caller.may_see(name)
        case "clusters":
            return name in clusters_seen(view, caller)
        case "templates":
            return caller.sees_any
    return False


def _status(store: Store, states: PastStates, view: View, asked: Blamed) -> list[Row]:
    def told(after: datetime | None, until: datetime) -> Iterator[Row]:
        found = view.events.found(asked.events(after, until))
        return (row for row in found if after is None or row["at"] > format_instant(after))

    return status_changes(store, reversed(states.states()), asked, told)
