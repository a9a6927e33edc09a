"""The keys that commands trust: those in the folder named by EGS_TRUST, and those in manifests."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.settings import Trust
from reconciler.trust.machines import Machines, machines_of


def believed() -> Machines:
    """According to the current environment. UserError `BadTrustFolder`."""
    return machines_of(Trust(folder=trust_folder()))


def trust_folder() -> Path | None:
    """The folder of keys named by the environment."""
    folder = os.environ.get("EGS_TRUST")
    return Path(folder).expanduser() if folder else None
