"""Pending notifications: the outbox of each route on the status branch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Metadata, Model
from schemas.reading.units import Instant, LongName


class Entry(Model):
    """One event for a route to send."""

    at: Instant = Field(description="When it happened.")
    reason: str = Field(description="Reason of the event.")
    type: Literal["Normal", "Warning"] = Field(description="Warning: a person may have to act.")
    message: str = Field("", description="What happened.")
    request: str = Field("", description="slice/name; empty: no request is concerned.")
    slice: str = Field("", description="If no request is concerned; empty: no slice is either.")
    cluster: str = Field("", description="Empty: none is concerned.")
    node: str = Field("", description="Empty: none is concerned.")

    @property
    def about(self) -> str:
        """The slice that it is about; empty: none."""
        return self.slice or self.request.partition("/")[0]


class Delivery(Model):
    """One message to send."""

    id: str = Field(description="Derived from the route and the events; sent along as Egs-Delivery.")
    urgent: bool = Field(False, description="Sent at once, despite digest and quiet hours.")
    due: Instant = Field(description="Earliest time of sending.")
    entries: tuple[Entry, ...] = Field((), description="Events, oldest first.")
    more: int = Field(0, description="Older events that did not fit.")


class OutboxMetadata(Metadata):
    """The name of an outbox: its owner and route."""

    name: LongName = Field(
        description="`project.<route>`, `slice.<slice>.<route>` or `person.<name>.<route>`."
    )


class OutboxRecord(Document):
    """`outbox/<name>.yaml` on the status branch: what one route has not sent yet."""

    kind: Literal["Outbox"] = Field("Outbox", description="Kind of document.")
    metadata: OutboxMetadata = Field(description="Its name.")
    silent: bool = Field(False, description="Whether the route's failure was reported.")
    lost: int = Field(0, description="Events given up since the route last worked.")
    deliveries: tuple[Delivery, ...] = Field(
        (),
        description="In the order of sending; only the first urgent and the first other one is sent at a time.",
    )
