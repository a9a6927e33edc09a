"""Git's own formats, read and written: commits, trees, differences, and the stream of `fast-import`. Pure.

The input is untrusted: names that are not UTF-8 get surrogate escapes, dates beyond the calendar are clamped,
and no length is trusted unchecked.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from reconciler.store.git.git_names import tree_path
from reconciler.store.store_port import Commit, Draft, Entry, Person, Sign
from reconciler.store.trailers import parse_trailers

_TREE_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]*)\0(.{20})", re.DOTALL)
"""Mode, name and the 20 bytes of an id."""
_SIGNATURE = b"gpgsig"  # its header; continuation lines begin with a space
_DATE = re.compile(r"(?: (?P<at>-?[0-9]+) [-+][0-9]+)?")
_LONGEST_PERSON = 4096
"""Longest line with a person; a longer one counts as no person."""
_UNFIT = re.compile(r"[\x00-\x1f\x7f<>]")
_LAST_INSTANT = 253402300799  # 9999-12-31T23:59:59Z, the end of datetime


class TreeEntry(NamedTuple):
    mode: int
    name: str
    oid: str


def blob_oid(content: bytes) -> str:
    return _oid(b"blob", content)


def _oid(kind: bytes, content: bytes) -> str:
    return hashlib.sha1(b"%s %d\0" % (kind, len(content)) + content, usedforsecurity=False).hexdigest()


def parse_commit(oid: str, data: bytes) -> Commit:
    """Parses a commit object; unknown headers (encodings, merged tags) are skipped."""
    signature, payload = split_signature(data)
    head, _, body = data.decode("utf-8", "surrogateescape").partition("\n\n")
    parents: list[str] = []
    people: dict[str, str] = {}
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        if key == "parent":
            parents.append(value)
        elif key in ("author", "committer"):
            people.setdefault(key, value)
    author, _ = _person(people.get("author", ""))
    committer, at = _person(people.get("committer", ""))
    return Commit(oid, tuple(parents), author, at, body, parse_trailers(body), signature, payload, committer)


def split_signature(data: bytes) -> tuple[str, bytes]:
    """The signature of a commit object, and the bytes it covers, as git separates them.

    Both are empty for an unsigned commit, and for one with two signatures, which is ambiguous.
    """
    head, blank, body = data.partition(b"\n\n")
    kept: list[bytes] = []
    found: list[list[bytes]] = []
    into: list[bytes] | None = kept
    for line in head.split(b"\n"):
        if line.startswith(_SIGNATURE + b" "):
            found.append(into := [line[len(_SIGNATURE) + 1 :]])
        elif line.startswith(_SIGNATURE):
            into = None  # of another hash: git signs over neither
        elif line.startswith(b" "):
            if into is not None:
                into.append(line if into is kept else line[1:])
        else:
            into = kept
            kept.append(line)
    if len(found) != 1:
        return "", b""
    return b"\n".join(found[0]).decode("ascii", "replace") + "\n", b"\n".join(kept) + blank + body


def with_signature(payload: bytes, signature: str) -> bytes:
    """The inverse of `split_signature`."""
    head, blank, body = payload.partition(b"\n\n")
    header = _SIGNATURE + b" " + signature.rstrip("\n").encode("ascii").replace(b"\n", b"\n ")
    return head + b"\n" + header + blank + body


def signed(payloads: Mapping[str, bytes], sign: Sign) -> dict[str, bytes]:
    """Signs the commits of a chain, each on its signed parent; keyed by their unsigned ids.

    Parents come before their children.
    """
    found: dict[str, bytes] = {}
    renamed: dict[bytes, bytes] = {}
    for oid, plain in payloads.items():
        payload = _reparented(plain, renamed)
        found[oid] = with_signature(payload, sign(payload))
        renamed[oid.encode()] = commit_oid(found[oid]).encode()
    return found


def commit_oid(data: bytes) -> str:
    return _oid(b"commit", data)


def _reparented(commit: bytes, renamed: Mapping[bytes, bytes]) -> bytes:
    head, blank, body = commit.partition(b"\n\n")
    lines = head.split(b"\n")
    for number, line in enumerate(lines):
        key, _, oid = line.partition(b" ")
        if key == b"parent":
            lines[number] = b"parent " + renamed.get(oid, oid)
    return b"\n".join(lines) + blank + body


_COMMIT_IN_A_PACK = 1


def pack(commits: Collection[bytes]) -> bytes:
    """Commit objects as a pack for `index-pack`: version 2, without deltas."""
    entries = [_pack_entry_head(len(data)) + zlib.compress(data) for data in commits]
    body = b"".join([b"PACK", (2).to_bytes(4, "big"), len(entries).to_bytes(4, "big"), *entries])
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _pack_entry_head(size: int) -> bytes:
    """Kind and size: four bits of the size in the first byte, then seven each, least significant first; the
    top bit means more.
    """
    found, size = [_COMMIT_IN_A_PACK << 4 | size & 15], size >> 4
    while size:
        found[-1] |= 128
        found.append(size & 127)
        size >>= 7
    return bytes(found)


def _person(text: str) -> tuple[Person, datetime]:
    """`Name <mail> seconds zone`: the mail is between the last brackets. One pass for any input."""
    end = text.rfind(">") if len(text) <= _LONGEST_PERSON else -1
    begin = text.find("<", text.rfind(">", 0, end) + 1, end) if end >= 0 else -1
    date = _DATE.fullmatch(text, end + 1)
    if begin < 0 or date is None:
        return Person(text[:_LONGEST_PERSON], ""), datetime.fromtimestamp(0, UTC)
    seconds = min(max(int((date["at"] or "0")[:18]), 0), _LAST_INSTANT)
    return Person(text[:begin].removesuffix(" "), text[begin + 1 : end]), datetime.fromtimestamp(seconds, UTC)


def parse_tree(data: bytes) -> Iterator[TreeEntry]:
    """The entries of a tree object. ValueError if invalid."""
    return map(tree_entry, tree_rows(data))


Row = tuple[bytes, bytes, bytes]
"""Mode, name and id as in a tree object: comparing a thousand costs as much as parsing ten."""


def tree_rows(data: bytes) -> list[Row]:
    """The entries, not parsed. ValueError if invalid."""
    rows: list[Row] = _TREE_ENTRY.findall(data)
    # Bytes between or after the matches would be in none of them.
    if sum([len(mode) + len(name) for mode, name, _ in rows]) + 22 * len(rows) != len(data):
        raise ValueError("not a tree object")
    return rows


def tree_entry(row: Row) -> TreeEntry:
    mode, name, oid = row
    return TreeEntry(int(mode, 8), name.decode("utf-8", "surrogateescape"), oid.hex())


def parse_listing(data: bytes) -> list[Entry]:
    """Parses `ls-tree -r -z`: `mode type id`, a tab, a path."""
    entries = []
    for line in data.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, oid = about.decode("ascii").split(" ")
        entries.append(Entry(path.decode("utf-8", "surrogateescape"), oid, int(mode, 8)))
    return sorted(entries, key=lambda entry: entry.path)


class Placed(NamedTuple):
    """A draft, its target ref (one per chain) and the tree of its base."""

    draft: Draft
    ref: str
    base_tree: str | None


def import_stream(drafts: Sequence[Placed]) -> bytes:
    """The input of `fast-import` that writes the drafts and returns their ids, one per line."""
    lines = [line for number, placed in enumerate(drafts, 1) for line in _commit_lines(number, placed)]
    answers = [f"get-mark :{number}".encode() for number in range(1, len(drafts) + 1)]
    return b"\n".join([*lines, *answers, b"done", b""])


def _commit_lines(number: int, placed: Placed) -> list[bytes]:
    """O(changes): a base other than the parent is referenced as a whole tree, never listed."""
    draft, ref, base_tree = placed
    lines = [f"commit {ref}".encode(), f"mark :{number}".encode()]
    lines += [*_signatures(draft), _data(_message(draft.message))]
    if draft.parent is not None:
        lines.append(f"from {f':{number - 1}' if draft.follows else draft.parent}".encode())
    if draft.base != draft.parent:
        lines.append(b"deleteall" if base_tree is None else f'M 040000 {base_tree} ""'.encode())
    # Deletions first, so that a folder can replace a file of the same name.
    gone = sorted(path for path, content in draft.changes.items() if content is None)
    lines.extend(b"D " + _quoted(path) for path in gone)
    for path, content in sorted(draft.changes.items()):
        if content is not None:
            lines += [b"M 100644 inline " + _quoted(path), _data(content)]
    return lines


def _signatures(draft: Draft) -> list[bytes]:
    people = {"author": draft.author, "committer": draft.committer or draft.author}
    at = f"{int(draft.at.timestamp())} +0000"
    return [f"{key} {_named(person)} {at}".encode() for key, person in people.items()]


def _named(person: Person) -> str:
    name = _UNFIT.sub("", person.name).strip() or "unknown"
    return f"{name} <{_UNFIT.sub('', person.email).strip()}>"


def _message(text: str) -> bytes:
    return (text.replace("\0", "").rstrip("\n") + "\n").encode("utf-8", "replace")


def _data(content: bytes) -> bytes:
    return b"data %d\n" % len(content) + content


def _quoted(path: str) -> bytes:
    escaped = tree_path(path).replace("\\", "\\\\").replace('"', '\\"')
    return b'"' + escaped.encode("utf-8", "surrogateescape") + b'"'
