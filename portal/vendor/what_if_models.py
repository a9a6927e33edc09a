"""A change that is only asked about, on the wire: files, manifests, or edits by name. Models only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from portal.http.context import Line, Wire, example
from portal.vendor.gpr_models import GprAsk, GprEdit, GprNamed, Time

MOST_BYTES = 1 << 16
"""As for a file on main (schemas.reading.strict_yaml.MAX_BYTES)."""
MOST = 200
"""Most entries of one question."""
Text = Annotated[str, Field(max_length=MOST_BYTES)]
Path = Annotated[str, Field(min_length=1, max_length=400)]
Place = Annotated[str, Field(max_length=200)]


class FileRequest(GprAsk):
    """File a request, as `POST gpr` would."""

    do: Literal["file"]


class EditRequest(GprEdit):
    """Change a request, as `PUT gpr` would: its priority, terms, extension; `earlyRelease` ends it."""

    do: Literal["edit"]


class EndRequest(GprNamed):
    """End a request, whatever its phase: a waiting one is cancelled, another one is released."""

    do: Literal["end"]


class Moving(GprNamed):
    """Moves a waiting request among those of its priority."""

    before: Place = Field("", description="Just before this request: its id, or slice/name.")
    to: Literal["", "first", "last"] = Field("", description="To an end of its priority.")

    @model_validator(mode="after")
    def _names_one(self) -> Moving:
        if bool(self.before) == bool(self.to):
            raise ValueError("give one of before and to")
        return self


class MoveRequest(Moving):
    """Move a waiting request among those of its priority, as `POST queue/move` would. Admins only."""

    do: Literal["move"]


class AddMaintenance(Wire):
    """Take a cluster, or some of its pools or nodes, out of planning for a time. Admins only."""

    do: Literal["maintenance"]
    cluster_name: str = Field(max_length=63, examples=["east"])
    begin: Time
    end: Time
    pools: list[Line] = Field(default=[], max_length=MOST, description="Whole pools; empty with nodes: all.")
    nodes: list[Line] = Field(default=[], max_length=10_000, description="Single nodes.")


Edit = Annotated[
    FileRequest | EditRequest | EndRequest | MoveRequest | AddMaintenance, Field(discriminator="do")
]


class WhatIfAsk(Wire):
    """A change that is not pushed. All parts together are one change; a later entry builds on the earlier ones."""

    model_config = example({"changes": [{"do": "edit", "gprId": "vision/train", "priority": 180}]})

    files: dict[Path, Text | None] = Field(
        default={},
        max_length=MOST,
        description="New texts of files by path; null deletes a file.",
        examples=[{"slices/vision/gprs/train.yaml": None}],
    )
    manifests: list[Text] = Field(
        default=[], max_length=MOST, description="Documents whose paths follow from their kinds and names."
    )
    changes: list[Edit] = Field(default=[], max_length=MOST, description="Edits by name.")
