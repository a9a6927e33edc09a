"""Who is notified of events, where and when: routes of the project, of a slice, of a person."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Address, Document, Model
from schemas.reading.units import Lasting, Name


class QuietHours(Model):
    """When only urgent messages are sent; the others are sent afterwards."""

    begin: str = Field(
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="Time of day.", examples=["22:00"]
    )
    end: str = Field(
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        description="Time of day; before `begin`: of the next day.",
        examples=["07:00"],
    )
    time_zone: str = Field("UTC", max_length=64, description="IANA name.", examples=["Europe/Berlin"])
    weekends: bool = Field(False, description="Whether all of Saturday and Sunday is quiet too.")


class Template(Model):
    """The text of a message: `$reason`, `$message`, `$request`, `$slice`, `$cluster`, `$node`, `$time`, `$type`."""

    title: str = Field("$reason", max_length=200, description="First line, or subject.")
    body: str = Field("$message", max_length=4000, description="For each event.")


class Route(Model):
    """One destination of notifications, and what is sent there."""

    name: Name = Field(description="Its name; unique in its document.")
    secret: Name = Field(
        description="Name of the operator's secret that holds the address: for the project `project.<secret>`, for "
        "a slice `slice.<slice>.<secret>`, for a person `person.<name>.<secret>`."
    )
    events: tuple[str, ...] = Field(
        (), max_length=100, description="Reasons of events (GPRProvisioned, …), or `warnings`; empty: all."
    )
    slices: tuple[Name, ...] = Field(
        (), max_length=100, description="Only events of these slices; empty: all that it may see."
    )
    digest: Lasting | None = Field(
        None, description="Events of this long are sent as one message; absent: each at once."
    )
    quiet: QuietHours | None = Field(None, description="When only urgent messages are sent.")
    urgent: tuple[str, ...] = Field(
        (), max_length=100, description="Reasons that are sent at once, despite digest and quiet hours."
    )
    template: Template = Field(Template(), description="The text of messages.")


Routes = Annotated[
    tuple[Route, ...], Field(max_length=20, description="Who is notified of events, and where.")
]


class ProfileSpec(Model):
    """A person's own settings."""

    email: Address = Field(description="The person.")
    notifications: Routes = ()


class Profile(Document):
    """`people/<name>.yaml`: changed by the person; covers events of the slices that the person works in."""

    kind: Literal["Profile"] = Field("Profile", description="Kind of document.")
    spec: ProfileSpec = Field(description="The person, and where they are notified.")
