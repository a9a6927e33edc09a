"""`egs doctor`: looks at this machine, a repository, a cluster and a server, and says what to do.

It changes nothing and needs no more rights than a look. Each part is looked at for itself: a broken one hides none.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from egs.cli import version
from egs.commands import output
from egs.commands.errors import Said
from egs.commands.output import Form
from egs.modes import SERVER, Here, Line, server_of
from reconciler.cli.answers.member_kubeconfig import Own
from reconciler.cli.answers.validation import Status, checked
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.nodes.first_pools import first_document
from reconciler.clusters.kubernetes.nodes.node_inventory import read_node
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.sources.here import cache_folder
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.sources.work_tree import person
from reconciler.store.git.git_process import as_person
from schemas.errors import EgsError
from schemas.reading.units import format_instant
from schemas.rules.view import PROJECT

Result = Literal["ok", "look", "bad"]
PARTS = ("machine", "repository", "cluster", "server")
OLDEST = (1, 20)
"""Of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing; `do` is empty where there is nothing to do."""

    part: str
    check: str
    result: Result
    message: str
    do: str = ""


def show_findings(parts: tuple[str, ...], repo: str | None, own: Own, form: Form) -> int:
    """Returns the exit code: 1 if something is bad."""
    found = [finding for part in parts or PARTS for finding in _safely(part, repo, own, is_asked=bool(parts))]
    if form is Form.TABLE:
        rows = [(f.part, f.check, f.result, f.message, f.do) for f in found]
        output.table(("PART", "CHECK", "RESULT", "FOUND", "WHAT TO DO"), rows, "nothing was looked at")
    else:
        output.data([asdict(f) for f in found], form)
    return 1 if any(f.result == "bad" for f in found) else 0


def _safely(part: str, repo: str | None, own: Own, *, is_asked: bool) -> Iterator[Finding]:
    looks: dict[str, Callable[[], Iterator[Finding]]] = {
        "machine": machine,
        "repository": lambda: repository(repo, is_asked=is_asked),
        "cluster": lambda: cluster(own, is_asked=is_asked),
        "server": lambda: server(is_asked=is_asked),
    }
    try:
        yield from looks[part]()
    except (EgsError, Said) as error:
        yield Finding(part, "answers", "bad", str(error))


def machine() -> Iterator[Finding]:
    """Python, git, who you are, and the cache."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("machine", "version", "ok", f"egs {version()}, Python {python}")
    if shutil.which("git") is None:
        yield Finding("machine", "git", "bad", "there is no git", "install git 2.31 or newer")
        return
    told = as_person(["--version"], Path.cwd()).output.decode("utf-8", "replace").strip()
    yield Finding("machine", "git", "ok", told)
    try:
        who = person(None, Path.cwd())
        yield Finding("machine", "author", "ok", f"{who.name} <{who.email}>")
    except EgsError:
        do = "git config --global user.name NAME; git config --global user.email MAIL"
        yield Finding("machine", "author", "look", "git does not know who you are", do)
    yield _cache()


def _cache() -> Finding:
    folder = cache_folder()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if os.access(there, os.W_OK):
        return Finding("machine", "cache", "ok", str(folder))
    return Finding(
        "machine", "cache", "bad", f"{there} cannot be written", "set EGS_CACHE to a folder of yours"
    )


def repository(repo: str | None, *, is_asked: bool) -> Iterator[Finding]:
    """Whether it opens, whether its documents are valid, and whether a controller wrote a status."""
    with opened(repo) as source:
        if not is_asked and repo is None and not _has_project(source):
            return
        yield Finding("repository", "opens", "ok", "a folder" if source.is_folder else "a Git repository")
        errors = [p for p in checked(source, (None, None), Status(source)).problems if p.severity == "error"]
        message = f"{len(errors)} error{'s' * (len(errors) != 1)} in its documents"
        if errors:
            yield Finding("repository", "documents", "bad", message, "egs validate says where and what to do")
        else:
            yield Finding("repository", "documents", "ok", "all are valid")
        yield _status(source)


def _has_project(source: Source) -> bool:
    return any(path == PROJECT for path, _, _ in source.files(None))


def _status(source: Source) -> Finding:
    loaded = source.loaded(SystemClock().now())
    if loaded is None:
        return Finding(
            "repository",
            "status",
            "look",
            "no controller has written a status",
            "start one with egs-reconciler run; if requests are there already, egs-reconciler adopt first",
        )
    return Finding("repository", "status", "ok", f"last written at {format_instant(loaded.facts.at)}")


def cluster(own: Own, *, is_asked: bool) -> Iterator[Finding]:
    """Version, how pods are placed, and which nodes could be in a pool; with your own kubeconfig."""
    if not (is_asked or own.kubeconfig or own.context):
        return
    api = member_tokens.connected(member_tokens.opened(own.kubeconfig, own.context), "of this kubeconfig")
    yield _version(api)
    if discover(api).mutating_policies:
        yield Finding("cluster", "admission", "ok", "pods are placed by policies of the API server")
    else:
        do = "install the webhook: admission.enabled of the chart"
        yield Finding("cluster", "admission", "look", "the API server is older than 1.36", do)
    try:
        found = first_document("cluster", (read_node(item) for item in api.items("/api/v1/nodes")))
    except Rejected as error:
        yield Finding("cluster", "nodes", "bad", str(error), "ask for the right to list nodes")
        return
    if found.pools:
        yield Finding("cluster", "nodes", "ok", "; ".join(found.pools))
    else:
        do = "install the GPU operator, or the device plugin and GPU feature discovery"
        yield Finding("cluster", "nodes", "bad", "no GPU node could be in a pool", do)
    for note in found.notes:
        yield Finding("cluster", "nodes", "look", note)


def _version(api: Api) -> Finding:
    told = api.get("/version")
    digits = ["".join(c for c in told.get(part, "") if c.isdigit()) for part in ("major", "minor")]
    text = f"Kubernetes {told.get('gitVersion', '')}"
    # A server that was built without its version tells none.
    if not all(digits) or tuple(map(int, digits)) >= OLDEST:
        return Finding("cluster", "version", "ok", text)
    return Finding("cluster", "version", "bad", text, "upgrade it: 1.20 is the oldest that is supported")


def server(*, is_asked: bool) -> Iterator[Finding]:
    """Whether the server of EGS_SERVER or of the current context answers, and knows you."""
    target = server_of(Line(()), Here(os.environ, Path.cwd(), has_repositories=True))
    if target is None:
        if is_asked:
            yield Finding("server", "named", "bad", "no server is named", "egs login SERVER")
        return
    from egs.remote import asking

    before = SERVER.set(target)
    try:
        me = asking.get("auth")
    finally:
        SERVER.reset(before)
    yield Finding("server", "answers", "ok", f"{target.server} knows you as {me['email']}")
