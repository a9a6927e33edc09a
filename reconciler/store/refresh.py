"""Fetches branches from the remote, or continues with the known ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from reconciler.store.store_port import Store
from schemas.errors import Fault

log = logging.getLogger(__name__)


def fetched(store: Store, patterns: Sequence[str]) -> bool:
    """False if the remote is unreachable."""
    try:
        store.fetch(patterns)
    except Fault as fault:
        log.warning(
            "repository not fetched reason=%s message=%s; committed starts and ends still happen",
            fault.reason,
            fault,
        )
        return False
    return True
