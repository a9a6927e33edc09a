"""The difference of two states for one caller: what they may see now of both.

Held by tests/portal/test_difference.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from portal.http.context import Wire, example, optional
from portal.http.errors import bad_parameters
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.past.blame import may_see_file
from portal.views.past.past_views import PastViews
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from reconciler.queries.past.difference_rows import MOST, Named, Reader, difference_json
from reconciler.queries.past.differences import Difference


class StateNamed(Wire):
    """One of the two states."""

    commit: str = Field(description="Commit of the status branch; `?at=` shows it.")
    main: str = Field(description="Commit of main that it answers.")
    at: str = Field(description="When it was decided.")


class RequestDiffers(Wire):
    """A request that is not as it was."""

    slice: str
    name: str
    change: str = Field(description="filed, promised, slipped, earlier, started, ended or removed.")
    was: str | None = optional("The promise before, or the phase.")
    now: str | None = optional("The promise or start now, or the phase.")
    causes: list[str] = Field(description="Why it slipped, or ended.")
    text: str


class NodeDiffers(Wire):
    """A node in another state."""

    cluster: str
    node: str
    was: str
    now: str
    reason: str | None = optional("Why it is in that state.")
    text: str


class PersonDiffers(Wire):
    """A person with other rights in a workspace."""

    slice: str
    email: str
    was: str = Field(description="owner, member or absent.")
    now: str = Field(description="owner, member or absent.")
    text: str


class DocumentDiffers(Wire):
    """A field of the project, a cluster, a workspace or a template."""

    path: str
    field: str = Field(description="Empty: the document came or went.")
    was: Any = optional("Null: absent.")
    now: Any = optional("Null: absent.")
    text: str


class StateDiff(Wire):
    """What differs between two states, as far as the caller may see it."""

    model_config = example(
        {
            "from": {"commit": "8d5f0a1c", "main": "2f1a3b4c", "at": "2026-11-21T08:00:00Z"},
            "to": {"commit": "9e1f2a3b", "main": "2f1a3b4c", "at": "2026-11-21T20:00:00Z"},
            "summary": ["1 request slipped"],
            "requests": [
                {
                    "slice": "vision",
                    "name": "train",
                    "change": "slipped",
                    "was": "2026-11-21T12:00:00Z",
                    "now": "2026-11-21T14:00:00Z",
                    "causes": ["NodeLost (east/h100-7)"],
                    "text": "vision/train starts later: 2026-11-21T14:00:00Z instead of 2026-11-21T12:00:00Z: NodeLost "
                    "(east/h100-7)",
                }
            ],
            "nodes": [],
            "people": [],
            "documents": [],
            "omitted": 0,
        }
    )

    from_: StateNamed = Field(alias="from")
    to: StateNamed
    summary: list[str] = Field(description="The counts, in words.")
    requests: list[RequestDiffers]
    nodes: list[NodeDiffers]
    people: list[PersonDiffers]
    documents: list[DocumentDiffers]
    omitted: int = Field(description=f"Rows beyond {MOST} of a kind.")


def state_diff(
    past: PastViews, newest: View, caller: Caller, span: tuple[str, str], now: datetime
) -> StateDiff:
    """From one state to another; an empty second one is the newest. ApiError 410 or 422. Costs the read of both."""
    first, second = span
    if not first:
        raise bad_parameters("from: name a commit of the status branch, a time, or how long ago, like 2h")
    before = past.at(first, newest, now)
    after = past.at(second, newest, now) if second else newest
    if before.facts.at > after.facts.at:
        raise bad_parameters("from: that state is younger than `to`; exchange the two")
    veils = (Redactor(caller, before), Redactor(caller, after))
    reader = Reader(lambda found: _seen(found, before, after, caller), lambda text: _veiled(text, veils))
    return StateDiff.model_validate(difference_json(_named(before), _named(after), reader))


def _named(view: View) -> Named:
    return Named(view.status, view.main, view.facts, view.wanted)


def _seen(found: Difference, before: View, after: View, caller: Caller) -> Difference:
    clusters = clusters_seen(before, caller) | clusters_seen(after, caller)
    return Difference(
        tuple(one for one in found.requests if caller.may_see(one.key.partition("/")[0])),
        tuple(one for one in found.nodes if one.cluster in clusters),
        tuple(one for one in found.people if caller.may_see(one.slice)),
        tuple(
            one
            for one in found.documents
            if may_see_file(before, caller, one.path) or may_see_file(after, caller, one.path)
        ),
    )


Veils = Sequence[Redactor]


def _veiled(text: str, veils: Veils) -> str:
    """Names of either state are hidden."""
    for redactor in veils:
        text = redactor.text(text)
    return text
