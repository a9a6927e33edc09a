"""What a caller may not see of others, taken out of sentences: names of requests in slices that are not theirs. Pure.

Rows of others are never given out at all; this is for words in which others are named, such as why a start moved.
What stands behind the name of such a slice is taken for a request, whether there is one now or was one once.

Held by tests/portal/identity/test_redaction.py: also that it takes no longer than the sentence is long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from portal.identity.callers import Caller
from portal.views.view import View

SOMEBODY = "another workspace's request"
# Each alternative begins where no name goes on, so that no letter is looked at from two beginnings.
_KEY = re.compile(
    r"(?:(?<![\w-])slices/(?P<path>[a-z0-9-]+)/gprs|(?<![\w/-])(?<!\w\.)(?P<slice>[a-z0-9][a-z0-9-]*))/(?P<name>\w[\w.-]*)",
    re.ASCII,
)
_END = ".-"
"""What ends a sentence or a list and no name."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """What one caller sees of one view."""

    caller: Caller
    view: View

    def text(self, sentence: str) -> str:
        """The sentence, with requests that the caller may not see named as somebody's."""
        if self.caller.sees is None or "/" not in sentence:
            return sentence
        said = _KEY.sub(self._named, sentence)
        return said[0].upper() + said[1:] if said.startswith(SOMEBODY) and " " in sentence else said

    def key(self, key: str) -> str:
        """A request's `slice/name`, or nothing where the caller may not see it."""
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
        """Whether that may be a request: it is one, or stands behind a slice's name and is no pool or node."""
        key = f"{slice_}/{name.removesuffix('.yaml')}"
        if key in self.view.facts.requests or key in self.view.wanted.filed:
            return True
        known = slice_ in self.view.wanted.slices or slice_ in self.view.once_planned(_slices_of_requests)
        return known and key not in self.view.once_planned(_places)


def _slices_of_requests(view: View) -> frozenset[str]:
    """Of all requests that there are records of: a slice may be gone before they are."""
    return frozenset(key.partition("/")[0] for key in view.facts.requests)


def _places(view: View) -> frozenset[str]:
    """Pools and nodes, as cluster/name: a cluster may be called like a slice."""
    pools = view.wanted.pools.items()
    return frozenset(f"{cluster}/{name}" for (cluster, pool), found in pools for name in (pool, *found.nodes))
