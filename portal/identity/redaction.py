"""Hides from a caller what they may not see: names of requests in other slices, in sentences. Pure.

Rows of other slices are never sent; this is for sentences that name other requests, such as why a start moved. A name
after the name of such a slice counts as a request, whether it exists now or existed once.

Held by tests/portal/identity/test_redaction.py: also that it runs in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from portal.identity.callers import Caller
from portal.views.view import View

SOMEBODY = "another workspace's request"
# Each alternative starts only at the start of a name, so that no character is scanned twice.
_KEY = re.compile(
    r"(?:(?<![\w-])slices/(?P<path>[a-z0-9-]+)/gprs|(?<![\w/-])(?<!\w\.)(?P<slice>[a-z0-9][a-z0-9-]*))/(?P<name>\w[\w.-]*)",
    re.ASCII,
)
_END = ".-"
"""Characters that end a sentence or a list but not a name."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """What one caller may see in one view."""

    caller: Caller
    view: View

    def text(self, sentence: str) -> str:
        """The sentence with hidden requests replaced by "another workspace's request"."""
        if self.caller.sees is None or "/" not in sentence:
            return sentence
        said = _KEY.sub(self._named, sentence)
        return said[0].upper() + said[1:] if said.startswith(SOMEBODY) and " " in sentence else said

    def key(self, key: str) -> str:
        """A request's `slice/name`, or nothing if the caller may not see it."""
        return key if self.caller.may_see(key.partition("/")[0]) else ""

    def strings(self, row: Mapping[str, object]) -> dict[str, object]:
        """The same for every text of a row."""
        return {name: self.text(value) if isinstance(value, str) else value for name, value in row.items()}

    def _named(self, found: re.Match[str]) -> str:
        slice_, whole = found["path"] or found["slice"], found[0]
        name = found["name"].rstrip(_END)
        if self.caller.may_see(slice_) or not self._is_named(slice_, name):
            return whole
        return SOMEBODY + found["name"][len(name) :]

    def _is_named(self, slice_: str, name: str) -> bool:
        """Whether it may be a request: it is one, or it follows a slice's name and is not a pool or node."""
        key = f"{slice_}/{name.removesuffix('.yaml')}"
        if key in self.view.facts.requests or key in self.view.wanted.filed:
            return True
        known = slice_ in self.view.wanted.slices or slice_ in self.view.once_planned(_slices_of_requests)
        return known and key not in self.view.once_planned(_places)


def _slices_of_requests(view: View) -> frozenset[str]:
    """Slices of all recorded requests: a slice may be deleted before its requests are."""
    return frozenset(key.partition("/")[0] for key in view.facts.requests)


def _places(view: View) -> frozenset[str]:
    """Pools and nodes, as cluster/name: a cluster may have the name of a slice."""
    pools = view.wanted.pools.items()
    return frozenset(f"{cluster}/{name}" for (cluster, pool), found in pools for name in (pool, *found.nodes))
