"""Approval: an admin's decision on the exact content of one request, and the text that the admin signs."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Duration, Instant, Name, format_instant

NAMESPACE = "egs-approval"
"""Namespace of SSH signatures: a signature for another purpose never counts as an approval."""


class ApprovalLimit(Model):
    """The most that is approved, whatever the request says later."""

    gpus: int = Field(ge=1, le=1_000_000, description="GPUs of all its nodes together.")
    nodes: int = Field(ge=1, le=100_000, description="Nodes.")
    extend: Duration | None = Field(
        None, description="Total grace beyond its duration; only for the rule `extension`."
    )


class ApprovalSpec(Model):
    """Binds one decision to one version of a request."""

    slice: Name = Field(description="Slice of the request.")
    gpr: Name = Field(description="Name of the request.")
    decision: Literal["approve", "reject"] = Field(description="The admin's decision.")
    rule: Literal["request", "extension"] = Field(
        "request", description="What it approves: the request itself, or its extension."
    )
    spec_digest: str = Field(
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="Digest of the request as approved; its status shows the current one.",
    )
    limit: ApprovalLimit | None = Field(None, description="Required to approve.")
    not_after: Instant | None = Field(
        None, description="When the approval expires. Absent: never, but then a signature does not count."
    )
    reason: str = Field("", max_length=500, description="Shown to the requester.")
    signature: str | None = Field(
        None, max_length=8000, description="SSH signature of the statement, made by `egs approve`."
    )


class Approval(Document):
    """`approvals/<slice>/<gpr>/<approver>.yaml`."""

    kind: Literal["Approval"] = Field("Approval", description="Kind of document.")
    spec: ApprovalSpec = Field(description="The decision and its request.")


def statement(project: str, approval: Approval) -> bytes:
    """What an admin signs: every field that counts, one per line, in a fixed form.

    No value contains a line break: the models refuse it, and the reason enters only as its hash.
    """
    spec, limit = approval.spec, approval.spec.limit
    lines = [
        "egs-approval v1",
        f"project {project}",
        f"path slices/{spec.slice}/gprs/{spec.gpr}.yaml",
        f"digest {spec.spec_digest}",
        f"decision {spec.decision}",
        f"rule {spec.rule}",
        f"limit {_limit(limit)}",
        f"not-after {format_instant(spec.not_after) if spec.not_after else '-'}",
        f"approver {approval.metadata.name}",
        f"reason sha256:{hashlib.sha256(spec.reason.encode()).hexdigest()}",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def statement_id(project: str, approval: Approval) -> str:
    """Identifies a statement, so that a used or withdrawn one is recognised."""
    return "sha256:" + hashlib.sha256(statement(project, approval)).hexdigest()


def _limit(limit: ApprovalLimit | None) -> str:
    if limit is None:
        return "-"
    extend = "-" if limit.extend is None else f"{int(limit.extend.total_seconds())}s"
    return f"gpus={limit.gpus} nodes={limit.nodes} extend={extend}"
