"""The way from the commit judged last to main: one step for each commit on the line of first parents.

Where main before is not on that line (a pull that merged main into somebody's work and was pushed as main), nobody can
tell who merged what: then all of it is one step.

Held by tests/reconciler/trust/test_gate.py.
"""

from __future__ import annotations

from reconciler.store.store_port import Commit, Store
from reconciler.trust.vouchers import Step
from schemas.errors import Fault

MOST_COMMITS = 10_000
"""Steps of one walk: more at once are no work of people, and main freezes."""
ADOPT = "an operator who has looked at main runs `egs-reconciler adopt` with the controller's own options"


class Frozen(Exception):  # noqa: N818 - no error to anybody outside: it says why main goes no further
    """Main is not followed any further until it is changed, or adopted."""


def steps_to(store: Store, judged: str, main: str) -> list[Step]:
    """What is still to be judged, oldest first. Raises Frozen, or a Fault of the store about `main`."""
    line = _line(store, judged, main)
    if line is not None:
        bases = [judged, *(commit.oid for commit in line)]
        return [Step(base, commit) for base, commit in zip(bases, line, strict=False)]
    if not _descends(store, judged, main):
        raise Frozen(
            f"main was rewritten: {main[:12]} is not built on {judged[:12]}, which is in force and stays so; push main "
            f"back, or {ADOPT}"
        )
    return [Step(judged, store.commit(main), is_line=False)]


def _line(store: Store, judged: str, main: str) -> list[Commit] | None:
    """The commits after `judged` on the line of first parents; None: it is not on that line."""
    found: list[Commit] = []
    oid: str | None = main
    while oid is not None and oid != judged:
        if len(found) >= MOST_COMMITS:
            if not _descends(store, judged, oid):
                return None
            raise Frozen(
                f"main has more than {MOST_COMMITS} commits since {judged[:12]}, which is in force and stays so; push "
                f"it back and bring them in portions, or {ADOPT}"
            )
        found.append(store.commit(oid))
        oid = found[-1].parents[0] if found[-1].parents else None
    return None if oid is None else found[::-1]


def _descends(store: Store, old: str, new: str) -> bool:
    """Whether `new` was built on `old`; a commit that is not there any more was left behind by a rewriting."""
    try:
        store.commit(old)
    except Fault:
        return False
    return store.is_ancestor(old, new)
