"""The latest commits that changed one file of main.

It reads the commits back to the oldest of them, so never in the event loop.

Held by tests/portal/views/test_file_history.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.store.store_port import Commit, Store

LATEST = 5
"""Commits that are told."""


def file_history(store: Store, tip: str, path: str, most: int = LATEST) -> Sequence[Commit]:
    """Newest first; empty: no commit has that path."""
    found: list[Commit] = []
    at: str | None = tip
    while at is not None and len(found) < most:
        changed = store.last_change(at, path)
        if changed is None:
            break
        found.append(store.commit(changed))
        at = found[-1].parents[0] if found[-1].parents else None
    return found
