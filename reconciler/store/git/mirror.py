"""The bare repository in which one process mirrors a remote: created, opened, locked and kept small.

A mirror has one owner at a time, through a file lock that the kernel releases when the owner dies. Remains of
a killed owner (lock files, half-written packs) are removed on opening, so no person has to. Branches of the
remote are below `refs/remotes/origin/`, the newest drafts below `refs/egs/drafts/`; `tend` drops everything
else.

GitPython creates and reads configuration and refs here. On import it reads `GIT_*` variables and runs git, so
both happen without those variables.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from configparser import Error as ConfigError
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from reconciler.credentials import Credentials
from reconciler.store.git.git_process import Git
from reconciler.store.git.mirror_check import damage
from reconciler.store.git.remote_address import Address
from schemas.errors import Fault, UserError

if TYPE_CHECKING:
    import git

log = logging.getLogger(__name__)

TRACKING = "refs/remotes/origin/"
_DRAFTS = "refs/egs/drafts/"
# A push with an unknown outcome may need its commit again for a while, and as many may be written at once.
_DRAFTS_KEPT = 64
_SEEN = "refs/egs/seen/"
"""The newest commits that counted of branches: the only trace of one that was reset or deleted at the remote."""
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\n")
_OWNER_FILE = "egs-owner"
_HOME = "egs-home"
_FRESH = "egs-fresh"
_NEVER_OURS = ("shallow", "info/grafts", "objects/info/alternates")
"""Files that change what git reads, and that we never write."""
_MOST_SAVED = 64
"""Refs copied one by one from a damaged mirror to its replacement."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits for git and size limits of the mirror."""

    local: timedelta = timedelta(seconds=60)  # reading and writing objects: seconds even for 100,000 files
    # Fetch and push: enough for a first clone of a large repository.
    remote: timedelta = timedelta(seconds=120)
    upkeep: timedelta = timedelta(minutes=15)  # a full repack of the largest repository on a slow disk
    packs: int = 64  # each fetch or commit adds one; many packs slow down every git process
    operations: int = 2000  # between full repacks: about a day of work, a few seconds of repacking
    # Fetches before a refused branch is downloaded again, so that a bad branch costs little.
    retry_refused: int = 20
    doubts: int = 20  # fetches between two integrity checks, which read the whole mirror


class Mirror:
    """An owned bare repository. UserErrors: `MirrorInUse` (by another process or remote), `NotAMirror`."""

    def __init__(
        self, path: Path, address: Address, limits: Limits, credentials: Credentials | None = None
    ) -> None:
        self.path = path.expanduser().resolve()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(self.path.iterdir()) and not (self.path / _OWNER_FILE).exists():
            # Damaged mirrors are emptied below; that must never affect a folder with other content.
            raise UserError(f"{self.path} is not empty and not a mirror; give an empty folder", "NotAMirror")
        self._owner: int | None = _own(self.path)
        try:
            _remove_leftovers(self.path)
            home = self.path / _HOME
            home.mkdir(mode=0o700, exist_ok=True)
            self.git = Git(self.path, home, address, credentials)
            self._limits = limits
            self._address, self._credentials = address, credentials
            self.mended: list[str] = []
            """What was repaired, a sentence each; cleared by the caller that reports it."""
            self.refs = self._opened(address)
        except BaseException:
            self.close()
            raise
        self._packs = sum(1 for _ in (self.path / "objects" / "pack").glob("*.pack"))
        self._operations = 0
        self._replaced = False
        self._slot = 0
        self._drafts: dict[str, str] = {}  # ref: commit that is not known to be on a branch

    def _opened(self, address: Address) -> dict[str, str]:
        try:
            return self._open(address)
        except Fault as error:
            log.warning("mirror remade path=%s error=%s", self.path, error)
            self.mended.append(_told(self.path, str(error)))
        # A file truncated by a power failure must not need a person: everything important is at the remote.
        _empty(self.path)
        return self._open(address)

    def damage(self) -> str:
        """What is wrong with the mirror, other than in a new one; empty: nothing. Reads all of it."""
        return damage(self.path, self.git, self._address.url, self._local_s)

    def remake(self, bring: Callable[[Git], bool], why: str) -> bool:
        """Creates a new mirror beside this one; False: `bring` could not fill it, and this one stays.

        Branch heads that the remote no longer provides, and remembered commits, are copied if possible.
        """
        fresh = self.path / _FRESH
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            if not self._filled(fresh, bring):
                return False
            _empty(self.path, keep=(_FRESH,))
            for entry in fresh.iterdir():
                entry.rename(self.path / entry.name)
            refs = self._open(self._address)
        except (Fault, OSError) as error:
            log.warning("mirror not remade path=%s error=%s", self.path, error)
            return False
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self.refs.clear()
        self.refs.update(refs)
        self._packs, self._operations, self._drafts = 1, 0, {}
        log.warning("mirror remade path=%s error=%s", self.path, why)
        self.mended.append(_told(self.path, why))
        return True

    def _filled(self, fresh: Path, bring: Callable[[Git], bool]) -> bool:
        fresh.mkdir(mode=0o700)
        git = Git(fresh, self.path / _HOME, self._address, self._credentials)
        git.check(["init", "--quiet", "--bare", "--template="], self._local_s)
        git.check(["config", "remote.origin.url", self._address.url], self._local_s)
        if not bring(git):
            return False
        self._save(fresh, git)
        return True

    def _save(self, fresh: Path, git: Git) -> None:
        """Copies from the old mirror what the remote does not provide; damaged objects fail git's check."""
        for name in ("config", "HEAD"):  # without them git cannot read it
            shutil.copyfile(fresh / name, self.path / name)
        there = git.check(["for-each-ref", "--format=%(refname)"], self._local_s).decode().split()
        done = self.git.run(["for-each-ref", "--format=%(refname)", TRACKING, _SEEN], self._local_s)
        mine = done.output.decode("utf-8", "replace").split()
        old = Git(fresh, self.path / _HOME, Address(str(self.path), "file"))
        for ref in [ref for ref in mine if ref not in there][:_MOST_SAVED]:
            old.run(["fetch", "--quiet", "--no-tags", str(self.path), f"+{ref}:{ref}"], self._local_s)

    def _open(self, address: Address) -> dict[str, str]:
        is_new = not (self.path / "HEAD").exists()
        if is_new:
            self._local("init", "--quiet", "--bare", "--template=")
        config = self.path / "config"
        if config.exists() and not config.read_bytes().endswith(b"\n"):
            # Half an address would be a different remote.
            raise Fault("its configuration is truncated", "CorruptObjects")
        with _git_python() as python:
            try:
                refs = _read(python.Repo(self.path, expand_vars=False), address)
            except (AssertionError, OSError, ValueError, ConfigError, python.GitError) as error:
                # GitPython has no single error for a damaged file; all of these have been seen.
                raise Fault(f"unreadable: {type(error).__name__} {error}", "CorruptObjects") from error
        if is_new and not refs:
            return refs
        question = "".join(f"{oid}\n" for oid in refs.values()).encode()
        if b" missing\n" in self._local("cat-file", "--batch-check", given=question):
            raise Fault("a branch's commit is missing", "CorruptObjects")
        return refs

    def _local(self, *args: str, given: bytes = b"") -> bytes:
        return self.git.check(args, self._local_s, given)

    @property
    def _local_s(self) -> float:
        return self._limits.local.total_seconds()

    def next_draft(self) -> str:
        """The ref for the next draft; it is used again for a later one, after `_DRAFTS_KEPT`."""
        self._slot = (self._slot + 1) % _DRAFTS_KEPT
        return f"{_DRAFTS}{self._slot}"

    def wrote(self, ref: str, oid: str) -> None:
        """Records a draft, which is one more pack."""
        self._drafts[ref] = oid
        self.grew()

    def landed(self, oid: str) -> None:
        """Records that a branch contains the draft, so that its own ref can go."""
        self._drafts = {ref: draft for ref, draft in self._drafts.items() if draft != oid}

    def remember(self, branch: str, oid: str) -> None:
        """Creates a ref of our own to that commit. A loose ref is a file, and only this process writes here."""
        place = self.path / _SEEN / branch
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(place.name + ".lock")  # a name that no ref can have
            draft.write_text(f"{oid}\n", encoding="ascii")
            draft.replace(place)
        except OSError as error:  # a full disk: the previous commit is still remembered
            log.warning("branch not remembered branch=%s error=%s", branch, error)

    def remembered(self, branch: str) -> str | None:
        """The remembered commit of that branch; None: none, or unreadable."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (self.path / _SEEN / branch).read_text(encoding="ascii")
            return text.strip() if _OID.fullmatch(text) else None
        found = self.git.run(["rev-parse", "--verify", "--quiet", f"{_SEEN}{branch}"], self._local_s)
        oid = found.output.decode("ascii", "replace")
        return oid.strip() if found.code == 0 and _OID.fullmatch(oid) else None

    def grew(self) -> None:
        """Counts one more pack."""
        self._packs += 1
        self._operations += 1

    def lost_a_history(self) -> None:
        """Records that a branch was re-rooted: its old history should be dropped soon."""
        self._replaced = True

    def tend(self, *, hurried: bool) -> bool:
        """Keeps the mirror small when due; True if packs were replaced. Usually costs nothing.

        `hurried` (between a decision and its execution) waits until twice as much has accumulated.
        """
        patience = 2 if hurried else 1
        many = self._packs >= self._limits.packs * patience
        whole = self._operations >= self._limits.operations * patience or (
            self._replaced and (many or not hurried)
        )
        if not whole and not many:
            return False
        self._packs = 0  # after a failure it is retried after as many more
        if whole:
            self._operations, self._replaced = self._operations // 2, False
            self._repack_all()
        else:
            # Joins only as many small packs as keep the sizes doubling: large ones are left alone.
            self._upkeep("repack", "--quiet", "-d", "--geometric=2")
        return True

    def _repack_all(self) -> None:
        # Landed drafts would keep the history alive that a re-root has just dropped.
        slots = (f"{_DRAFTS}{slot}" for slot in range(_DRAFTS_KEPT))
        stale = "".join(f"delete {ref}\n" for ref in slots if ref not in self._drafts)
        self._upkeep("update-ref", "--stdin", given=stale.encode())
        self._upkeep("pack-refs", "--all")
        # Unreachable objects go at once: only this process writes here, and drafts have refs.
        self._upkeep("repack", "--quiet", "-a", "-d", "-l")
        self._upkeep("prune", "--expire=now")
        self._operations = 0

    def sweep(self) -> bool:
        """Removes remains of a failed or killed call: half a pack, a lock. True: there were some.

        Only while no other call writes: the caller holds the store's lock.
        """
        return _remove_leftovers(self.path)

    def _upkeep(self, *args: str, given: bytes = b"") -> None:
        self.git.check(args, self._limits.upkeep.total_seconds(), given)

    def close(self) -> None:
        """Releases the mirror for other processes; may be called again."""
        owner, self._owner = self._owner, None
        if owner is not None:
            os.close(owner)


def _own(path: Path) -> int:
    descriptor = os.open(path / _OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UserError(
            f"another process uses the mirror {path}; give this one a folder of its own", "MirrorInUse"
        ) from error
    return descriptor


def _told(path: Path, why: str) -> str:
    return f"the mirror {path} was damaged ({why}) and was created again; check its disk"


def _remove_leftovers(path: Path) -> bool:
    # No ref ends in .lock, but a branch may be called tmp_x: that prefix is only searched among objects.
    temporary = (path / "objects").rglob("tmp_*")
    strange = (path / name for name in _NEVER_OURS if (path / name).exists())
    halves = (*path.rglob("*.lock"), *path.glob("fast_import_crash_*"), *path.glob(_FRESH), *temporary)
    leftovers = (*halves, *strange)
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    return bool(leftovers)


def _empty(path: Path, keep: tuple[str, ...] = ()) -> None:
    for entry in path.iterdir():
        if entry.name in (_OWNER_FILE, _HOME, *keep):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


@contextlib.contextmanager
def _git_python() -> Iterator[ModuleType]:
    aside = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("GIT_")}
    try:
        import git

        yield git
    finally:
        os.environ.update(aside)


def _read(repository: git.Repo, address: Address) -> dict[str, str]:
    """Configures the mirror for the remote, and returns its branches."""
    url = _configured_url(repository)
    if url not in (None, address.url):
        text = f"{repository.git_dir} mirrors a different remote; give an empty folder, or remove this one"
        raise UserError(text, "MirrorInUse")
    if url is None:
        _configure(repository, address)
    paths = sorted(ref.path for ref in repository.refs if ref.path.startswith(TRACKING))
    # Read from the ref files: GitPython's object access would start a git process of its own.
    read = repository.head.dereference_recursive
    return {path.removeprefix(TRACKING): read(repository, path) for path in paths}


def _configured_url(repository: git.Repo) -> str | None:
    with repository.config_reader("repository") as config:
        return str(config.get_value('remote "origin"', "url", "")) or None


def _configure(repository: git.Repo, address: Address) -> None:
    with repository.config_writer("repository") as config:
        config.set_value('remote "origin"', "url", address.url)
        config.set_value('remote "origin"', "fetch", f"+refs/heads/*:{TRACKING}*")
        config.set_value("core", "logAllRefUpdates", "false")
