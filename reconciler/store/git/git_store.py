"""The store on a real remote: a bare mirror, read through helper processes, written as whole packs.

Never a work tree. A fetch requests all branches at once; only if that fails, the remote's heads are read and
the branches fetched one by one, so that a bad branch stays where it was and the others arrive. Results are
always determined by reading heads, never from error texts.

Held by tests/contract/test_store_contract.py (on file and http) and
tests/reconciler/store/test_git_security.py.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from reconciler.credentials import Credentials
from reconciler.store.git import git_names, git_objects
from reconciler.store.git.fetch import Fetcher
from reconciler.store.git.git_process import TIMED_OUT
from reconciler.store.git.git_reader import GitReader
from reconciler.store.git.mirror import TRACKING, Limits, Mirror
from reconciler.store.git.mirror_repair import DOUBTED, Mender
from reconciler.store.git.open_remote import opening
from reconciler.store.git.remote_address import parse
from reconciler.store.store_port import Commit, Draft, Entry, Outcome, Sign, heads
from schemas.errors import Fault

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class GitStore:
    """`Store` on a remote (a folder, file://, http(s):// or ssh); `mirror` is a folder for this process only.

    `sign`, if given, signs every commit written here. Thread-safe, with one operation at a time. Raises
    UserError `MirrorInUse`, `UnsupportedRemote` or `BadCredentials` at construction; the remote is not
    contacted before the first `fetch` or `push`.
    """

    def __init__(
        self,
        remote: str,
        mirror: Path,
        limits: Limits | None = None,
        credentials: Credentials | None = None,
        sign: Sign | None = None,
    ) -> None:
        self._limits = limits or Limits()
        address = parse(remote)
        # A person learns at once what a later call would fail on.
        opening(address, credentials or Credentials())
        self._mirror = Mirror(mirror, address, self._limits, credentials)
        self._git = self._mirror.git
        self._lock = threading.RLock()
        self._sign = sign
        self._reader = GitReader(self._git, self._limits.local.total_seconds())
        self._fetcher = Fetcher(self._mirror, self._limits)
        self._mender = Mender(self._mirror, self._fetcher, self._limits)
        self._doubt = ""  # a problem with the mirror that stopped nothing
        self._roots: set[str] = set()
        self.refusal = ""
        """Git's message for the last refused push, for people: no decision depends on it."""

    # -- the remote ------------------------------------------------------------------------------------------

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        """One git process in the normal case."""
        wanted = [git_names.branch_pattern(pattern) for pattern in patterns]
        with self._lock:
            self._sound(lambda: self._fetch(wanted))
            doubt, self._doubt = self._doubt, ""
            if self._fetcher.doubtful:
                doubt = doubt or "a fetch got less than requested"
            if doubt and self._mends(doubt):
                self._fetch(wanted)
            return git_names.matching(wanted, self._fetcher.tips)

    def _fetch(self, wanted: Sequence[str]) -> None:
        before = dict(self._fetcher.tips)
        try:
            self._fetcher.fetch(wanted, self._tracked)
        finally:
            if before != self._fetcher.tips:
                self._mirror.grew()
        self._tend(hurried=False)

    def fetch_heads(self, refs: Sequence[str]) -> Mapping[str, str]:
        """Fetches heads of pull requests (refs/pull/N/head), which no branch contains; returns their commits.

        Those deleted or failing git's check are absent; heads fetched before and not listed now are dropped.
        """
        with self._lock:
            try:
                return self._sound(lambda: self._fetcher.bring_heads(refs))
            finally:
                self._mirror.grew()
                self._tend(hurried=False)

    def keep(self, oid: str) -> bool:
        """Servers with git's protocol 2 provide a commit by its id."""
        with self._lock:
            return self._sound(lambda: self._fetcher.keep(git_names.full_oid(oid)))

    def tips(self) -> Mapping[str, str]:
        """After a restart, those of the previous process."""
        return dict(self._fetcher.tips)

    def alarms(self) -> Sequence[str]:
        return self._fetcher.alarms()

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        ref = f"refs/heads/{git_names.branch_name(branch)}"
        lease = "" if expected is None else git_names.full_oid(expected)
        args = ["push", "--quiet", "--no-verify", "--recurse-submodules=no", "--no-signed"]
        args += [f"--force-with-lease={ref}:{lease}", "origin", f"{git_names.full_oid(new)}:{ref}"]
        with self._lock:
            return self._sound(lambda: self._pushed(args, branch, new, expected))

    def _pushed(self, args: Sequence[str], branch: str, new: str, expected: str | None) -> Outcome:
        done = self._git.talk(args, self._limits.remote.total_seconds())
        outcome = Outcome.COMMITTED if done.code == 0 else self._settled(branch, new, expected)
        if outcome is Outcome.REFUSED and done.code == TIMED_OUT:
            outcome = Outcome.UNKNOWN  # without a refusal, the server may still be working on it
        if outcome is Outcome.REFUSED:
            log.info("push refused branch=%s error=%s", branch, done.error)
            self.refusal = done.error
        if outcome is Outcome.COMMITTED:
            self._fetcher.tips[branch] = new
            self._mirror.landed(new)
            if expected is not None and new in self._roots:
                self._mirror.lost_a_history()
            self._roots.clear()
            self._tend(hurried=True)
        return outcome

    def in_the_way(self, branch: str) -> Sequence[str]:
        with self._lock:
            return self._fetcher.in_the_way(branch)

    def _settled(self, branch: str, new: str, expected: str | None) -> Outcome:
        try:
            tip = self._fetcher.remote_tips([branch]).get(branch)
        except Fault:
            return Outcome.UNKNOWN
        if tip == new:
            self._git.check(["update-ref", TRACKING + branch, new], self._limits.local.total_seconds())
            return Outcome.COMMITTED
        return Outcome.REFUSED if tip == expected else Outcome.CONFLICT

    def _tend(self, *, hurried: bool) -> None:
        try:
            if self._mirror.tend(hurried=hurried):
                self._reader.close()  # its helpers hold the removed packs open
        except Fault as fault:  # a full disk, or a damaged pack; the requested work is done anyway
            log.warning("mirror not tended path=%s error=%s; retrying", self._mirror.path, fault)
            self._doubt = str(fault)

    # -- reading ---------------------------------------------------------------------------------------------

    def commit(self, oid: str) -> Commit:
        return self._sound(lambda: self._reader.commit(oid))

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        return self._sound(lambda: self._reader.log(oid, limit))

    def parent(self, oid: str) -> str | None:
        return self._sound(lambda: self._reader.parent(oid))

    def is_ancestor(self, old: str, new: str) -> bool:
        return self._sound(lambda: self._reader.is_ancestor(old, new))

    def last_change(self, commit: str, path: str) -> str | None:
        return self._sound(lambda: self._reader.last_change(commit, path))

    def remember(self, branch: str, oid: str) -> None:
        with self._lock:
            self._mirror.remember(git_names.branch_name(branch), git_names.full_oid(oid))

    def remembered(self, branch: str) -> str | None:
        return self._mirror.remembered(git_names.branch_name(branch))

    def merge_bases(self, one: str, other: str) -> Sequence[str]:
        return self._sound(lambda: self._reader.merge_bases(one, other))

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        return self._sound(lambda: self._reader.diff(old, new))

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        return self._sound(lambda: self._reader.sizes(oids))

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return self._sound(lambda: self._reader.read(oids))

    def read_path(self, commit: str, path: str) -> bytes | None:
        return self._sound(lambda: self._reader.read_path(commit, path))

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, draft: Draft) -> str:
        """O(changes); the base's files are never listed."""
        (oid,) = self.write_all([draft])
        return oid

    def write_all(self, drafts: Sequence[Draft]) -> list[str]:
        """One git process; two more if commits are signed."""
        return self._sound(lambda: self._write_all(drafts))

    def _write_all(self, drafts: Sequence[Draft]) -> list[str]:
        first = heads(drafts)
        trees = {number: self._base_tree(drafts[number]) for number in dict.fromkeys(first)}
        if not drafts:
            return []
        with self._lock:
            refs = {number: self._mirror.next_draft() for number in trees}
            placed = [
                git_objects.Placed(draft, refs[head], trees[head])
                for draft, head in zip(drafts, first, strict=True)
            ]
            oids = self._imported(placed)
            if self._sign is not None:
                oids = self._signed(oids, [one.ref for one in placed], self._sign)
            for ref, oid in {one.ref: oid for one, oid in zip(placed, oids, strict=True)}.items():
                self._mirror.wrote(ref, oid)
        self._roots.update(oid for draft, oid in zip(drafts, oids, strict=True) if draft.parent is None)
        return oids

    def _base_tree(self, draft: Draft) -> str | None:
        for oid in (draft.base, draft.parent):
            if oid is not None:
                git_names.full_oid(oid)
        return None if draft.base is None else self._reader.tree_of(draft.base)

    def _imported(self, placed: Sequence[git_objects.Placed]) -> list[str]:
        args = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]
        output = self._local(args, git_objects.import_stream(placed))
        return [git_names.full_oid(line) for line in output.decode("ascii").splitlines()]

    def signed(self, commit: str, sign: Sign) -> str:
        """A signed version of a commit written here; raises what `sign` raises."""
        with self._lock:
            ref = self._mirror.next_draft()
            (oid,) = self._signed([git_names.full_oid(commit)], [ref], sign)
            self._mirror.wrote(ref, oid)
        return oid

    def _signed(self, oids: Sequence[str], refs: Sequence[str], sign: Sign) -> list[str]:
        """Signed versions of the commits; the drafts' refs point to them then."""
        commits = git_objects.signed(self._reader.commit_objects(oids), sign)
        self._local(["index-pack", "--stdin", "--fsck-objects"], git_objects.pack(commits.values()))
        self._mirror.grew()
        found = [git_objects.commit_oid(commits[oid]) for oid in oids]
        last = dict(zip(refs, found, strict=True))
        updates = "".join(f"update {ref} {oid}\n" for ref, oid in last.items())
        self._local(["update-ref", "--stdin"], updates.encode())
        return found

    def _local(self, args: Sequence[str], given: bytes) -> bytes:
        return self._git.check(args, self._limits.local.total_seconds(), given)

    # -- helpers ---------------------------------------------------------------------------------------------

    def mended(self) -> Sequence[str]:
        with self._lock:
            told, self._mirror.mended[:] = tuple(self._mirror.mended), ()
            return told

    def _sound(self, work: Callable[[], Answer]) -> Answer:
        """The result of `work`; retried if a new mirror would help."""
        before = self._mender.count
        try:
            return work()
        except Fault as fault:
            if fault.reason not in DOUBTED or not self._mends(str(fault), before):
                raise
        return work()

    def _mends(self, why: str, before: int | None = None) -> bool:
        with self._lock:
            if before not in (None, self._mender.count):
                return True  # another thread met it too, and was faster
            self._reader.close()  # its helpers may hold what is replaced
            return self._mender.mend(why)

    def _tracked(self, branches: Sequence[str]) -> dict[str, str]:
        """The commits of existing tracking refs."""
        return self._reader.tips({branch: TRACKING + branch for branch in branches})

    def close(self) -> None:
        """Another process may own the mirror afterwards."""
        with self._lock:
            self._reader.close()
            self._mirror.close()
