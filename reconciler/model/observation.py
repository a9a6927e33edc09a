"""How a version of an endpoint did, as seen from outside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """How a version did during the last interval."""

    requests: float
    error_rate: float | None = None  # share that failed; None: unknown
    first_token_s: float | None = None  # for 95 of 100 requests; None: unknown
