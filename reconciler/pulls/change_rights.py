"""Whether the author may make these changes, by the policy that the controller applies after the merge. Pure.

Rights are those on current main. If the author is unknown, the answer is who may make each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from reconciler.model.evidence import Actor, Denial, Voucher
from reconciler.pulls.before_and_after import Sights
from reconciler.pulls.check import Judged
from reconciler.pulls.merged_tree import Merged
from reconciler.trust.authority import Authority
from reconciler.trust.policy import Change, Own, What, denial
from schemas.reading.reader import rule_of

Vouchers = Mapping[str, Sequence[Voucher]]
"""The evidence for each path; the key "" is for all paths."""


def changes_of(sights: Sights, merge: Merged, signed: Mapping[str, str]) -> Iterable[Change]:
    """What the pull request does to each governed file; `signed` are signers of approvals, by path."""
    base, head = sights.base.repository, sights.head.repository
    for path, entry in sorted(merge.changes.items()):
        if rule_of(path) is None:
            continue
        what: What = "delete" if entry.oid is None else "create" if base.absent(path) else "change"
        old, new = base.documents.get(path), head.documents.get(path)
        yield Change(path, what, old, new, signed.get(path, ""))


def judge(
    changes: Iterable[Change], vouchers: Vouchers, authority: Authority, shown: str | None, now: datetime
) -> Judged:
    """`shown` is the author's name if the evidence identifies no listed person."""

    def by_evidence(path: str) -> list[Actor]:
        return _actors((*vouchers.get("", ()), *vouchers.get(path, ())), authority, now, shown)

    return _judged(changes, by_evidence, authority)


def judged_for(changes: Iterable[Change], actor: Actor, authority: Authority) -> Judged:
    """The same for a known author."""
    return _judged(changes, lambda _: [actor], authority)


def _judged(
    changes: Iterable[Change], actors_of: Callable[[str], Sequence[Actor]], authority: Authority
) -> Judged:
    actors: dict[str, Actor] = {}
    denials: list[Denial] = []
    may: dict[str, str] = {}
    for change in changes:
        may[change.path] = least(change, authority.admins.emails)
        found = actors_of(change.path)
        actors |= {actor.email: actor for actor in found}
        refusals = [denial(actor, change) for actor in found]
        first = next(iter(refusals), None)
        if first is not None and None not in refusals:
            denials.append(first)
    if not actors:
        return Judged(may=may)
    return Judged(", ".join(sorted(actors)), tuple(denials), may)


def _actors(
    vouchers: Iterable[Voucher], authority: Authority, now: datetime, shown: str | None
) -> list[Actor]:
    """The people identified by the evidence; an unlisted person is a stranger without rights."""
    found = [authority.actor(voucher, now) for voucher in vouchers]
    return [actor if actor is not None else Actor(shown or "a person who is not listed") for actor in found]


def least(change: Change, admins: frozenset[str] = frozenset()) -> str:
    """Who may make the change, as text: the widest group; `admins` are their addresses."""
    rule = rule_of(change.path)
    if rule is None:
        return "anybody"
    slice_ = rule[1].get("slice", rule[1].get("name", ""))
    circle = frozenset({slice_})
    whose = {d.spec.email for d in (change.old, change.new) if isinstance(d, Own)}
    admin = Actor("", is_admin=True, admins=admins)
    beside = " and admins" if denial(admin, change) is None else ""
    circles = (
        ("anybody", Actor("")),
        *((f"{email}{beside}", Actor(email)) for email in sorted(whose)),
        (f"members of slice {slice_} and admins", Actor("", member_of=circle)),
        (f"owners of slice {slice_} and admins", Actor("", owns=circle, member_of=circle)),
        ("admins", admin),
    )
    found = (name for name, actor in circles if denial(actor, change) is None)
    return next(found, f"the admin {rule[1].get('name')}")
