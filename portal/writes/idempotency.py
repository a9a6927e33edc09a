"""Writes through the API, as recorded in main's history: by request id and by idempotency key.

The trailers of commits are the only memory, so every replica can repeat the first answer, also for a write that
another replica made a moment ago. Only the last `REMEMBERED` commits are searched.

Anyone who can commit can write trailers. So only commits by the service count and, if it signs, only signed ones; each
speaks for its author alone. On an unverified main anyone who may push can forge both.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

from reconciler.model.evidence import GIT
from reconciler.settings import Trust
from reconciler.store.believed_commit import Believes
from reconciler.store.store_port import Commit, Person, Store
from reconciler.trust.authority import SERVICE as SPEAKS
from reconciler.trust.keyring import Keyring, TrustFolder
from reconciler.trust.machines import own_key, signer
from schemas.errors import Fault

SERVICE = Person("EGS portal", "portal@egs.dev")
"""The committer; the author is the caller."""
REQUEST_ID, KEY = "Request-Id", "Idempotency-Key"
"""Trailers."""
REMEMBERED = 5000
"""Commits of main that are searched: at fifty a second almost two minutes, at one a minute three days."""
_FIRST_LOOK = 50
_KEY = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Made:
    """A write that is on main."""

    commit: str
    email: str
    id: str
    key: str = ""  # digest of caller and key; empty: no key was given
    print: str = ""  # digest of the HTTP request


def digest_of(email: str, key: str) -> str:
    """A caller's key in a trailer: readers of main cannot use it, and two callers never collide."""
    return hashlib.sha256(f"{email}\n{key}".encode()).hexdigest()


def trailer_of(digest: str, print_: str) -> str:
    """The value of the trailer `Idempotency-Key`."""
    return f"{digest} {print_ or '0' * 16}"


def made_in(commit: Commit) -> Made | None:
    """The trailers of a commit; None: it did not come through the API."""
    id_ = commit.trailers.get(REQUEST_ID, "")
    if not id_:
        return None
    key = _KEY.fullmatch(commit.trailers.get(KEY, ""))
    return Made(commit.oid, commit.author.email, id_, *(("", "") if key is None else key.groups()))


def is_ours(commit: Commit) -> bool:
    """Whether the service is named as the committer."""
    return commit.committer == SERVICE


def believer(trust: Trust) -> Believes:
    """Recognises the service's own commits: by signature if it signs, by any key of the same `service:` name."""
    key = own_key(trust)
    if key is None:
        return is_ours
    folder = TrustFolder(trust.folder)

    def is_signed(commit: Commit) -> bool:
        by = signer(GIT, commit.payload, commit.signature) if is_ours(commit) else None
        if by is None or by == key.public:
            return by is not None
        try:
            names = (_speaks(folder.keyring(), each, commit) for each in (by, key.public))
            return bool(frozenset.intersection(*names))
        except Fault:
            return False  # the folder cannot be read, so other replicas' keys are unknown now

    return is_signed


def _speaks(keyring: Keyring, key: str, commit: Commit) -> frozenset[str]:
    return frozenset(name for name in keyring.principals(key, GIT, commit.at) if name.startswith(SPEAKS))


def since(store: Store, old: str | None, new: str, most: int) -> Sequence[Commit]:
    """Commits of main after `old` up to `new`, newest first, at most `most`; `old` need not be among them."""
    for limit in (min(_FIRST_LOOK, most), most):
        found = store.log(new, limit)
        until = next((number for number, commit in enumerate(found) if commit.oid == old), None)
        if until is not None or len(found) < limit:
            return found[:until]
    return found


@dataclass(slots=True)
class History:
    """Writes on main up to the last followed commit. Safe to use from several threads."""

    store: Store
    believes: Believes = is_ours
    _at: str | None = None
    _by_id: OrderedDict[tuple[str, str], Made] = field(default_factory=OrderedDict)
    _by_key: OrderedDict[tuple[str, str], Made] = field(default_factory=OrderedDict)
    _followed: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def follow(self, tip: str) -> None:
        """Read up to that commit of main; does nothing if another thread has done so already."""
        with self._lock:
            if tip in self._followed:
                return
            for commit in reversed(since(self.store, self._at, tip, REMEMBERED)):
                for made in self._found(commit):
                    self._keep(made)
                self._followed[commit.oid] = None
            while len(self._followed) > REMEMBERED:
                self._followed.popitem(last=False)
            self._at = tip

    def _found(self, commit: Commit) -> Iterator[Made]:
        """The writes of a commit, including those that it merged."""
        for oid in commit.parents[1:]:
            try:
                merged = self.made(self.store.commit(oid))
            except Fault:
                continue  # a commit that is too large to be read is not ours
            if merged is not None:
                yield merged
        own = self.made(commit)
        if own is not None:
            yield own

    def made(self, commit: Commit) -> Made | None:
        """The write that a commit records, if it is recognised as ours."""
        found = made_in(commit)
        return found if found is not None and self.believes(commit) else None

    def _keep(self, made: Made) -> None:
        self._by_id.setdefault((made.email, made.id), made)
        if made.key:
            self._by_key.setdefault((made.email, made.key), made)
        for table in (self._by_id, self._by_key):
            while len(table) > REMEMBERED:
                table.popitem(last=False)

    def of_id(self, email: str, id_: str) -> Made | None:
        """That caller's write with this request id."""
        with self._lock:
            return self._by_id.get((email, id_))

    def of_key(self, email: str, digest: str) -> Made | None:
        """That caller's first write under this key."""
        with self._lock:
            return self._by_key.get((email, digest))
