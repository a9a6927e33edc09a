"""A change that is only tried: its files, or the refusal that it would get. Writes nothing.

Held by tests/portal/test_workloads.py.
"""

from __future__ import annotations

from datetime import datetime

from portal.http.errors import bad_parameters, forbidden
from portal.identity.callers import Caller
from portal.views.view import View
from portal.views.what_if import what_if
from portal.writes.proposed_files import ProposedTree
from portal.writes.write_request import Changes, Make
from reconciler.store.store_port import Store


def tried(view: View, store: Store, caller: Caller, make: Make, now: datetime) -> Changes:
    """The files. ApiError as `make` raises it, 403 for a change that is not the caller's, 422 for an invalid one.

    Asks for a plan, so call it through `Parts.costly`.
    """
    changes = make(view, ProposedTree(view, store))
    answer = what_if(view, store, caller, changes, now)
    for denial in answer.denials:
        raise forbidden(denial.message)
    wrong = [one for one in answer.problems if one.severity == "error" and one.file in changes]
    if wrong:
        data = {
            "problems": [
                {name: getattr(one, name) for name in ("file", "rule", "message", "fix")} for one in wrong
            ]
        }
        told = "; ".join(f"{one.file}: {one.message}; {one.fix}" for one in wrong)
        raise bad_parameters(f"nothing is changed, because it would be invalid: {told}", data)
    return changes
