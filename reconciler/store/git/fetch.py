"""Fetches branches so that a bad one never blocks the others.

First all at once, in one process. If that fails, or cannot succeed (a missing or a refused branch), the
remote's heads are read and only changed branches are fetched, one by one if necessary. A branch whose objects
fail git's check keeps its last good head.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from reconciler.store.git import git_names
from reconciler.store.git.git_process import Git
from reconciler.store.git.mirror import TRACKING, Limits, Mirror
from reconciler.store.git.unreadable_remote import unreachable
from schemas.errors import Fault

log = logging.getLogger(__name__)

_HEADS = "refs/heads/"
_KEPT = "refs/egs/kept"
PULLS = "refs/egs/pulls/"
"""Refs for heads of pull requests, kept as long as they are requested."""
_FETCH = (
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
    "--no-recurse-submodules", "--no-show-forced-updates",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refused:
    """A remote head that failed git's check; it is fetched again with fetch number `until_fetch`."""

    oid: str
    sentence: str
    until_fetch: int


class Fetcher:
    """`tips` are the branches' last good heads, by name; code that moves a tracking ref updates them."""

    def __init__(self, mirror: Mirror, limits: Limits) -> None:
        self.tips = mirror.refs
        self._mirror = mirror
        self._git = mirror.git
        self._limits = limits
        self._refused: dict[str, Refused] = {}
        self.fetches = 0
        self._asked: dict[str, None] = {}  # all patterns ever requested
        self.doubtful = False
        """The last fetch got less than requested, though the remote answered: our own files may be the cause."""

    def alarms(self) -> list[str]:
        """One sentence per branch that was not updated."""
        return [refused.sentence for _, refused in sorted(self._refused.items())]

    def fetch(self, patterns: Sequence[str], tracked: Callable[[Sequence[str]], dict[str, str]]) -> None:
        """Updates `tips` for the patterns; `tracked` reads tracking refs. Faults of `remote_tips`."""
        self.fetches += 1
        self.doubtful = False
        if not patterns:
            return
        self._asked |= dict.fromkeys(patterns)
        hopeful = not self._refused and all(name in self.tips for name in git_names.exact(patterns))
        if not (hopeful and self._bring(_refspecs(patterns), prune=True)):
            self.doubtful = hopeful
            self._piece_by_piece(patterns)
        found = tracked(self._listed(patterns))
        self._refuse_unreadable(git_names.matching(patterns, self.tips).keys() - found.keys())
        for name in git_names.matching(patterns, self.tips):
            del self.tips[name]
        self.tips.update(git_names.matching(patterns, found))

    def _refuse_unreadable(self, gone: AbstractSet[str]) -> None:
        """A branch is deleted if its ref is; an unreadable ref is our own problem."""
        if not gone:
            return
        refs = [TRACKING + name for name in sorted(gone)]
        listed = self._git.check(
            ["for-each-ref", "--format=%(refname)", *refs], self._limits.local.total_seconds()
        )
        left = listed.decode("utf-8", "replace").split()
        for ref in refs:
            if ref in left or (self._mirror.path / ref).is_file():
                branch = ref.removeprefix(TRACKING)
                raise Fault(f"the mirror cannot read the head of {branch}", "CorruptObjects")

    def bring_all(self, git: Git) -> bool:
        """Fetches everything ever requested into another mirror; False: nothing. Bad branches are skipped."""
        args, limit_s = [*_FETCH, "origin"], self._limits.remote.total_seconds()
        specs = _refspecs(self._asked)
        if not specs or git.talk([*args, *specs], limit_s).code == 0:
            return True
        came = [git.talk([*args, spec], limit_s).code == 0 for spec in specs]
        return any(came)

    def renew(self) -> None:
        """The mirror was replaced: refused branches may be tried again."""
        self._refused.clear()

    def bring_heads(self, refs: Sequence[str]) -> dict[str, str]:
        """Fetches these heads of pull requests; those deleted or failing git's check are absent.

        Heads fetched before and no longer requested are dropped.
        """
        own = {ref: PULLS + git_names.pull_ref(ref).removeprefix("refs/") for ref in refs}
        specs = {ref: f"+{ref}:{place}" for ref, place in own.items()}
        if specs and not self._bring(list(specs.values()), prune=False):
            for spec in specs.values():
                self._bring([spec], prune=False)
        limit_s = self._limits.local.total_seconds()
        args = ["for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", PULLS]
        lines = self._git.check(args, limit_s).decode("utf-8", "replace").splitlines()
        found = {ref: (oid, kind) for oid, kind, ref in (line.split(" ", 2) for line in lines)}
        gone = "".join(f"delete {ref}\n" for ref in sorted(found.keys() - set(own.values())))
        if gone:
            self._git.check(["update-ref", "--stdin"], limit_s, gone.encode())
        there = {ref: found[place] for ref, place in own.items() if place in found}
        return {ref: oid for ref, (oid, kind) in there.items() if kind == "commit"}

    def keep(self, oid: str) -> bool:
        """Creates a ref of our own to that commit; True if it is available afterwards."""
        limit_s = self._limits.local.total_seconds()
        if self._git.run(["cat-file", "-e", f"{oid}^{{commit}}"], limit_s).code != 0:
            self._mirror.grew()
            return self._bring([f"+{oid}:{_KEPT}"], prune=False)
        self._git.check(["update-ref", _KEPT, oid], limit_s)
        return True

    def remote_tips(self, patterns: Sequence[str]) -> dict[str, str]:
        """The remote's present heads. Fault `RemoteUnreachable`, or the reason that `unreachable` finds."""
        return git_names.matching(patterns, self._heads([git_names.widened(pattern) for pattern in patterns]))

    def in_the_way(self, branch: str) -> list[str]:
        """See `port.Store.in_the_way`. Faults as of `remote_tips`."""
        above = [branch[:end] for end, letter in enumerate(branch) if letter == "/"]
        return git_names.in_the_way(branch, self._heads([*above, f"{branch}/*"]))

    def _heads(self, globs: Sequence[str]) -> dict[str, str]:
        """The remote's branches matching these, under any name; a star matches slashes too."""
        refs = [_HEADS + glob for glob in globs]
        done = self._git.talk(["ls-remote", "--refs", "origin", *refs], self._limits.remote.total_seconds())
        if done.code != 0:
            raise unreachable(done.code, done.error)
        pairs = (line.split("\t", 1) for line in done.output.decode("utf-8", "replace").splitlines())
        # ls-remote matches names from their end: refs/heads/x/refs/heads/main would match main.
        return {ref.removeprefix(_HEADS): oid for oid, ref in pairs if ref.startswith(_HEADS)}

    def _listed(self, patterns: Sequence[str]) -> list[str]:
        """Names of tracking refs that may match; needs no process if every pattern is a branch name."""
        if len(git_names.exact(patterns)) == len(patterns):
            return list(patterns)
        args = ["for-each-ref", "--format=%(refname)", TRACKING]
        text = self._git.check(args, self._limits.local.total_seconds()).decode("utf-8", "replace")
        found = [line.removeprefix(TRACKING) for line in text.splitlines()]
        return list(git_names.matching(patterns, dict.fromkeys(found, "")))

    def _piece_by_piece(self, patterns: Sequence[str]) -> None:
        theirs = self.remote_tips(patterns)
        self._forget(git_names.matching(patterns, self.tips).keys() - theirs.keys())
        for name in git_names.matching(patterns, dict.fromkeys(self._refused, "")):
            if theirs.get(name) != self._refused[name].oid:
                del self._refused[name]
        moved = [name for name, oid in theirs.items() if oid != self.tips.get(name) and self._due(name)]
        if not moved or self._bring(_refspecs(moved), prune=False):
            for name in moved:
                self._refused.pop(name, None)
            return
        for name in moved:
            self._bring_one(name, theirs[name])

    def _due(self, name: str) -> bool:
        refused = self._refused.get(name)
        return refused is None or refused.until_fetch <= self.fetches

    def _bring_one(self, name: str, oid: str) -> None:
        done = self._run(_refspecs([name]), prune=False)
        if done is None:
            self._refused.pop(name, None)
            return
        # If the remote became unreachable meanwhile, no branch is to blame: this raises then.
        self.remote_tips([name])
        held = self.tips.get(name)
        where = "is not read" if held is None else f"stays at {held[:12]}"
        sentence = f"branch {name} {where}: its new head {oid[:12]} failed git's object check ({done})"
        if name not in self._refused:
            self.doubtful = True
            log.warning("branch refused branch=%s tip=%s error=%s", name, oid, done)
        self._refused[name] = Refused(oid, sentence, self.fetches + self._limits.retry_refused)

    def _forget(self, gone: Iterable[str]) -> None:
        lines = "".join(f"delete {TRACKING}{name}\n" for name in sorted(gone))
        if lines:
            limit_s = self._limits.local.total_seconds()
            self._git.check(["update-ref", "--stdin"], limit_s, lines.encode())
        for name in sorted(gone):
            self._refused.pop(name, None)

    def _bring(self, refspecs: Sequence[str], *, prune: bool) -> bool:
        return self._run(refspecs, prune=prune) is None

    def _run(self, refspecs: Sequence[str], *, prune: bool) -> str | None:
        """None if all were fetched, otherwise git's message."""
        args = [*_FETCH, *(["--prune"] if prune else []), "origin", *refspecs]
        done = self._git.talk(args, self._limits.remote.total_seconds())
        if done.code == 0:
            return None
        self._mirror.sweep()
        return done.error or f"exit {done.code}"


def _refspecs(patterns: Iterable[str]) -> list[str]:
    wide = dict.fromkeys(git_names.widened(pattern) for pattern in patterns)
    return [f"+{_HEADS}{name}:{TRACKING}{name}" for name in wide]
