"""A whole status tree read back at once; the product reads each file once (`reconciler.status.tree`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.facts import Facts
from reconciler.status.parse import facts_of, record_from


def facts_from(files: Mapping[str, bytes], at: datetime, intent: str) -> Facts:
    """The facts that a status tree holds; the inverse of `render` and `request_file`."""
    found = {path: record_from(path, data) for path, data in files.items()}
    return facts_of({path: record for path, record in found.items() if record is not None}, at, intent)
