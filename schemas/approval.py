"""Approval: an admin's word about one request's exact content."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document, Model
from schemas.units import Instant, Name


class ApprovalLimit(Model):
    """The most that is approved, whatever the request says later."""

    gpus: Annotated[int, Field(ge=1, le=1_000_000, description="GPUs of all its nodes together.")]
    nodes: Annotated[int, Field(ge=1, le=100_000, description="Nodes.")]


class ApprovalSpec(Model):
    """Binds one decision to one request as it reads now."""

    slice: Annotated[Name, Field(description="Slice of the request.")]
    gpr: Annotated[Name, Field(description="Name of the request.")]
    decision: Annotated[Literal["approve", "reject"], Field(description="The admin's word.")]
    spec_digest: Annotated[
        str,
        Field(
            pattern=r"^sha256:[0-9a-f]{64}$",
            description="Digest of the request as approved; its status shows the current one.",
        ),
    ]
    limit: Annotated[ApprovalLimit | None, Field(description="Needed to approve.")] = None
    not_after: Annotated[
        Instant | None, Field(description="The approval counts until then; absent: no end.")
    ] = None
    reason: Annotated[str, Field(max_length=500, description="Why; shown to the requester.")] = ""


class Approval(Document):
    """`approvals/<slice>/<gpr>/<approver>.yaml`."""

    kind: Annotated[Literal["Approval"], Field(description="Kind of document.")] = "Approval"
    spec: Annotated[ApprovalSpec, Field(description="What is decided about which request.")]
