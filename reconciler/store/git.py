"""The store on a real remote: a bare mirror, read through helper processes, written by whole packs.

Never a work tree. A fetch asks for all branches in one go; only when that fails are the remote's tips read
and the branches brought one by one, so that one bad branch stays where it was and the others arrive. What
happened is always told by reading tips, never by the text of an error.

Held by tests/contract/test_store_contract.py (on file and http) and tests/store/test_git_security.py.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from reconciler.credentials import Credentials
from reconciler.store import names, objects
from reconciler.store.address import parse
from reconciler.store.fetching import Fetcher
from reconciler.store.mirror import TRACKING, Limits, Mirror
from reconciler.store.opening import opening
from reconciler.store.port import Commit, Draft, Entry, Outcome
from reconciler.store.process import TIMED_OUT, Helper, read_exactly, read_line
from schemas.errors import Fault

log = logging.getLogger(__name__)

_PORTION = 500  # ids a question: 20 kB, well below what a pipe holds
_REGULAR_MODES = (0o100644, 0o100755)
_DIFFERENCE = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id")


class GitStore:
    """`port.Store` on a folder, file://, http(s):// or ssh remote; `mirror` is a folder for this process alone.

    Safe to use from several threads, one at a time inside. Raises UserError `MirrorInUse`, `UnsupportedRemote` or
    `BadCredentials` when made; the remote is not talked to before the first `fetch` or `push`.
    """

    def __init__(
        self,
        remote: str,
        mirror: Path,
        limits: Limits | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._limits = limits or Limits()
        address = parse(remote)
        opening(
            address, credentials or Credentials()
        )  # a person hears at once what a later call would fail on
        self._mirror = Mirror(mirror, address, self._limits, credentials)
        self._git = self._mirror.git
        self._lock = threading.RLock()
        self._contents = Helper(self._git, ("cat-file", "--batch"))
        self._headers = Helper(self._git, ("cat-file", "--batch-check"))
        self._differences = Helper(self._git, _DIFFERENCE)
        self._fetcher = Fetcher(self._mirror, self._limits)
        self._roots: set[str] = set()

    # -- the remote ------------------------------------------------------------------------------------------

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        """See `port.Store.fetch`. One git process when all is well."""
        wanted = [names.branch_pattern(pattern) for pattern in patterns]
        with self._lock:
            before = dict(self._fetcher.tips)
            try:
                self._fetcher.fetch(wanted, self._tracked)
            finally:
                if before != self._fetcher.tips:
                    self._mirror.grew()
                self._tend(hurried=False)
            return names.matching(wanted, self._fetcher.tips)

    def tips(self) -> Mapping[str, str]:
        """See `port.Store.tips`; after a restart, those of the process before."""
        return dict(self._fetcher.tips)

    def alarms(self) -> Sequence[str]:
        """See `port.Store.alarms`."""
        return self._fetcher.alarms()

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """See `port.Store.push`."""
        ref = f"refs/heads/{names.branch_name(branch)}"
        lease = "" if expected is None else names.full_oid(expected)
        args = ["push", "--quiet", "--no-verify", "--recurse-submodules=no", "--no-signed"]
        args += [f"--force-with-lease={ref}:{lease}", "origin", f"{names.full_oid(new)}:{ref}"]
        with self._lock:
            done = self._git.talk(args, self._limits.remote.total_seconds())
            outcome = Outcome.COMMITTED if done.code == 0 else self._settled(branch, new, expected)
            if outcome is Outcome.REFUSED and done.code == TIMED_OUT:
                outcome = Outcome.UNKNOWN  # nobody said no: the server may be at it still
            if outcome is Outcome.REFUSED:
                log.info("push refused branch=%s error=%s", branch, done.error)
            if outcome is Outcome.COMMITTED:
                self._fetcher.tips[branch] = new
                self._mirror.landed(new)
                if expected is not None and new in self._roots:
                    self._mirror.lost_a_history()
                self._roots.clear()
                self._tend(hurried=True)
            return outcome

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
        if self._mirror.tend(hurried=hurried):
            self._close_helpers()  # they hold the packs that are gone

    # -- reading ---------------------------------------------------------------------------------------------

    def commit(self, oid: str) -> Commit:
        """See `port.Store.commit`."""
        (found,) = self._read_objects([names.full_oid(oid)], b"commit").items()
        return objects.parse_commit(oid, found[1])

    def log(self, oid: str, limit: int) -> Sequence[Commit]:
        """See `port.Store.log`."""
        commits: list[Commit] = []
        step: str | None = oid
        while step is not None and len(commits) < limit:
            commits.append(self.commit(step))
            step = commits[-1].parents[0] if commits[-1].parents else None
        return commits

    def is_ancestor(self, old: str, new: str) -> bool:
        """See `port.Store.is_ancestor`."""
        args = ["merge-base", "--is-ancestor", names.full_oid(old), names.full_oid(new)]
        done = self._git.run(args, self._limits.local.total_seconds())
        if done.code not in (0, 1):
            raise Fault(f"git merge-base failed (exit {done.code}): {done.error}", "CorruptObjects")
        return done.code == 0

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """See `port.Store.diff`."""
        if old is None:
            args = ["ls-tree", "-r", "-z", "--full-tree", names.full_oid(new)]
            return objects.parse_listing(self._git.check(args, self._limits.local.total_seconds()))
        # The helper is silent about commits it does not have; reading them says so.
        self._read_objects([names.full_oid(old), names.full_oid(new)], b"commit")
        # A line that is no object id comes back as it is, after the answer to the one before it.
        mark = f"end-{secrets.token_hex(16)}\n".encode()
        question = f"{new} {old}\n".encode() + mark
        answer = self._differences.ask(question, lambda output: _read_until(output, mark))
        return objects.parse_difference(answer)

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """See `port.Store.sizes`."""
        found: dict[str, int] = {}
        for portion in _portions(map(names.full_oid, oids)):
            lines = self._headers.ask(_lines(portion), _line_reader(len(portion)))
            for oid, line in zip(portion, lines, strict=True):
                found[oid] = _header(line, None)
        return found

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """See `port.Store.read`."""
        return self._read_objects([names.full_oid(oid) for oid in oids], b"blob")

    def read_path(self, commit: str, path: str) -> bytes | None:
        """See `port.Store.read_path`; None also for what is no plain file (a symlink, a folder)."""
        folder, _, name = names.tree_path(path).rpartition("/")
        of_folder = f"{names.full_oid(commit)}:{folder}"
        tree = self._contents.ask(_lines([of_folder]), _read_tree)
        for entry in () if tree is None else objects.parse_tree(tree):
            if entry.name == name and entry.mode in _REGULAR_MODES:
                return self.read([entry.oid])[entry.oid]
        return None

    def _read_objects(self, oids: Sequence[str], kind: bytes) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for portion in _portions(oids):
            bodies = self._contents.ask(_lines(portion), _body_reader(len(portion), kind))
            found.update(zip(portion, bodies, strict=True))
        return found

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, draft: Draft) -> str:
        """See `port.Store.write`. Costs what changes; the base's files are never listed."""
        for oid in (draft.base, draft.parent):
            if oid is not None:
                names.full_oid(oid)
        base_tree = None if draft.base is None else self._tree_of(draft.base)
        with self._lock:
            ref = self._mirror.next_draft()
            stream = objects.import_stream(draft, ref, base_tree)
            args = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]
            output = self._git.check(args, self._limits.local.total_seconds(), stream)
            oid = names.full_oid(output.decode("ascii").strip())
            self._mirror.wrote(ref, oid)
        if draft.parent is None:
            self._roots.add(oid)
        return oid

    def _tree_of(self, commit: str) -> str:
        line = self._headers.ask(_lines([f"{commit}^{{tree}}"]), read_line)
        _header(line, b"tree")
        return line.split(b" ")[0].decode("ascii")

    # -- helpers ---------------------------------------------------------------------------------------------

    def _tracked(self, branches: Sequence[str]) -> dict[str, str]:
        """Tips of tracking refs that are there and are commits."""
        found: dict[str, str] = {}
        for portion in _portions(branches):
            question = _lines([TRACKING + branch for branch in portion])
            lines = self._headers.ask(question, _line_reader(len(portion)))
            for branch, line in zip(portion, lines, strict=True):
                oid, _, about = line.partition(b" ")
                if about.startswith(b"commit "):
                    found[branch] = oid.decode("ascii")
        return found

    def close(self) -> None:
        """See `port.Store.close`; another process may own the mirror afterwards."""
        with self._lock:
            self._close_helpers()
            self._mirror.close()

    def _close_helpers(self) -> None:
        for helper in (self._contents, self._headers, self._differences):
            helper.close()


def _portions(words: Iterable[str]) -> Iterable[list[str]]:
    every = list(dict.fromkeys(words))
    for start in range(0, len(every), _PORTION):
        yield every[start : start + _PORTION]


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode("utf-8", "surrogateescape")


def _read_until(output: BinaryIO, mark: bytes) -> bytes:
    data = bytearray()
    while not data.endswith(mark):
        chunk = output.read1(1 << 20)  # type: ignore[attr-defined]
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data[: -len(mark)])


def _line_reader(count: int) -> Callable[[BinaryIO], list[bytes]]:
    return lambda output: [read_line(output) for _ in range(count)]


def _body_reader(count: int, kind: bytes) -> Callable[[BinaryIO], list[bytes]]:
    return lambda output: [_read_body(output, kind) for _ in range(count)]


def _read_body(output: BinaryIO, kind: bytes) -> bytes:
    return read_exactly(output, _header(read_line(output), kind) + 1)[:-1]


def _read_tree(output: BinaryIO) -> bytes | None:
    line = read_line(output)
    if line.endswith(b" missing"):
        return None
    body = read_exactly(output, _header(line, None) + 1)[:-1]
    return body if line.split(b" ")[1] == b"tree" else None


def _header(line: bytes, kind: bytes | None) -> int:
    """The size in a header; a missing object, or one of another kind, is a fault."""
    words = line.rsplit(b" ", 2)
    if len(words) != 3 or (kind is not None and words[1] != kind) or not words[2].isdigit():
        what = line[:80].decode("ascii", "replace")
        wanted = (kind or b"object").decode("ascii")
        raise Fault(
            f"the mirror has no such {wanted} ({what}); fetch the branch that holds it", "CorruptObjects"
        )
    return int(words[2])
