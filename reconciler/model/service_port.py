"""Services of a slice across its clusters, as a cluster's driver gets and shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Peer:
    """Another cluster of a slice, whose pods use the Services that the slice exports."""

    cluster: str
    mesh: str  # its name in the cluster mesh
    addresses: tuple[str, ...] = ()  # networks of its pods, as seen from other clusters; empty: not known


ExportState = Literal["Exported", "Waiting", "Unanswered", "Refused", "Conflict"]
"""Unanswered: no controller has taken it up in a minute."""


@dataclass(frozen=True, slots=True)
class ExportView:
    """One exported Service as the cluster shows it."""

    namespace: str
    name: str
    state: ExportState
    message: str = ""


MOST_EXPORTS = 100
"""Services that one slice exports from one cluster, the first by namespace and name."""


@dataclass(frozen=True, slots=True)
class ExportsView:
    """A slice's exported Services in one cluster."""

    exports: tuple[ExportView, ...] = ()  # by namespace and name
    omitted: int = 0  # Services that ask for it beyond `MOST_EXPORTS`: not exported
    by_name: bool = False  # network policies name the peers' clusters; False: at most their addresses
    problem: str = ""  # why none is exported although that is wanted, and what to do

    @property
    def names(self) -> tuple[str, ...]:
        """All that is named."""
        return tuple(name for each in self.exports for name in (each.namespace, each.name))
