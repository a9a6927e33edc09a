"""Checks a mirror's integrity: every file that a fault could have damaged, and everything that refs point to.

Only damage that a new mirror would not have counts: the remote's content is not checked. Reads the mirror's
files once and walks its objects once; it runs when something failed.

Held by tests/reconciler/store/git/test_mirror_repair.py.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

from reconciler.store.git.git_process import TIMED_OUT, Git

_HASH_BYTES = 20
_CHUNK = 1 << 20
_LARGEST_LOOSE = 64 << 20
"""Largest loose object that is unpacked for the check."""


def damage(folder: Path, git: Git, url: str, limit_s: float) -> str:
    """The first problem, as text; empty: none."""
    try:
        return next(_wrong(folder, git, url, limit_s), "")
    except OSError as error:
        return f"{type(error).__name__} {error}"


def _wrong(folder: Path, git: Git, url: str, limit_s: float) -> Iterator[str]:
    yield from _settings(git, url, limit_s)
    for pack in sorted((folder / "objects" / "pack").iterdir()):
        yield from _pack(pack)
    for shelf in sorted((folder / "objects").glob("[0-9a-f][0-9a-f]")):
        yield from (
            f"loose object {shelf.name}{o.name} is broken" for o in shelf.iterdir() if not _is_whole(o)
        )
    yield from _reachable(git, limit_s)


def _settings(git: Git, url: str, limit_s: float) -> Iterator[str]:
    done = git.run(["config", "--local", "--get", "remote.origin.url"], limit_s)
    if done.code != TIMED_OUT and done.output.decode("utf-8", "replace").strip() != url:
        yield f"its configuration does not name the remote ({done.error or 'it is truncated'})"


def _pack(file: Path) -> Iterator[str]:
    """A pack and its companion files end with a hash of their content; an index also has its pack's."""
    if file.suffix not in {".pack", ".idx", ".rev"}:
        return
    if not (end := _end(file)):
        yield f"{file.name} is broken"
    elif file.suffix == ".idx":
        pack = file.with_suffix(".pack")
        if not pack.exists() or _tail(pack, _HASH_BYTES) != end[:-_HASH_BYTES]:
            yield f"{file.name} does not match its pack"
    elif file.suffix == ".pack" and not file.with_suffix(".idx").exists():
        yield f"{file.name} has no index"


def _end(file: Path) -> bytes:
    """The last two hashes of a file; empty if the last one does not match the content."""
    if file.stat().st_size < 2 * _HASH_BYTES:
        return b""
    left, total = file.stat().st_size - _HASH_BYTES, hashlib.sha1(usedforsecurity=False)
    with file.open("rb") as data:
        while left > 0 and (part := data.read(min(_CHUNK, left))):
            total.update(part)
            left -= len(part)
    end = _tail(file, 2 * _HASH_BYTES)
    return end if end[-_HASH_BYTES:] == total.digest() else b""


def _tail(file: Path, count: int) -> bytes:
    with file.open("rb") as data:
        data.seek(max(0, file.stat().st_size - count))
        return data.read()


def _is_whole(file: Path) -> bool:
    """A loose object must match its name; other files are not judged."""
    oid = file.parent.name + file.name
    if len(oid) != 2 * _HASH_BYTES:
        return True
    try:
        content = zlib.decompressobj().decompress(file.read_bytes(), _LARGEST_LOOSE)
    except zlib.error:
        return False
    return len(content) == _LARGEST_LOOSE or hashlib.sha1(content, usedforsecurity=False).hexdigest() == oid


def _reachable(git: Git, limit_s: float) -> Iterator[str]:
    """Every ref is readable, and everything reachable exists."""
    done = git.run(["for-each-ref", "--format=%(refname)"], limit_s)
    if done.code not in (0, TIMED_OUT) or "broken ref" in done.error:
        yield f"its refs cannot be read ({done.error})"
    done = git.run(["rev-list", "--objects", "--all", "--quiet"], limit_s)
    if done.code not in (0, TIMED_OUT):
        yield f"some objects that its refs point to are missing ({done.error})"
