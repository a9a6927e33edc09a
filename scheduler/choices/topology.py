"""Which of several equal nodes a request gets: few domains, large ones kept whole, nodes with faults last. Pure.

A domain is a location: a block, a rack in it, an island of NVLink or InfiniBand. `Traits.domains` names a node's
domains, the largest first; a node without them counts as alone.

What always holds:
  * as many nodes as asked for, whatever their domains;
  * no choice has fewer domains of the largest kind, and if one of these suffices, none has fewer of the next;
  * of choices with equally few domains, none has fewer faults if one domain of each kind suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Path = tuple[str, ...]
"""Domains from the largest down."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What distinguishes a node from others of its pool."""

    domains: Path = ()
    faults: int = 0  # within the last weeks; see `reconciler.health.node_faults`


PLAIN = Traits()
TraitsOf = Callable[[str], Traits]


def plain(_: str) -> Traits:
    """No distinction between nodes."""
    return PLAIN


def together(names: Sequence[str], count: int, traits: TraitsOf, beside: Collection[str] = ()) -> list[str]:
    """`count` of `names` (there are enough), close to each other and to the nodes `beside`; O(n log n) per kind."""
    known = [(name, traits(name)) for name in names]
    depth = max((len(found.domains) for _, found in known), default=0)
    at_home = {traits(name).domains[:kind] for name in beside for kind in range(1, depth + 1)}
    nodes = [
        _Node(name, place, found.faults, _path(name, found, depth))
        for place, (name, found) in enumerate(known)
    ]
    chosen = _choose(nodes, count, 0, at_home)
    return [node.name for node in chosen.nodes]


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    place: int  # in the pool's order
    faults: int
    path: Path


@dataclass(frozen=True, slots=True)
class _Choice:
    """Nodes and their cost: the number of domains that they add of each kind, then their faults."""

    nodes: list[_Node]
    cost: tuple[int, ...]


def _path(name: str, traits: Traits, depth: int) -> Path:
    """A path of the full depth; an unknown domain is unlike all others."""
    lacking = depth - len(traits.domains)
    return traits.domains + (f"\0{name}",) * lacking


def _choose(nodes: list[_Node], count: int, kind: int, at_home: set[Path]) -> _Choice:
    if not nodes or kind == len(nodes[0].path):
        best = sorted(nodes, key=lambda node: (node.faults, node.place))[:count]
        return _Choice(best, (sum(node.faults for node in best),))
    groups: dict[str, list[_Node]] = {}
    for node in nodes:
        groups.setdefault(node.path[kind], []).append(node)
    chosen: list[_Node] = []
    costs: list[tuple[int, ...]] = []
    left = _by_size(groups.values(), kind, at_home)
    while len(chosen) < count:
        rest = count - len(chosen)
        able = [group for group in left if len(group) >= rest]
        if able:
            tried = [(_one(group, rest, kind, at_home), group) for group in able]
            choice, _ = min(tried, key=lambda pair: (pair[0].cost, len(pair[1]), pair[1][0].place))
        else:
            choice = _one(left.pop(0), 0, kind, at_home)
        chosen += choice.nodes
        costs.append(choice.cost)
    return _Choice(chosen, tuple(map(sum, zip(*costs, strict=True))))


def _by_size(groups: Collection[list[_Node]], kind: int, at_home: set[Path]) -> list[list[_Node]]:
    """Groups without cost first, then the largest."""
    return sorted(
        groups, key=lambda group: (group[0].path[: kind + 1] not in at_home, -len(group), group[0].place)
    )


def _one(group: list[_Node], count: int, kind: int, at_home: set[Path]) -> _Choice:
    """`count` nodes of one domain; 0: all of them."""
    choice = _choose(group, count or len(group), kind + 1, at_home)
    return _Choice(choice.nodes, (int(group[0].path[: kind + 1] not in at_home), *choice.cost))
