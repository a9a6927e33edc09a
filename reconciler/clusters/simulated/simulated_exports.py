"""Exported Services of a simulated cluster: those that workloads applied with the label. Pure.

Its controller answers at once, and its network lets everything in: nothing is missing there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from reconciler.clusters.simulated.simulated_world import World
from reconciler.model.service_port import MOST_EXPORTS, ExportsView, ExportView
from schemas.rules.workload_rules import EXPORTED


def exports_of(world: World) -> Mapping[str, ExportsView]:
    """By slice, of those that export Services."""
    found: dict[str, ExportsView] = {}
    for slice_, state in sorted(world.slices.items()):
        if state.present and state.peers is not None:
            asked = sorted(set(_asking(world, slice_)))
            views = tuple(ExportView(space, name, "Exported") for space, name in asked)
            more = max(0, len(views) - MOST_EXPORTS)
            found[slice_] = ExportsView(views[:MOST_EXPORTS], more, by_name=True)
    return found


def _asking(world: World, slice_: str) -> Iterator[tuple[str, str]]:
    for placed in world.placed.values():
        for each in placed.objects if placed.slice == slice_ else ():
            if each.kind == "Service" and each.id not in placed.refused:
                labels = (json.loads(each.body).get("metadata") or {}).get("labels") or {}
                if labels.get(EXPORTED) == "true":
                    yield placed.namespace, each.name
