"""Which names may be passed to git. Pure.

Everything from outside (a branch, a path, an object id) passes one of these checks before it becomes part of
an argument or of git's input. What passes is neither an option nor a revision expression, and cannot leave
the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from schemas.errors import UserError

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+#=-]*"
_BRANCH = re.compile(rf"{_BRANCH_PART}(?:/{_BRANCH_PART})*")
_MAX_NAME = 200  # git's limit is 255 bytes per part, and lock files need a suffix
_PULL_REF = re.compile(r"refs/(?:pull|merge-requests)/[1-9][0-9]{0,9}/head")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def full_oid(oid: str) -> str:
    """The id if it is a full hexadecimal one; abbreviations and expressions are refused."""
    if not _OID.fullmatch(oid):
        raise UserError(
            f"{oid[:80]!r} is not a full object id; give all 40 hexadecimal digits", "BadObjectId"
        )
    return oid


def is_branch(name: str) -> bool:
    """True for branch names that this project uses, a strict subset of git's."""
    if len(name) > _MAX_NAME or not _BRANCH.fullmatch(name) or ".." in name:
        return False
    return not any(part.endswith((".", ".lock")) for part in name.split("/"))


def branch_name(name: str) -> str:
    """The name if `is_branch`."""
    if not is_branch(name):
        raise UserError(
            f"{name[:80]!r} is not a supported branch name; use letters, digits and ._+#=- in parts "
            "separated by /, each beginning with a letter or digit",
            "BadBranch",
        )
    return name


def pull_ref(ref: str) -> str:
    """The ref if it is the head of a pull request, as forges name them."""
    if not _PULL_REF.fullmatch(ref):
        raise UserError(f"{ref[:80]!r} is not the head of a pull request (refs/pull/N/head)", "BadBranch")
    return ref


def branch_pattern(pattern: str) -> str:
    """The pattern if it is a branch name in which some characters may be `*`."""
    branch_name(pattern.replace("*", "x"))
    return pattern


def matching(patterns: Iterable[str], tips: Mapping[str, str]) -> dict[str, str]:
    """The branches matching a pattern, by name; `*` matches anything but a slash."""
    shape = _shape(patterns)
    return {name: tips[name] for name in sorted(tips) if shape.fullmatch(name) and is_branch(name)}


def in_the_way(branch: str, others: Iterable[str]) -> list[str]:
    """The branches that prevent a branch of this name: git stores a name as a file or a folder."""
    return sorted(name for name in others if name.startswith(f"{branch}/") or branch.startswith(f"{name}/"))


def _shape(patterns: Iterable[str]) -> re.Pattern[str]:
    each = ("[^/]*".join(re.escape(piece) for piece in pattern.split("*")) for pattern in patterns)
    return re.compile("|".join(each) or "(?!)")


def exact(patterns: Sequence[str]) -> list[str]:
    """The patterns that are plain branch names."""
    return [pattern for pattern in patterns if "*" not in pattern]


def widened(pattern: str) -> str:
    """The pattern cut after its first `*`: git's refspecs allow one star, which matches slashes too."""
    head, star, _ = pattern.partition("*")
    return head + star


def tree_path(path: str) -> str:
    """The path if it is a file inside a tree on every system."""
    parts = path.split("/")
    if _CONTROL.search(path) or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise UserError(
            f"{path[:120]!r} is not a path inside the repository; use names divided by single slashes",
            "BadPath",
        )
    return path
