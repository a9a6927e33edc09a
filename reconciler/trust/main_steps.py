"""The steps from the last judged commit to main: one for each commit on the line of first parents.

If the judged commit is not on that line (a pull merged main into someone's work, which was pushed as main),
it is unknown who merged what: then all of it is one step.

Held by tests/reconciler/trust/test_gate.py.
"""

from __future__ import annotations

from reconciler.store.store_port import Commit, Store
from reconciler.trust.vouchers import Step
from schemas.errors import Fault

MOST_COMMITS = 10_000
"""Steps of one walk: more at once is not human work, and main freezes."""
ADOPT = "have an operator review main and run `egs-reconciler adopt` with the controller's options"


class Frozen(Exception):  # noqa: N818 - not an error outside: it says why main is not followed further
    """Main is not followed further until it is changed or adopted."""


def steps_to(store: Store, judged: str, main: str) -> list[Step]:
    """The steps not judged yet, oldest first. Raises Frozen, or a Fault of the store about `main`."""
    line = _line(store, judged, main)
    if line is not None:
        bases = [judged, *(commit.oid for commit in line)]
        return [Step(base, commit) for base, commit in zip(bases, line, strict=False)]
    if not _descends(store, judged, main):
        raise Frozen(
            f"main was rewritten: {main[:12]} is not built on {judged[:12]}, which stays in force; reset main "
            f"to it, or {ADOPT}"
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
                f"main has more than {MOST_COMMITS} commits since {judged[:12]}, which stays in force; reset "
                f"main and push them in smaller parts, or {ADOPT}"
            )
        found.append(store.commit(oid))
        oid = found[-1].parents[0] if found[-1].parents else None
    return None if oid is None else found[::-1]


def _descends(store: Store, old: str, new: str) -> bool:
    """True if `new` was built on `old`; a missing commit was dropped by a rewrite."""
    try:
        store.commit(old)
    except Fault:
        return False
    return store.is_ancestor(old, new)
