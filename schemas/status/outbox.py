"""Pending notifications: the outbox of each route on the status branch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Metadata, Model
from schemas.reading.units import Instant, LongName


class Entry(Model):
    """One event for a route to send."""

    at: Annotated[Instant, Field(description="When it happened.")]
    reason: Annotated[str, Field(description="Reason of the event.")]
    type: Annotated[Literal["Normal", "Warning"], Field(description="Warning: a person may have to act.")]
    message: Annotated[str, Field(description="What happened.")] = ""
    request: Annotated[str, Field(description="slice/name; empty: no request is concerned.")] = ""
    slice: Annotated[str, Field(description="If no request is concerned; empty: no slice is either.")] = ""
    cluster: Annotated[str, Field(description="Empty: none is concerned.")] = ""
    node: Annotated[str, Field(description="Empty: none is concerned.")] = ""

    @property
    def about(self) -> str:
        """The slice that it is about; empty: none."""
        return self.slice or self.request.partition("/")[0]


class Delivery(Model):
    """One message to send."""

    id: Annotated[
        str, Field(description="Derived from the route and the events; sent along as Egs-Delivery.")
    ]
    urgent: Annotated[bool, Field(description="Sent at once, despite digest and quiet hours.")] = False
    due: Annotated[Instant, Field(description="Earliest time of sending.")]
    entries: Annotated[tuple[Entry, ...], Field(description="Events, oldest first.")] = ()
    more: Annotated[int, Field(description="Older events that did not fit.")] = 0


class OutboxMetadata(Metadata):
    """The name of an outbox: its owner and route."""

    name: Annotated[
        LongName, Field(description="`project.<route>`, `slice.<slice>.<route>` or `person.<name>.<route>`.")
    ]


class OutboxRecord(Document):
    """`outbox/<name>.yaml` on the status branch: what one route has not sent yet."""

    kind: Annotated[Literal["Outbox"], Field(description="Kind of document.")] = "Outbox"
    metadata: Annotated[OutboxMetadata, Field(description="Its name.")]
    silent: Annotated[bool, Field(description="Whether the route's failure was reported.")] = False
    lost: Annotated[int, Field(description="Events given up since the route last worked.")] = 0
    deliveries: Annotated[
        tuple[Delivery, ...],
        Field(
            description="In the order of sending; only the first urgent and the first other one is sent at a time."
        ),
    ] = ()
