"""Results derived from objects, cached while the objects are equal: most of a cluster is unchanged between
two cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Results by name; computed again only if the inputs differ. One owner."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], T]] = {}

    def of(self, name: str, made_from: tuple[object, ...], work: Callable[[], T]) -> T:
        """The result for `name`. Comparing is cheap if the objects are identical."""
        found = self._kept.get(name)
        if found is None or found[0] != made_from:
            found = self._kept[name] = (made_from, work())
        return found[1]

    def keep(self, names: Container[str]) -> None:
        """Forget all others."""
        for name in [name for name in self._kept if name not in names]:
            del self._kept[name]
