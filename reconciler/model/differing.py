"""What differs between two mappings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def differing(old: Mapping[Key, object], new: Mapping[Key, object]) -> set[Key]:
    """Keys whose values are not equal, and those that only one of them has, unless with None."""
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
