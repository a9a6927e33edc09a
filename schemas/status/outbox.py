"""What waits to be sent to people: the outbox of each route, as the status branch has it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Metadata, Model
from schemas.reading.units import Instant, LongName


class Entry(Model):
    """One event that a route is to carry."""

    at: Annotated[Instant, Field(description="When it happened.")]
    reason: Annotated[str, Field(description="Reason of the event.")]
    type: Annotated[Literal["Normal", "Warning"], Field(description="Warning: a person may have to act.")]
    message: Annotated[str, Field(description="What happened.")] = ""
    request: Annotated[str, Field(description="slice/name; empty: no request is concerned.")] = ""
    slice: Annotated[str, Field(description="Where no request is concerned; empty: no slice is.")] = ""
    cluster: Annotated[str, Field(description="Empty: none is concerned.")] = ""
    node: Annotated[str, Field(description="Empty: none is concerned.")] = ""

    @property
    def about(self) -> str:
        """The slice that it is about; empty: none."""
        return self.slice or self.request.partition("/")[0]


class Delivery(Model):
    """What one message is to tell."""

    id: Annotated[
        str, Field(description="Follows from the route and the events; sent along as Egs-Delivery.")
    ]
    urgent: Annotated[bool, Field(description="Neither a digest nor quiet hours hold it up.")] = False
    due: Annotated[Instant, Field(description="Not sent before.")]
    entries: Annotated[tuple[Entry, ...], Field(description="Events, oldest first.")] = ()
    more: Annotated[int, Field(description="Older events that found no room.")] = 0


class OutboxMetadata(Metadata):
    """The name of an outbox: whose it is and which of their routes."""

    name: Annotated[
        LongName, Field(description="`project.<route>`, `slice.<slice>.<route>` or `person.<name>.<route>`.")
    ]


class OutboxRecord(Document):
    """`outbox/<name>.yaml` on the status branch: what one route has not carried yet."""

    kind: Annotated[Literal["Outbox"], Field(description="Kind of document.")] = "Outbox"
    metadata: Annotated[OutboxMetadata, Field(description="Its name.")]
    silent: Annotated[bool, Field(description="That nothing goes by this route was told.")] = False
    lost: Annotated[int, Field(description="Events given up since something last went by it.")] = 0
    deliveries: Annotated[
        tuple[Delivery, ...],
        Field(
            description="In the order of sending; of the urgent ones and of the others the first alone is sent."
        ),
    ] = ()
