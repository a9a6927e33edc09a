"""`egs check-pr`: the effects of a pull request, for people, forges and programs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reconciler.clock import SystemClock
from reconciler.model.evidence import Voucher
from reconciler.pulls.check import PullCheck
from reconciler.pulls.check_repository import PullToCheck, checked
from reconciler.pulls.ci_event import Event, event_of
from reconciler.queries.arguments import time
from reconciler.sources.believed_keys import believed, trust_folder
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.here import is_bare
from reconciler.sources.source import MAIN, STATUS
from reconciler.store.believed_commit import Belief
from reconciler.store.git.local_store import LocalStore
from reconciler.store.git.remote_address import is_remote
from reconciler.store.store_port import Store
from reconciler.trust.keyring import read_keyring
from reconciler.trust.signature_check import SystemVerifier
from schemas.reading.collector import collector_paused


@dataclass(frozen=True, slots=True)
class Opened:
    """A repository and the compared commits."""

    store: Store
    base: str
    head: str
    status: str | None
    event: Event | None


@dataclass(frozen=True, slots=True)
class Refs:
    """Commits as typed; None: as CI or the clone says."""

    base: str | None = None
    head: str | None = None


def show_check(repo: str | None, now: str | None, refs: Refs, author: str | None, form: str) -> int:
    """Returns the exit code: 1 if it cannot be merged as it is."""
    with opened(repo, refs) as found:
        vouchers, shown = acting(author, found.event)
        folder = trust_folder()
        asked = PullToCheck(
            found.base,
            found.head,
            found.status,
            {"": vouchers} if vouchers else {},
            shown,
            read_keyring(folder),
            SystemVerifier(folder),
        )
        with collector_paused():
            check = checked(found.store, asked, clock_of(now, found))
    sys.stdout.write(rendered(check, form))
    return 1 if check.verdict == "refused" else 0


def rendered(check: PullCheck, form: str) -> str:
    if form == "json":
        import json

        from reconciler.pulls.check_json import data

        return json.dumps(data(check), indent=2, ensure_ascii=False) + "\n"
    from reconciler.pulls import check_comment, check_text

    if form == "github":
        # A workflow's log shows people what its commands show beside the lines.
        return check_comment.workflow_commands(check) + check_text.text(check)
    return check_comment.markdown(check) if form == "markdown" else check_text.text(check)


def acting(author: str | None, event: Event | None) -> tuple[tuple[Voucher, ...], str | None]:
    """Evidence of the author, as typed, else as the forge tells its CI; and the author's name."""
    if author is not None:
        email = author.rpartition("<")[2].removesuffix(">").strip()
        if "@" not in email:
            raise WrongUse(f"--author {author}: write 'Name <mail>', or an address")
        return (Voucher("signature", email=email),), email
    if event is not None and event.account:
        return (Voucher("forge", account=event.account),), event.login or f"account {event.account}"
    return (), None


@contextlib.contextmanager
def opened(repo: str | None, refs: Refs) -> Iterator[Opened]:
    """A clone as it is, without its remote; of a bare repository or URL the present state."""
    given = repo or os.environ.get("EGS_REPO")
    event = event_of(os.environ)
    if given is not None and is_remote(given):
        from reconciler.sources.bare_repository import Bare

        with Bare.opened(given) as source:
            if refs.head is None:
                raise WrongUse("name the pull request's branch with --head")
            status = source.status()
            base, head = source.commit_of(refs.base), source.commit_of(refs.head)
            yield Opened(source.store, base, head, None if status is None else status[1], None)
        return
    store = LocalStore(_git_dir(Path.cwd() if given is None else Path(given).expanduser()))
    try:
        base, head = _base(store, refs.base, event), _head(store, refs.head, event)
        belief = Belief(store, believed().controllers())
        yield Opened(store, base, head, belief.newest(store.tips().get(STATUS)), event)
    finally:
        store.close()


def _git_dir(start: Path) -> Path:
    from reconciler.sources.work_tree import git_dir

    for folder in (start, *start.absolute().parents):
        if is_bare(folder):
            return folder
        if (folder / ".git").exists():
            return git_dir(folder)
    raise WrongUse(f"{start} is in no Git repository; name one with --repo PATH|URL")


def _base(store: LocalStore, given: str | None, event: Event | None) -> str:
    """Main as it is now, rather than the commit that CI names, which may be older."""
    branch = event.base_branch if event is not None and event.base_branch else MAIN
    names = [given] if given is not None else [f"origin/{branch}", *([event.base] if event else []), branch]
    return _commit(store, names, "--base")


def _head(store: LocalStore, given: str | None, event: Event | None) -> str:
    names = [given] if given is not None else [*([event.head] if event else []), "HEAD"]
    return _commit(store, names, "--head")


def _commit(store: LocalStore, names: list[str], option: str) -> str:
    for name in filter(None, names):
        found = store.commit_of(name)
        if found is not None:
            return found
    raise WrongUse(
        f"this repository has no {' and no '.join(filter(None, names))}; fetch it, or use {option}"
    )


def clock_of(given: str | None, found: Opened) -> datetime:
    """The present, but never before the newest status: a controller's clock may be ahead."""
    named = time("--now", given)
    if named is not None:
        return named
    present = SystemClock().now().replace(microsecond=0)
    return present if found.status is None else max(present, found.store.commit(found.status).at)
