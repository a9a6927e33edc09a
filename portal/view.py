"""What every answer is made of: one commit of the status branch, and main as it was fetched with it. Immutable.

A view is replaced as a whole when a fetch brings something new, so that an answer never mixes two commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from reconciler.commands.state import State
from reconciler.facts import Facts, Wanted
from reconciler.trust.authority import Authority
from reconciler.world import build_snapshot
from schemas.apikey import ApiKeySpec
from schemas.gpr import RequestSpec
from schemas.identity import uid_of
from schemas.problems import Problem
from schemas.status import GPRStatus


@dataclass(frozen=True)
class View:
    """One look at the repository. What is costly is worked out when it is first asked for, then kept."""

    main: str
    """Commit of main, in the store."""
    status: str
    """Commit of the status branch; empty: there is none yet."""
    facts: Facts
    """As committed there; its `at` is when they were decided."""
    wanted: Wanted
    """The documents in force at `main`."""
    authority: Authority
    fetched: datetime
    """When the remote last answered; how old an answer is counts from here."""
    problems: tuple[Problem, ...] = field(default=())

    @cached_property
    def keys(self) -> Mapping[str, tuple[str, ApiKeySpec]]:
        """Name and manifest of every API key, by the digest of its text."""
        return {spec.sha256: (name, spec) for name, spec in self.wanted.keys.items()}

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """`slice/name` by request id, also of files that the controller has not answered yet."""
        found = {
            uid_of(key, filed.nonce): key
            for key, filed in self.wanted.filed.items()
            if key not in self.facts.requests and filed.nonce
        }
        return found | {status.uid: key for key, status in self.facts.requests.items()}

    @cached_property
    def state(self) -> State:
        """The same as commands have it, so that the API and `egs -o json` give the same rows."""
        snapshot = build_snapshot(self.wanted, self.facts, None, frozenset())
        return State(self.facts.at, self.main, self.wanted, self.facts, self.facts, snapshot, self.problems)

    def request(self, id_or_key: str) -> tuple[str, GPRStatus | None, RequestSpec] | None:
        """`slice/name`, what the controller says of it (None: nothing yet) and what it asks for; None: there is none.

        `id_or_key` is a request's id, or `slice/name`.
        """
        key = self.ids.get(id_or_key, id_or_key)
        status = self.facts.requests.get(key)
        if status is not None:
            return key, status, status.accepted_spec
        filed = self.wanted.filed.get(key)
        return None if filed is None or filed.spec is None else (key, None, filed.spec)
