"""Settings of an agent, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from reconciler.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one agent; docs/reference/settings.md explains each."""

    repo: str
    """Path or URL of the repository; `main` is read, the agent's own branch is written."""

    cluster: str
    """The Cluster document that this node belongs to."""

    node: str
    """The node's name in its cluster."""

    agent: str
    """Name of the agent's branch; the node's name unless several agents watch one node."""

    state: Path
    """Folder for the mirror of the repository; safe to delete."""

    simulated: Path | None = None
    """JSON file to read GPUs from, instead of the driver: for nodes without GPUs."""

    interval: timedelta = timedelta(seconds=10)
    """Pause between two readings; shorter ones read the same numbers, which the driver averages over a second."""

    deadline: timedelta = timedelta(seconds=5)
    """A reading that takes longer counts as wedged; must be shorter than `interval`."""

    thresholds_every: timedelta = timedelta(minutes=5)
    """How often the cluster's thresholds are read from the repository: agents are many and servers few."""

    main_branch: str = "main"
    """The branch with the manifests."""

    listen: str | None = None
    """HOST:PORT of metrics and the ring, for Prometheus and portals; None: off, for they have no password."""

    pod_resources: Path | None = None
    """The kubelet's socket, which knows the pods of GPUs; None: telemetry does not name pods."""

    release: Path | None = None
    """File with the time until which the agent lets go of the driver; None: it never does."""

    key: Path | None = None
    """Private ed25519 key to sign reports; None: reports are unsigned."""

    credentials: Credentials | None = None
    """Credential files for the repository, from the variables EGS_GIT_…; read again for every git command."""
