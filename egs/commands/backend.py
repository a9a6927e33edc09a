"""The port between the commands and what answers them: a repository, or a server in front of one.

Commands are declared once, in this package. A backend gives data (the JSON of docs/commands.md), and the commands
print it, so a command gives the same table and the same JSON on both. `egs.remote.server.Server` is the backend for a
server; an installed package brings the one for repositories (`egs.cli.Register`).

Held by tests/contract/test_command_contract.py, on both backends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from egs.commands.output import Row
from egs.modes import SERVER

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """Which repository, and how a change reaches its main branch, as typed. A server takes none of it."""

    repo: str | None = None
    now: str | None = None
    author: str | None = None
    pull_request: bool | None = None
    by_default: Literal["push", "pull-request"] | None = None
    """How this kind of change reaches main if the caller does not say; None: as the project says."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A request that was filed, or only tried: the data of `egs gpr create`, and sentences beside it."""

    data: Row
    notes: Sequence[str] = ()
    text: str = ""
    """The file that a trial would write; a server does not tell."""


class Backend(Protocol):
    """What every command needs. Refusals and faults are exceptions with a `reason` and an exit code (`egs.cli`)."""

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        """The rows of `egs get KIND`; a filter that is None is not applied."""

    def whole(self, kind: str, name: str) -> Row:
        """The data of `egs describe KIND NAME`."""

    def plan(self, ref: str | None, against: str | None) -> Row:
        """The data of `egs plan`, with `changes` if `against` is given."""

    def instance(self, file: str, pools: Sequence[str], form: str, is_fair: bool) -> int:
        """Answer `egs plan --instance` and give the exit code."""

    def quotes(self, slice_: str, terms: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
        """The rows of `egs wait`, and sentences beside them; `terms` are fields of its spec, None: not given."""

    def why(self, request: str) -> Row:
        """The data of `egs why`."""

    def insights(self, days: int) -> Row:
        """The data of `egs insights`."""

    def watch(self, slice_: str | None, gpr: str | None, every_s: int) -> Iterable[Row]:
        """The lines of `egs watch -o json`, until the caller has enough."""

    def create(self, request: str, terms: Mapping[str, Any], *, is_trial: bool) -> Filed:
        """File a request; `terms` as for `quotes`."""

    def edit(self, request: str, words: Sequence[str]) -> None:
        """Change fields of a request, typed as `FIELD=VALUE`. Every change says on stderr where it is then."""

    def change(self, request: str, fields: Mapping[str, Any], subject: str) -> None:
        """Change fields of a request; None takes one out. `subject` is the commit's."""

    def release(self, request: str) -> None:
        """End a request, whatever its phase."""

    def cancel(self, request: str) -> None:
        """End a request that waits."""

    def restore(self, request: str) -> None:
        """Write a request's file back as it counts."""


REPOSITORY: ContextVar[Callable[[Where], Backend] | None] = ContextVar("repository", default=None)
"""How the running command line opens a repository; None: only the client is installed. Set by `egs.cli`."""


def backend(where: Where) -> Backend:
    """The server if one is chosen (`egs.modes`), else the repository."""
    opened = REPOSITORY.get()
    if opened is not None and SERVER.get() is None:
        return opened(where)
    from egs.remote.server import Server

    return Server()
