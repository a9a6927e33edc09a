"""What a caller may not see of others, taken out of sentences: names of requests in slices that are not theirs. Pure.

Rows of others are never given out at all; this is for words in which others are named, such as why a start moved.

Held by tests/portal/test_hiding.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from portal.callers import Caller
from portal.view import View

SOMEBODY = "another workspace's request"
_KEY = re.compile(r"(?<![\w./-])([a-z0-9][-a-z0-9]{0,62})/([a-z0-9][-a-z0-9]{0,62})(?![\w/-])")


@dataclass(frozen=True, slots=True)
class Veil:
    """What one caller sees of one view."""

    caller: Caller
    view: View

    def text(self, sentence: str) -> str:
        """The sentence, with requests that the caller may not see named as somebody's."""
        if self.caller.sees is None:
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
        is_request = found[0] in self.view.facts.requests or found[0] in self.view.wanted.filed
        return SOMEBODY if is_request and not self.caller.may_see(found[1]) else found[0]
