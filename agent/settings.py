"""What an operator of an agent can turn, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from reconciler.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one agent; docs/operations.md explains each."""

    repo: str
    """Path or URL of the repository; `main` is read, the agent's own branch is written."""

    cluster: str
    """The Cluster document that this node belongs to."""

    node: str
    """The node's name in its cluster."""

    agent: str
    """Name of the agent's branch; the node's name unless several agents watch one node."""

    state: Path
    """Folder for the mirror of the repository; may be lost at any time."""

    simulated: Path | None = None
    """JSON file to read GPUs from, instead of the driver: for nodes that have none."""

    interval: timedelta = timedelta(seconds=10)
    """Pause between two readings; faster ones read the same numbers, the driver averages over a second."""

    deadline: timedelta = timedelta(seconds=5)
    """A reading that takes longer counts as wedged; it has to be shorter than `interval`."""

    thresholds_every: timedelta = timedelta(minutes=5)
    """How often the cluster's thresholds are read from the repository; agents are many and servers few."""

    main_branch: str = "main"
    """Branch that people write."""

    key: Path | None = None
    """Private ed25519 key with which this agent signs its reports; None: it signs nothing."""

    credentials: Credentials | None = None
    """Files that open the repository, from the variables EGS_GIT_…; they are read anew at every call of git."""
