"""The ledger of promised starts: what became of each, by month. Counts, and the month's newest starts one by one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document

ERROR_BUCKETS = 21
"""Buckets of errors; `reconciler.accounts.promises.MARKS_S` has their bounds."""
_BUCKETS = (0,) * ERROR_BUCKETS


class PromisesRecord(Document):
    """`promises/<month>.yaml`: promises that were settled in a month (UTC); it outlives the files of requests."""

    kind: Literal["Promises"] = Field("Promises", description="Kind of document.")
    kept: int = Field(
        0, description="Starts at the promised instant or earlier, or within the tolerance after it."
    )
    slipped: int = Field(0, description="Starts later than that.")
    withdrawn: int = Field(
        0,
        description="Promises of requests that were cancelled, replaced by an edit, or failed before their start.",
    )
    causes: dict[str, int] = Field(
        default_factory=dict, description="Slipped starts by the cause that delayed them most."
    )
    errors: tuple[int, ...] = Field(
        _BUCKETS,
        max_length=ERROR_BUCKETS,
        description="Starts by their distance from the promise, earlier or later, in buckets.",
    )
    expected: int = Field(0, description="Starts that had a forecast.")
    covered: int = Field(0, description="Starts between p10 and p90 of the first forecast.")
    forecast_errors: tuple[int, ...] = Field(
        _BUCKETS,
        max_length=ERROR_BUCKETS,
        description="Starts by their distance from the first p50, in buckets.",
    )
    rows: tuple[str, ...] = Field(
        (),
        description="The newest starts, oldest first: start, slice/name, promise, cause: comma-separated; instants in "
        "seconds since 1970; no cause: it was kept.",
    )
