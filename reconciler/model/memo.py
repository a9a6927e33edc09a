"""What was worked out from values, kept as long as they are the same."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Results by name. One owner."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[tuple[object, ...], object, T]] = {}

    def of(
        self,
        name: Hashable,
        work: Callable[[], T],
        *,
        same: tuple[object, ...] = (),
        equal: object = None,
    ) -> T:
        """The result for `name`, worked out anew when one of `same` is another object, or `equal` has changed.

        Objects in `same` are never compared, so they may be large. If `work` raises, the last result is kept.
        """
        found = self._kept.get(name)
        if found is None or not _identical(found[0], same) or found[1] != equal:
            found = self._kept[name] = (same, equal, work())
        return found[2]

    def __contains__(self, name: Hashable) -> bool:
        return name in self._kept

    def keep(self, names: Container[Hashable]) -> None:
        """Forget all others."""
        for name in [name for name in self._kept if name not in names]:
            del self._kept[name]


def _identical(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    return len(before) == len(now) and all(old is new for old, new in zip(before, now, strict=True))
