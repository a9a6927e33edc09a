"""Whose words commands believe: the keys in the folder that EGS_TRUST names, and those in manifests."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.settings import Trust
from reconciler.trust.machines import Machines, machines_of


def believed() -> Machines:
    """As the environment says now. UserError `BadTrustFolder`."""
    return machines_of(Trust(folder=trust_folder()))


def trust_folder() -> Path | None:
    """The folder of keys that the environment names."""
    folder = os.environ.get("EGS_TRUST")
    return Path(folder).expanduser() if folder else None
