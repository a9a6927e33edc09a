"""What a merge's subject says it merges, as Git and forges write it. Pure.

The signer of the merge wrote its subject, or let Git write it: it shows what they reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MERGE = "Merge "
_END = re.compile(r" (?:of|into) ")
_GROUP = re.compile(r"(remote-tracking )?branch(?:es)? ('[^']*'(?:(?:, | and )'[^']*')*)")
_QUOTED = re.compile(r"'([^']*)'")
_REQUEST = re.compile(
    r"\b(?:pull|merge) request\b|\bMerged PR [0-9]+\b|\([#!][0-9]+\)$", re.IGNORECASE | re.ASCII
)


def _branches(subject: str) -> Iterator[tuple[bool, str]]:
    """The merged branches it names, and whether each is a remote-tracking branch."""
    if not subject.startswith(_MERGE):
        return
    for source in subject.removeprefix(_MERGE).split("; "):
        for remote, names in _GROUP.findall(_END.split(source, maxsplit=1)[0]):
            for name in _QUOTED.findall(names):
                yield remote != "", name


def _is_main(is_remote: bool, name: str, main: str) -> bool:
    if not is_remote:
        return name == main
    _, _, branch = name.partition("/")
    return branch in (main, "HEAD")


def merges_main(subject: str, main: str) -> bool:
    """True if it merges main, as `git pull` and forges write it."""
    return any(_is_main(is_remote, name, main) for is_remote, name in _branches(subject))


def names_another(subject: str, main: str) -> bool:
    """True if it names something else: a branch other than main, or a pull or merge request."""
    if _REQUEST.search(subject) is not None:
        return True
    return any(not _is_main(is_remote, name, main) for is_remote, name in _branches(subject))
