"""Which finished requests' files need not be read: they have no problems and need no action.

Both follow from contents alone: the file on main, the record on the status branch, and all documents that the
rules of requests read (the surroundings: project, clusters, templates, slice). So a finding of an earlier
process is kept beside the record's blob; the file is read if any of these contents changed, or if the request
has an approval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.store.store_port import REGULAR_MODE, Entry
from schemas.documents.gpr import GPR
from schemas.rules.repository import Repository
from schemas.rules.view import PROJECT, Key, approvals_key, slice_path, workspace_path

_OF_ALL = ("clusters/", "templates/", "requests/")


def is_request(path: str) -> bool:
    return path.startswith("slices/") and path.count("/") == 3 and path.split("/")[2] == "gprs"


def key_of(path: str) -> str:
    """`slice/name` of the request whose file has this path."""
    _, slice_, _, file = path.split("/")
    return f"{slice_}/{file.removesuffix('.yaml')}"


def recorded(requests: Container[str]) -> Callable[[str], bool]:
    """Whether a file's request is among these, which were accepted before (see `Repository.is_recorded`)."""
    return lambda path: is_request(path) and key_of(path) in requests


class Surroundings:
    """The documents around requests, as one digest per slice: another content gives another digest."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """`entries` are all entries of the tree that counts."""
        common, self._slices, self._approved = [], dict[str, str](), set[str]()
        for entry in entries:
            if entry.path == PROJECT or entry.path.startswith(_OF_ALL):
                common.append(f"{entry.path} {entry.oid} {entry.mode}")
            elif entry.path.startswith("approvals/"):
                self._approved.add("/".join(entry.path.split("/")[1:3]))
            elif entry.path.endswith("/slice.yaml"):
                self._slices[entry.path.split("/")[1]] = f"{entry.oid} {entry.mode}"
        self._common = "\n".join(sorted(common))
        self._words: dict[str, str] = {}

    def word(self, slice_: str) -> str:
        if slice_ not in self._words:
            text = f"{self._slices.get(slice_)}\n{self._common}"
            self._words[slice_] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._words[slice_]

    def note(self, entry: Entry) -> str | None:
        """The note for a file without problems; None if the request has an approval."""
        key = key_of(entry.path)
        slice_ = key.partition("/")[0]
        return None if key in self._approved else f"{entry.oid} {self.word(slice_)}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The unread files of one tree, and which changed files have to be read."""

    paths: frozenset[str] = frozenset()
    around: Surroundings | None = None
    left: frozenset[str] = frozenset()  # those that this change brought
    to_read: tuple[Entry, ...] = ()

    def after(
        self,
        changed: Sequence[Entry],
        tree: Mapping[str, Entry],
        notes: Mapping[str, str],
        besides: Collection[str],
    ) -> LeftOut:
        """After a change that leads to `tree`; `notes` are earlier notes, `besides` are read anyway."""
        moved = {entry.path for entry in changed}
        around = None if self.around is None or not all(map(is_request, moved)) else self.around
        around = Surroundings(tree.values()) if around is None else around
        left = frozenset(
            entry.path
            for entry in (changed if notes else ())
            if entry.mode == REGULAR_MODE
            and entry.path not in besides
            and (note := notes.get(entry.path)) is not None
            and note == around.note(entry)
        )
        awake = _woken(self.paths, moved)
        again = [tree[path] for path in sorted(awake - moved)]
        read = (*(entry for entry in changed if entry.path not in left), *again)
        return LeftOut((self.paths - awake - moved) | left, around, left, read)


def _woken(unread: Collection[str], changed: Iterable[str]) -> set[str]:
    """The unread files whose surroundings changed."""
    slices, requests = set[str](), set[str]()
    for path in changed:
        parts = path.split("/")
        if path == PROJECT or path.startswith(_OF_ALL):
            return set(unread)
        if parts[0] == "approvals" and len(parts) > 2:
            requests.add("/".join(parts[1:3]))
        elif path.endswith("/slice.yaml"):
            slices.add(parts[1])
    if not slices and not requests:
        return set()
    return {path for path in unread if path.split("/")[1] in slices or key_of(path) in requests}


def is_quiet(path: str, repository: Repository) -> bool:
    """True if the request's file has no problems, and its rules read nothing beyond its surroundings."""
    document = repository.documents.get(path)
    if not isinstance(document, GPR) or document.spec.template or not repository.is_clean(path):
        return False
    slice_, name = document.spec.slice, document.metadata.name
    own = {slice_path(slice_), workspace_path(slice_), approvals_key(slice_, name)}
    return all(key in own or _is_common(key) for key in repository.reads(path))


def _is_common(key: Key) -> bool:
    return isinstance(key, str) and (key == PROJECT or key.startswith(_OF_ALL))
