"""The difference of two states for one caller: what they may see now of both.

Held by tests/portal/test_difference.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
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
from reconciler.queries.past.differences import (
    Difference,
    OfDocument,
    OfNode,
    OfPerson,
    OfRequest,
    difference,
)
from schemas.reading.units import format_instant

MOST = 1000
"""Rows of each kind."""


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
    found = _seen(
        difference((before.facts, before.wanted), (after.facts, after.wanted)), before, after, caller
    )
    veils = (Redactor(caller, before), Redactor(caller, after))
    rows = (
        [_request(one, veils) for one in islice(found.requests, MOST)],
        [_node(one, veils) for one in islice(found.nodes, MOST)],
        [_person(one) for one in islice(found.people, MOST)],
        [_document(one, veils) for one in islice(found.documents, MOST)],
    )
    whole = (found.requests, found.nodes, found.people, found.documents)
    return StateDiff(
        from_=_named(before),
        to=_named(after),
        summary=summary(found),
        requests=rows[0],
        nodes=rows[1],
        people=rows[2],
        documents=rows[3],
        omitted=sum(max(0, len(part) - MOST) for part in whole),
    )


def summary(found: Difference) -> list[str]:
    """`3 requests filed`, `1 node changed its state`, …; nothing that did not happen."""
    words = {"earlier": "will start earlier"}
    counts: dict[str, int] = {}
    for one in found.requests:
        counts[one.change] = counts.get(one.change, 0) + 1
    said = [f"{_counted(count, 'request')} {words.get(change, change)}" for change, count in counts.items()]
    for rows, thing, what in (
        (found.nodes, "node", "changed state"),
        (found.people, "person", "changed rights"),
        (found.documents, "field", "of documents changed"),
    ):
        said += [f"{_counted(len(rows), thing)} {what}"] if rows else []
    return said


def _counted(count: int, thing: str) -> str:
    plural = "people" if thing == "person" else f"{thing}s"
    return f"{count} {thing if count == 1 else plural}"


def _named(view: View) -> StateNamed:
    return StateNamed(commit=view.status, main=view.main, at=format_instant(view.facts.at))


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


def _request(one: OfRequest, veils: Veils) -> RequestDiffers:
    slice_, _, name = one.key.partition("/")
    was, now = (format_instant(at) if isinstance(at, datetime) else at for at in (one.was, one.now))
    causes = [_veiled(cause, veils) for cause in one.causes]
    text = _veiled(one.text, veils)
    return RequestDiffers(
        slice=slice_, name=name, change=one.change, was=was, now=now, causes=causes, text=text
    )


def _node(one: OfNode, veils: Veils) -> NodeDiffers:
    text = _veiled(one.text, veils)
    return NodeDiffers(
        cluster=one.cluster, node=one.node, was=one.was, now=one.now, reason=one.reason, text=text
    )


def _person(one: OfPerson) -> PersonDiffers:
    return PersonDiffers(slice=one.slice, email=one.email, was=one.was, now=one.now, text=one.text)


def _document(one: OfDocument, veils: Veils) -> DocumentDiffers:
    text = _veiled(one.text, veils)
    return DocumentDiffers(path=one.path, field=one.field, was=one.was, now=one.now, text=text)
