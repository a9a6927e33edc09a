"""Opens what `--repo` names: a folder, a work tree, a bare repository or a URL.

A folder's documents are its present files; its status comes from `origin` if there is one. A plain folder has
no status.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from reconciler.sources.bare_repository import Bare
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.folder import Folder
from reconciler.sources.here import is_bare, root_of
from reconciler.sources.source import Source
from reconciler.sources.work_tree import WorkTree
from reconciler.store.git.remote_address import is_remote
from schemas.errors import UserError


@contextlib.contextmanager
def opened(repo: str | None) -> Iterator[Source]:
    """The source that `--repo`, EGS_REPO or the current folder names; closed at the end."""
    given = repo or os.environ.get("EGS_REPO")
    with contextlib.ExitStack() as stack:
        try:
            yield _open(given, stack)
        except UserError as error:
            if error.reason in {"UnsupportedRemote", "BadCredentials", "BadBranch", "BadObjectId", "BadPath"}:
                raise WrongUse(str(error), error.reason) from error
            raise


def _open(given: str | None, stack: contextlib.ExitStack) -> Source:
    if given is not None and is_remote(given):
        return stack.enter_context(Bare.opened(given))
    folder = root_of(Path.cwd()) if given is None else Path(given).expanduser()
    if not folder.is_dir():
        # An address that was mistyped may hold a password.
        shown = "what --repo names" if "@" in str(given) else str(given)
        raise WrongUse(f"{shown} is neither a folder nor a URL; name the repository with --repo PATH|URL")
    if is_bare(folder):
        return stack.enter_context(Bare.opened(str(folder)))
    tree = WorkTree(folder.resolve()) if (folder / ".git").exists() else None
    return stack.enter_context(Folder.opened(folder.resolve(), tree))
