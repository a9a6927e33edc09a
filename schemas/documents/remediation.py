"""What is done about a fault of GPUs before people are asked: part of a Cluster document, off by default."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Lasting, LongName


class Remediation(Model):
    """Resets and reboots of nodes that no request uses, and who else may act on nodes."""

    reset: bool = Field(False, description="GPUs are reset when their agent asks for it.")
    reboot: bool = Field(
        False, description="Nodes are rebooted when their agent asks for it, or when a reset did not help."
    )
    image: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}$",
        description="Container image with nvidia-smi, which resets GPUs in a cluster without NVSentinel.",
        examples=["nvidia/cuda:12.9.1-base-ubuntu24.04"],
    )
    runtime_class: LongName | None = Field(
        None, description="RuntimeClass of that image's pod; absent: the nodes' default."
    )
    attempts: int = Field(1, ge=1, le=5, description="Attempts that may fail before people must act.")
    per_day: int = Field(2, ge=1, le=10, description="Most resets and reboots of one node within a day.")
    timeout: Lasting = Field(
        timedelta(minutes=20), description="Time from the decision until the node's checks passed."
    )
    nvsentinel: bool = Field(
        False,
        description="NVSentinel's DrainRequests are answered: a running request gets another node, and nothing new "
        "starts there.",
    )
