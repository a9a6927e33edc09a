"""What `egs validate` found in a clone, kept in the user's cache until a file there changes. Imports no models.

A file is the same if its path, mode, size, inode and times are, as for git itself; a folder in which something changed
within the last seconds is not kept. What another version of ours or of a library found counts as nothing, and so does a
damaged file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from reconciler.clock import wall
from reconciler.sources.here import cache_folder, is_bare, root_of
from reconciler.store.document_cache import DocumentCache
from schemas.rules.check_result import CheckResult
from schemas.rules.problems import Problem

Refs = tuple[str | None, str | None]
"""A commit to check, and one to compare it with; None: the present files, and nothing."""

RACY = timedelta(seconds=2)
"""A file that changes twice within the clock's steps keeps its times."""
_OURS = Path(__file__).parents[3]
_SOURCES = ("egs", "reconciler", "scheduler", "schemas")
"""All that a command may import (import-linter holds that), and so all of ours that can decide an answer. Not only the
rules: which requests are finished, for example, follows from how the status is read."""
_LIBRARY = "pydantic"
"""Its neighbours are the installed libraries, whose words stand in some problems."""
_KEY = "result"


@dataclass(frozen=True, slots=True)
class Known:
    """A result, with what it depends on: the files' `state`, the time, and where `is_asked` the status at `head`."""

    state: str
    result: CheckResult
    since: datetime
    is_asked: bool
    head: str | None
    top: Sequence[str]  # the entries of the folder that were looked at


def clone_of(given: str | None) -> Path | None:
    """The work tree that `--repo`, EGS_REPO or the current folder names; None: it names something else."""
    named = given or os.environ.get("EGS_REPO")
    if named is not None and ":" in named:
        return None
    folder = root_of(Path.cwd()) if named is None else Path(named).expanduser()
    is_clone = folder.is_dir() and (folder / ".git").exists() and not is_bare(folder)
    return folder.resolve() if is_clone else None


def recalled(clone: Path) -> Known | None:
    """What was found in the clone's files as they are now."""
    cache = _cache(clone)
    try:
        kept = cache.get_many([_KEY]).get(_KEY)
    finally:
        cache.close()
    known = None if kept is None else _parsed(kept)
    now = wall()
    if (
        known is None
        or not known.since <= now
        or (known.result.until is not None and now >= known.result.until)
    ):
        return None
    return known if known.state == state_of(clone, known.top, None) else None


def keep(clone: Path, known: Known) -> None:
    cache = _cache(clone)
    try:
        cache.put_many({_KEY: _text(known)})
    finally:
        cache.close()


def state_of(clone: Path, top: Sequence[str], now: datetime | None) -> str | None:
    """A digest of all files below `top`, without reading them. None: with `now`, something changed just before it."""
    lines = sorted(_lines(clone, top))
    if now is not None:
        newest = max((max(line[4], line[5]) for line in lines), default=0)
        if newest >= (now - RACY).timestamp() * 1e9:
            return None
    return hashlib.sha256(repr(lines).encode("utf-8", "surrogateescape")).hexdigest()


_Line = tuple[str, int, int, int, int, int]
"""Path, mode, size, inode, and when content and inode changed, in nanoseconds."""


def _lines(clone: Path, top: Sequence[str]) -> Iterator[_Line]:
    todo = []
    for name in top:
        path = f"{clone}/{name}"
        if os.path.lexists(path):
            about = os.lstat(path)
            yield _line(path, about)
            if stat.S_ISDIR(about.st_mode):
                todo.append(path)
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                yield _line(entry.path, entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)


def _line(path: str, about: os.stat_result) -> _Line:
    return path, about.st_mode, about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def _cache(clone: Path) -> DocumentCache:
    name = hashlib.sha256(os.fsencode(clone)).hexdigest()[:16]
    return DocumentCache(cache_folder() / "read" / f"tree-{name}.validated.sqlite", _version())


def _version() -> str:
    """A digest of the programs that a result depends on: our sources, the versions of libraries, and Python's."""
    digest = hashlib.sha256(f"{sys.version} {_libraries()}".encode())
    for room in _SOURCES:
        for path in sorted((_OURS / room).rglob("*.py")):
            digest.update(f"{path.name} ".encode() + path.read_bytes())
    return digest.hexdigest()


def _libraries() -> list[str]:
    """Names with versions, as pip writes them: asking for each would take longer than all our sources."""
    found = find_spec(_LIBRARY)
    if found is None or found.origin is None:
        return []
    return sorted(path.name for path in Path(found.origin).parents[1].glob("*.dist-info"))


def _text(known: Known) -> bytes:
    result = known.result
    until = None if result.until is None else result.until.timestamp()
    content = {
        "state": known.state,
        "since": known.since.timestamp(),
        "until": until,
        "top": list(known.top),
        "isAsked": known.is_asked,
        "head": known.head,
        "documents": result.documents,
        "problems": [list(asdict(problem).values()) for problem in result.problems],
    }
    return json.dumps(content).encode()


def _parsed(text: bytes) -> Known:
    """Its checksum says that we wrote it, and its version that this module did."""
    content = json.loads(text)
    until = None if content["until"] is None else datetime.fromtimestamp(content["until"], UTC)
    problems = tuple(Problem(*values) for values in content["problems"])
    result = CheckResult(content["documents"], problems, until)
    since = datetime.fromtimestamp(content["since"], UTC)
    return Known(content["state"], result, since, content["isAsked"], content["head"], content["top"])
