"""A remote in a folder of this machine, fetched from and pushed to without a process.

`git fetch` and `git push` start eight processes each, on both sides; most tests are about what is read and written and
not about how it travels. Inside of `short_way()` every store of this process takes objects and branches straight from
the folder of a bare repository to its mirror, and back. What needs the real Git still gets it: other remotes, a remote
with hooks or rules of its own, a branch that is missing or in the way, anything but branches. Objects are not checked.

Tests in the folders of `SHORT` go this way in the profiles `quick` and `change`; after a merge and at night all of them
use Git. Held by tests/contract/test_store_contract.py, where it is one more remote.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

from reconciler.store.git.git_process import Completed, Git
from reconciler.store.git.mirror import TRACKING
from tests.support import profile, repos

SHORT = (
    "demo", "egs", "portal", "contract/test_command_contract.py", "contract/test_publish_contract.py",
    *(f"reconciler/{room}" for room in (
        "cli", "clusters", "documents", "forges", "pulls", "store/test_believed_commit.py",
        "telling", "test_crash.py", "trust",
    )),
)  # fmt: skip
"""Folders and modules of tests that are about what a repository contains."""
LONG = ("reconciler/pulls/test_watcher.py",)
"""Modules in them that are about objects which Git refuses on the way."""
HEADS = "refs/heads/"
LISTING = ("for-each-ref", "--format=%(refname)", TRACKING)
DONE = Completed(0, b"", "")
STALE = Completed(1, b"", "stale info")
_SPEC = re.compile(rf"\+{HEADS}(\S+):{TRACKING}(\S+)")
_PUSH = re.compile(rf"([0-9a-f]{{40}}):({HEADS}\S+)")
_OWN_RULES = re.compile(r"\[(receive|transfer|fetch|include|extensions)", re.IGNORECASE)


def goes_short(test: Path) -> bool:
    """True if the tests of that file go the short way in this run."""
    name = test.relative_to(Path(__file__).parents[1]).as_posix()
    return profile.PROFILE in {"quick", "change"} and name.startswith(SHORT) and name not in LONG


class DetourError(Exception):
    """This needs Git itself."""


@contextlib.contextmanager
def short_way() -> Iterator[None]:
    """Every store of this process goes the short way."""
    talk, run = Git.talk, Git.run

    def talk_shortly(self: Git, args: Sequence[str], timeout_s: float) -> Completed:
        with contextlib.suppress(DetourError, OSError):  # Git says it better
            return _answer(_folder(self._prefix), Path(self._address.url), args)
        return talk(self, args, timeout_s)

    def run_shortly(self: Git, args: Sequence[str], timeout_s: float, given: bytes = b"") -> Completed:
        if tuple(args) == LISTING:
            return Completed(
                0, "".join(f"{ref}\n" for ref in sorted(_refs(_folder(self._prefix), TRACKING))).encode(), ""
            )
        if args[0] != "init":
            return run(self, args, timeout_s, given)
        shutil.copytree(
            _empty_mirror(), _folder(self._prefix), copy_function=shutil.copyfile, dirs_exist_ok=True
        )
        return DONE

    with patch.object(Git, "talk", talk_shortly), patch.object(Git, "run", run_shortly):
        yield


def _folder(prefix: Sequence[str]) -> Path:
    return Path(prefix[1].removeprefix("--git-dir="))


@cache
def _empty_mirror() -> Path:
    """What `git init` makes, made once."""
    folder = Path(mkdtemp(prefix="egs-mirror-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    repos.git(folder, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", ".")
    return folder


def _answer(mirror: Path, remote: Path, args: Sequence[str]) -> Completed:
    if not remote.is_absolute() or not (remote / "objects").is_dir() or not (remote / "HEAD").is_file():
        raise DetourError
    if args[0] == "ls-remote":
        wanted = args[args.index("origin") + 1 :]
        found = [
            (ref, oid) for ref, oid in _heads(remote).items() if any(fnmatchcase(ref, w) for w in wanted)
        ]
        return Completed(0, "".join(f"{oid}\t{ref}\n" for ref, oid in sorted(found)).encode(), "")
    if args[0] == "fetch":
        _fetch(mirror, remote, args[args.index("origin") + 1 :], prune="--prune" in args)
        return DONE
    if args[0] == "push":
        return _push(mirror, remote, args[-1], next(a for a in args if a.startswith("--force-with-lease=")))
    raise DetourError


def _fetch(mirror: Path, remote: Path, specs: Sequence[str], *, prune: bool) -> None:
    wanted: dict[str, str] = {}
    theirs, ours = _heads(remote), _refs(mirror, TRACKING)
    for spec in specs:
        parts = _SPEC.fullmatch(spec)
        if parts is None or parts[1] != parts[2]:
            raise DetourError
        names = [ref.removeprefix(HEADS) for ref in theirs if fnmatchcase(ref, HEADS + parts[1])]
        if not names and "*" not in parts[1]:
            raise DetourError  # a fault, in Git's words
        wanted |= {TRACKING + name: theirs[HEADS + name] for name in names}
        if prune and any(
            fnmatchcase(ref, TRACKING + parts[1]) and ref.removeprefix(TRACKING) not in names for ref in ours
        ):
            raise DetourError
    moved = {ref: oid for ref, oid in wanted.items() if ours.get(ref) != oid}
    if moved:
        _bring_objects(remote, mirror)
    for ref, oid in moved.items():
        _move(mirror, ref, oid)


def _push(mirror: Path, remote: Path, spec: str, lease: str) -> Completed:
    parts = _PUSH.fullmatch(spec)
    if parts is None or _has_rules(remote):
        raise DetourError
    new, ref = parts[1], parts[2]
    if any(other.startswith(ref + "/") or ref.startswith(other + "/") for other in _heads(remote)):
        raise DetourError
    _bring_objects(mirror, remote)
    with _locked(remote / ref) as lock:  # others push too: what is compared is what is replaced
        there = _heads(remote).get(ref, "")
        if there not in {new, lease.rpartition(":")[2]}:
            return STALE
        _put(lock, remote / ref, new)
    _move(mirror, TRACKING + ref.removeprefix(HEADS), new)
    return DONE


def _has_rules(remote: Path) -> bool:
    hooks = remote / "hooks"
    return (hooks.is_dir() and any(hooks.iterdir())) or bool(
        _OWN_RULES.search((remote / "config").read_text())
    )


def _heads(repo: Path) -> dict[str, str]:
    return _refs(repo, HEADS)


def _refs(repo: Path, prefix: str) -> dict[str, str]:
    """Every ref below the prefix, packed or loose."""
    found: dict[str, str] = {}
    packed = repo / "packed-refs"
    if packed.is_file():
        for line in packed.read_text().splitlines():
            oid, _, ref = line.partition(" ")
            if ref.startswith(prefix):
                found[ref] = oid
    for folder, _, files in os.walk(repo / prefix):
        for file in (Path(folder, name) for name in files if not name.endswith(".lock")):
            text = file.read_text().strip()
            if len(text) != 40:
                raise DetourError
            found[file.relative_to(repo).as_posix()] = text
    return found


def _move(repo: Path, ref: str, oid: str) -> None:
    with _locked(repo / ref) as lock:
        _put(lock, repo / ref, oid)


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[Path]:
    """As Git does it: with a lock beside the ref. FileExistsError: another process has it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = place.with_name(place.name + ".lock")
    lock.touch(exist_ok=False)
    try:
        yield lock
    finally:
        lock.unlink(missing_ok=True)


def _put(lock: Path, place: Path, oid: str) -> None:
    lock.write_text(oid + "\n")
    lock.replace(place)


def _bring_objects(source: Path, target: Path) -> None:
    """Whole packs and loose objects, an index after its pack: what has an index is complete."""
    for folder in sorted(entry for entry in (source / "objects").iterdir() if entry.name != "info"):
        into = target / "objects" / folder.name
        into.mkdir(exist_ok=True)
        there = {entry.name for entry in into.iterdir()}
        missing = [entry for entry in folder.iterdir() if entry.name not in there]
        for entry in sorted(missing, key=lambda entry: entry.suffix == ".idx"):
            if not entry.name.startswith("tmp_") and entry.suffix not in {".lock", ".keep"}:
                draft = into / f"tmp_{entry.name}"
                shutil.copyfile(entry, draft)
                draft.replace(into / entry.name)
