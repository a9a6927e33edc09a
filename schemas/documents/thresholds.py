"""From which values on a GPU deserves a person's attention; by shape, with the product's own values as defaults.

These are alerts: they take no GPU out of service. What does is in `health`.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Lasting, Shape
from schemas.status.xids import XidClass

Celsius = Annotated[int, Field(ge=40, le=130)]
Percent = Annotated[int, Field(ge=1, le=100)]
T = TypeVar("T")


class Thresholds(Model):
    """Thresholds of GPUs; one that is absent is the product's own."""

    temperature: Celsius | None = Field(
        None,
        description="°C at which a GPU is hot; absent: 87, or what its product can bear if that is less.",
    )
    memory_temperature: Celsius | None = Field(
        None, description="°C at which its memory is hot; absent: what its card says, else 95."
    )
    power_percent: Percent | None = Field(
        None,
        description="Share of its board's limit at which power is high, in percent; absent: 87, and 140 W of an A10.",
    )
    throttled: bool | None = Field(
        None, description="Whether being slowed down by heat or the power brake counts; absent: it does."
    )
    idle_below: int | None = Field(
        None, ge=1, le=99, description="Use in percent below which a GPU is idle; absent: 5."
    )
    idle_for: Lasting | None = Field(
        None, description="How long a GPU is idle, while others of its node work; absent: 30 minutes."
    )
    xids: tuple[XidClass, ...] | None = Field(
        None,
        max_length=len(XidClass),
        description="Classes of Xids that count; absent: all but Informational. Reset and Service take a GPU out.",
    )


class ShapeThresholds(Thresholds):
    """Thresholds of one shape; one that is absent is the cluster's."""

    gpu_shape: Shape = Field(description="The shape that they apply to.")


class Alerts(Thresholds):
    """Thresholds of all GPUs of a cluster, and of single shapes."""

    shapes: tuple[ShapeThresholds, ...] = Field(
        (), max_length=100, description="Thresholds of single shapes."
    )

    def of_shape(self, shape: str) -> Thresholds:
        """The thresholds with those of that shape put in."""
        own = next((own for own in self.shapes if own.gpu_shape == shape), None)
        if own is None:
            return self
        return Thresholds(
            temperature=_first(own.temperature, self.temperature),
            memory_temperature=_first(own.memory_temperature, self.memory_temperature),
            power_percent=_first(own.power_percent, self.power_percent),
            throttled=_first(own.throttled, self.throttled),
            idle_below=_first(own.idle_below, self.idle_below),
            idle_for=_first(own.idle_for, self.idle_for),
            xids=_first(own.xids, self.xids),
        )


def _first(own: T | None, cluster: T | None) -> T | None:
    return cluster if own is None else own
