"""`egs endpoint create`: the file of a new endpoint, as one change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.changes.change import Change, Means
from reconciler.changes.publish import aimed, publish
from reconciler.changes.requests import check_typed
from reconciler.documents.manifest_text import endpoint_file
from reconciler.queries.state import State, split
from reconciler.sources.command_errors import NotAllowed, NotFound
from schemas.rules.view import endpoint_path, gpr_path


def create(
    means: Means, key: str, gpr: str, spec: Mapping[str, Any], now: str | None, *, is_trial: bool
) -> str:
    """Files an endpoint on request `gpr` of its slice; gives the file's text."""
    slice_, name = split(key)
    path, text = endpoint_path(slice_, name), ""

    def build(state: State, base: str) -> Change:
        nonlocal text
        if slice_ not in state.wanted.slices:
            raise NotFound("slice", slice_, state.wanted.slices)
        if source.store.read_path(base, path) is not None:
            raise NotAllowed(f"{path} exists; choose another name, or edit the file")
        if source.store.read_path(base, gpr_path(slice_, gpr)) is None:
            raise NotFound("request", f"{slice_}/{gpr}", state.facts.requests)
        data = endpoint_file(slice_, name, gpr, spec)
        check_typed(path, data, b"")
        text = data.decode()
        return Change({path: data}, f"Serve {key}", f"{slice_}-{name}")

    with aimed(means) as source:
        publish(source, means, build, now, is_trial=is_trial)
    return text.rstrip("\n")
