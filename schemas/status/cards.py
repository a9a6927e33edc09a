"""Cards that failed: the memory of a GPU by its serial number, wherever it is plugged in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant
from schemas.status.gpu_faults import GpuAction


class CardFault(Model):
    """One outage of a card."""

    reason: str = Field(description="The worst fault when it began.")
    at: Instant = Field(description="When it began.")
    cluster: str = Field(description="Cluster of the card at that time.")
    node: str = Field(description="Node of the card at that time.")
    again: bool = Field(False, description="It came back after a reset.")
    remedy: GpuAction | None = Field(
        None, description="What was done about it: reset or reboot; absent: nothing by the controller."
    )
    helped: bool | None = Field(None, description="Whether the node's checks passed after it.")


class Card(Model):
    """One card that failed at least once."""

    serial: str = Field(description="Serial number.")
    product: str = Field(description="Product name.")
    board_part: str | None = Field(None, description="The vendor's part number of the board.")
    cluster: str = Field(description="Cluster in which it was last reported.")
    node: str = Field(description="Node in which it was last reported.")
    failing: bool = Field(False, description="Whether it is out of service now.")
    faults: tuple[CardFault, ...] = Field((), description="The last 20 outages, oldest first.")


class CardsRecord(Document):
    """`cards/<part>.yaml`: a part of all cards that failed, by serial number."""

    kind: Literal["Cards"] = Field("Cards", description="Kind of document.")
    cards: tuple[Card, ...] = Field((), description="By serial number.")
