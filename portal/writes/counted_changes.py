"""Whether a change on main takes effect.

While it was on its way, the controller may have given the request its nodes. Then the change is on main but the lease
keeps its terms, and the caller gets a conflict instead of a success.

Held by tests/portal/test_endings.py.
"""

from __future__ import annotations

from portal.http.errors import conflict
from portal.views.view import View
from portal.writes.gpr_changes import PROVISIONED
from reconciler.changes.named_request import terms_too_late, too_late
from reconciler.documents.restored_files import readable, says
from reconciler.store.store_port import Store
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING


def check_counts(view: View, store: Store, key: str, commit: str) -> None:
    """ApiError 409 if the request holds nodes on other terms than the commit gave its file. Reads one file."""
    status = view.facts.requests.get(key)
    if status is None or status.phase not in HOLDING:
        return
    path = gpr_path(*key.split("/"))
    said = says(readable(path, store.read_path(commit, path)), view.wanted.templates)
    terms = terms_too_late(status, said, None)
    if terms:
        text = too_late(key, terms, "release the request, or restore its file")
        raise conflict(text, PROVISIONED, {"commit": commit, "terms": terms})
