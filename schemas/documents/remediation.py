"""What is done about a fault of GPUs before people are asked: part of a Cluster document, off by default."""

from __future__ import annotations

from pydantic import Field

from schemas.documents.base import Model


class Remediation(Model):
    """Who may act on nodes besides people."""

    nvsentinel: bool = Field(
        False,
        description="NVSentinel's DrainRequests are answered: a running request gets another node, and nothing new "
        "starts there.",
    )
