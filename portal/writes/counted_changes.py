"""Whether a change on main takes effect: its request may have got its nodes while the change was on its way.

The controller may have committed a hand-over of nodes that was in no view when the change was made. Then the change is
on main but the lease keeps its terms, and the caller gets a conflict instead of a success.

Held by tests/portal/test_endings.py.
"""

from __future__ import annotations

from portal.http.errors import conflict
from portal.views.view import View
from portal.writes.gpr_changes import PROVISIONED
from reconciler.documents.restored_files import readable, says
from reconciler.store.store_port import Store
from schemas.rules.edits import FIELD_NAMES, changed_terms
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING


def check_counts(view: View, store: Store, key: str, commit: str) -> None:
    """ApiError 409 if the request holds nodes on other terms than the commit gave its file. Reads one file."""
    status = view.facts.requests.get(key)
    if status is None or status.phase not in HOLDING:
        return
    path = gpr_path(*key.split("/"))
    said = says(readable(path, store.read_path(commit, path)), view.wanted.templates)
    if said is None or said.early_release:
        return
    terms = [FIELD_NAMES.get(field, field) for field in changed_terms(status.accepted_spec, said)]
    if not terms:
        return
    raise conflict(
        f"{key} got its nodes while the change was being pushed and keeps its terms ({', '.join(terms)}): "
        "the change is "
        f"on main as {commit[:12]} but has no effect; release the request, or restore its file",
        PROVISIONED,
        {"commit": commit, "terms": terms},
    )
