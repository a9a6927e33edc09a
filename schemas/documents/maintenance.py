"""When nodes are out of planning: once, or repeatedly."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import Field, model_validator

from schemas.documents.base import Model
from schemas.reading.units import Instant, Lasting, LongName, Name


class Maintenance(Model):
    """A window in which nodes are unavailable: the whole cluster, unless pools or nodes are named."""

    begin: Instant = Field(description="First instant without these nodes.")
    end: Instant = Field(description="First instant with them again; after `begin`.")
    pools: tuple[Name, ...] = Field((), description="Whole pools.")
    nodes: tuple[LongName, ...] = Field((), description="Single nodes.")
    every: Lasting | None = Field(
        None, description="It repeats after this long, at least a day; absent: once."
    )
    until: Instant | None = Field(None, description="No window begins from then on; with `every`.")
    reason: str = Field("", max_length=200, description="Informational.")

    def covers(self, at: datetime) -> bool:
        """Whether one of its windows has begun by then and not ended."""
        if at < self.begin:
            return False
        begin = self.begin
        if self.every is not None:
            begin += (at - begin) // self.every * self.every
            if self.until is not None and begin >= self.until:
                return False
        return at < begin + (self.end - self.begin)

    @model_validator(mode="after")
    def _comes_again(self) -> Self:
        if self.until is not None and self.every is None:
            raise ValueError("until ends a repeated window: add every, or delete until")
        if self.every is not None and self.every < max(timedelta(days=1), self.end - self.begin):
            raise ValueError("every must be at least a day, and at least as long as the window")
        return self
