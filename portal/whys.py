"""`egs why` over the wire: sentences, the forecast, and what would start a request earlier. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from portal.gprs import NOT_SEEN_TEXT, Found, id_of
from portal.hiding import Veil
from portal.serving import Wire
from portal.view import View
from reconciler.commands.reasons import changes, forecast_json, reasons


class Alternative(Wire):
    """One change that starts the request earlier."""

    field: str = Field(description="Of its file.", examples=["nodes"])
    value: str | int
    estimated_start_time: str
    saved_seconds: int | None = Field(description="null: as it is, it has no start at all.")
    cluster: str
    pool: str
    keeps_place: bool = Field(description="Whether it stays where it is in the queue.")


class Why(Wire):
    """Why a request stands where it does."""

    gpr_id: str
    slice: str
    name: str
    phase: str | None = Field(description="null: the controller has not answered it yet.")
    reasons: list[str] = Field(description="Sentences, the nearest reason first.")
    forecast: dict[str, Any] | None
    alternatives: list[Alternative]


def why(view: View, found: Found, veil: Veil) -> Why:
    """As `egs why -o json`. Costs a plan for each alternative."""
    status = found.status
    told = reasons(view.state, found.key) if status is not None else [NOT_SEEN_TEXT]
    return Why(
        gpr_id=id_of(view, found),
        slice=found.slice,
        name=found.name,
        phase=None if status is None else str(status.phase),
        reasons=[veil.text(sentence) for sentence in told],
        forecast=forecast_json(None if status is None else status.forecast),
        alternatives=[Alternative.model_validate(one.json()) for one in changes(view.state, found.key)],
    )
