"""The port between the commands and what answers them: a repository, or a server in front of one.

Commands are declared once, in this package. A backend gives data (JSON, see docs/reference/commands/), and the commands
print it, so a command gives the same table and the same JSON on both. `egs.remote.server.Server` is the backend for a
server; an installed package brings the one for repositories (`egs.cli.Register`).

Held by tests/contract/test_command_contract.py, on both backends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from egs.commands.output import Form, Row

STANDS = ("phase", "reason", "estimatedStartTime", "estimatedEndTime")
"""Fields of a request whose changes `egs watch` reports."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which repository, how a change reaches its main branch, and which state is read, as typed.

    A server ignores all but `at`.
    """

    repo: str | None = None
    now: str | None = None
    author: str | None = None
    pull_request: bool | None = None
    by_default: Literal["push", "pull-request"] | None = None
    """How this kind of change reaches main if the caller does not say; None: as the project says."""
    kubeconfigs: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    state: str | None = None
    metrics_files: str | None = None
    """Ways into clusters, for commands that look at pods and GPUs."""
    at: str | None = None
    """The past state to show, on a server too; None: the present."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A request that was filed, or only tried: the data of `egs gpr create`, and notes about it."""

    data: Row
    notes: Sequence[str] = ()
    text: str = ""
    """The file that a trial would write; empty on a server."""


Rule = Literal["request", "extension"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What an admin decides about a request, as typed; a server ignores `handle` and `key`."""

    decision: Literal["approve", "reject"]
    reason: str = ""
    limit_gpus: int | None = None
    limit_nodes: int | None = None
    not_after: str | None = None
    handle: str | None = None
    rule: Rule = "request"
    limit_extend: str | None = None
    key: Path | None = None
    """To sign with; None: as git is configured."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a kubeconfig is made on a repository; a server ignores all of it."""

    namespace: str | None
    member: str | None
    life: str | None
    """Life of an embedded token; None: a plugin gets tokens."""
    protocol: str
    kubeconfig: str | None
    """The caller's own, with the context below."""
    context: str | None
    out: Path | None
    """The file to write; never the caller's own kubeconfig."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Which clusters `egs diff` looks at, and how it reaches them; a server has none of it."""

    clusters: Sequence[str] = ()
    kubeconfigs: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    state: Path | None = None
    """A controller's folder, for simulated clusters."""
    project: str | None = None
    namespace: str | None = None


class Backend(Protocol):
    """What the commands need. Refusals and faults are exceptions with a `reason` and an exit code (`egs.cli`)."""

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        """The rows of `egs get KIND`; a filter that is None is not applied."""

    def whole(self, kind: str, name: str) -> Row:
        """The data of `egs describe KIND NAME`."""

    def calendar(self, filters: Mapping[str, Any]) -> Row:
        """The data of `egs get calendar`: of `GET calendar`, with all rows."""

    def plan(self, ref: str | None, against: str | None) -> Row:
        """The data of `egs plan`, with `changes` if `against` is given."""

    def instance(self, file: str, pools: Sequence[str], form: str, is_fair: bool) -> int:
        """Answer `egs plan --instance` and give the exit code."""

    def quotes(self, slice_: str, terms: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
        """The rows of `egs wait`, and notes about them; `terms` are fields of its spec, None: not given."""

    def what_if(
        self, manifests: Mapping[str, str], edits: Sequence[tuple[str, Sequence[str]]], ended: Sequence[str]
    ) -> Row:
        """The data of `egs whatif`: texts by file, requests with `FIELD=VALUE` words, and requests that end."""

    def why(self, request: str) -> Row:
        """The data of `egs why`."""

    def diagnosis(self, workload: str, slice_: str | None) -> Row:
        """The data of `egs diagnose`; `slice_` narrows the search."""

    def advice(self, slice_: str, terms: Mapping[str, Any]) -> Row:
        """The data of `egs advise`; `terms`: hours, patience, coldStart, gpusPerNode, gpuShape.

        `gpuShape` is a list; both may be None. With `endpoint` it learns from what that one served.
        """

    def insights(self, days: int) -> Row:
        """The data of `egs insights`."""

    def blame(self, thing: str, field: str | None, limit: int) -> Row:
        """The data of `egs blame`."""

    def differences(self, first: str, second: str | None) -> Row:
        """The data of `egs diff FROM [TO]`; without a second state until the newest."""

    def in_clusters(self, ways: Ways, form: Form) -> int:
        """Answer `egs diff` without a state and give the exit code."""

    def promises(self, months: int) -> Row:
        """The data of `egs promises`."""

    def watch(self, slice_: str | None, gpr: str | None, every_s: int) -> Iterable[Row | None]:
        """The lines of `egs watch -o json`, until the caller stops; None whenever there was none for `every_s`."""

    def create(self, request: str, terms: Mapping[str, Any], *, is_trial: bool) -> Filed:
        """File a request; `terms` as for `quotes`."""

    def run_job(
        self, text: str, about: Mapping[str, str | None], terms: Mapping[str, Any], *, is_trial: bool
    ) -> Row:
        """File a workload with the objects in `text`, and its request unless `about` names one.

        `about`: slice, name, gpr, namespace; `terms` as for `quotes`. Gives slice, gpr, workload and the files' text.
        """

    def delete_job(self, workload: str) -> None:
        """Delete a workload."""

    def create_endpoint(self, endpoint: str, gpr: str, spec: Mapping[str, Any], *, is_trial: bool) -> str:
        """File an endpoint on that request of its slice; `spec` has the other fields. Gives the file's text."""

    def promote_endpoint(self, endpoint: str, version: str, percent: int) -> None:
        """Give a version that share of the traffic."""

    def roll_back_endpoint(self, endpoint: str) -> None:
        """Bring back the weights that stood before."""

    def edit(self, request: str, words: Sequence[str]) -> None:
        """Change fields of a request, typed as `FIELD=VALUE`. Every change reports on stderr where it is now."""

    def change(self, request: str, fields: Mapping[str, Any], subject: str) -> None:
        """Change fields of a request; None removes a field. `subject` is the commit's."""

    def release(self, request: str) -> None:
        """End a request, whatever its phase."""

    def cancel(self, request: str) -> None:
        """End a request that waits."""

    def restore(self, request: str) -> None:
        """Restore a request's file with the terms in force."""

    def request_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        """Ask for a slice; `about` has clusters, namespaces, members, owners, quota, limits, text, keys and forge."""

    def create_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        """Make a slice; `about` as for `request_slice`."""

    def slice_parts(self, name: str) -> Row:
        """What is deleted with a slice: `slice`, `files` (null on a server), `clusters` and `namespaces`."""

    def delete_slice(self, name: str) -> None:
        """Delete a slice."""

    def add_member(
        self, name: str, mail: str, *, is_owner: bool, keys: tuple[Path, ...], forge: str | None
    ) -> None:
        """Add a person to a slice, or new keys and accounts of a member."""

    def remove_member(self, name: str, mail: str) -> None:
        """Remove a person from a slice."""

    def undo(self, commit: str, *, is_trial: bool) -> Row:
        """Propose the change that takes a commit back; a trial only shows it: the data of `egs undo`."""

    def decide(self, request: str, decision: Decision) -> None:
        """Approve or reject a request as it reads now."""

    def keys(self) -> list[Row]:
        """The rows of `egs key list`."""

    def create_key(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> str:
        """Make a key; returns its text, in a trial its manifest. `about`: role, slices, email, expires, description."""

    def revoke_key(self, name: str) -> None:
        """Revoke a key."""

    def kubeconfig(self, slice_: str, cluster: str, access: Access) -> str:
        """A kubeconfig of a slice's namespaces in a cluster; the caller's earlier ones stop working."""

    def portal(self, port: int, show: Callable[[str], None]) -> None:
        """Call back with a link that opens the pages for the caller; a repository's are served until a signal."""


Pages = Callable[[Where, int, Callable[[str], None]], None]
"""Serves the pages of a repository on a port until a signal; calls back with the link that opens them."""
PAGES: ContextVar[Pages | None] = ContextVar("pages", default=None)
"""Set by the package with the portal, if that is installed."""
REPOSITORY: ContextVar[Callable[[Where], Backend] | None] = ContextVar("repository", default=None)
"""How the running command line opens a repository; None: only the client is installed. Set by `egs.cli`."""
