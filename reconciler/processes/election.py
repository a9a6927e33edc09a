"""Whether this process takes part in an election."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from reconciler.processes.kubeconfig_option import by_option
from schemas.errors import UserError

if TYPE_CHECKING:
    from reconciler.clusters.kubernetes.api.lease_election import Election

ELECTION = "election"
"""Stands for a cluster's name in messages about the API server with the Lease."""
_PLACE = re.compile(r"([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)")


def candidate(place: str, kubeconfig: Path | None) -> Election | None:
    """A candidate for the Lease `NAMESPACE/NAME`; None without an election. Raises UserError."""
    if not place:
        if kubeconfig is not None:
            raise UserError(
                "--elect-kubeconfig needs an election; also give --elect NAMESPACE/NAME", "WrongUse"
            )
        return None
    found = _PLACE.fullmatch(place)
    if found is None:
        raise UserError(f"--elect {place}: give NAMESPACE/NAME of a Lease", "WrongUse")
    # Importing the client takes half a second: only done for an election.
    from reconciler.clusters.kubernetes.api.lease_election import Election

    api = by_option(ELECTION, kubeconfig, "--elect-kubeconfig")
    identity = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
    return Election(api, found[1], found[2], identity)


@contextmanager
def taking_part(election: Election | None, turned: Callable[[], None]) -> Iterator[None]:
    """Runs the election inside the block, calling `turned` whenever its answer changes; then releases the Lease."""
    if election is None:
        yield
        return
    election.turned = turned
    election.start()
    try:
        yield
    finally:
        election.stop()
