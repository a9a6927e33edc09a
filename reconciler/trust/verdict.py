"""Whether a change counts: somebody whom its evidence shows may make it. Pure, and the same for everybody who asks.

The controller asks it of main, the hook of a Git server before a push; the check of a pull request, which may know
nobody, asks the policy beneath it. Evidence is an argument: what each can know differs, what it means does not.

Held by tests/reconciler/trust/test_verdict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.model.evidence import Actor, Denial, Level, Voucher
from reconciler.trust.policy import Change, denial
from schemas.rules.problems import quoted

How = Literal["signature", "forge"]

Evidence = Mapping[How, tuple[Voucher, ...]]
"""Who stands behind one change, by what shows it; each of these has to show somebody who may make it."""

Who = Callable[[Voucher], Actor | None]
"""Whom evidence shows, and what the tree before the change makes of them; `Authority.actor` at one instant."""

ASKED: Mapping[Level, tuple[How, ...]] = {
    "none": (),
    "signature": ("signature",),
    "forge": ("forge",),
    "both": ("signature", "forge"),
}
"""What has to be shown of a change at each level."""

NOBODY = Actor("nobody")
"""Whoever it is: what they may do everybody may, as with files that do nothing and approvals that are signed inside."""

_ADVICE: Mapping[How, str] = {
    "signature": "bring it in again with a commit or merge signed by a key that project.yaml, its slice.yaml or the "
    "operator's allowed_signers lists for somebody who may change it",
    "forge": "bring it in again by a pull request of, or merged by, an account that project.yaml or its slice.yaml "
    "lists for somebody who may change it",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who was shown and may make the change; `denial` is None when that is enough."""

    actors: tuple[Actor, ...] = ()
    denial: Denial | None = None


def judge(change: Change, evidence: Evidence, who: Who) -> Verdict:
    """Whether this change counts, on the authority of the tree before it."""
    if denial(NOBODY, change) is None:
        return Verdict()
    entitled: dict[str, Actor] = {}
    for how, vouchers in evidence.items():
        found = _entitled(change, how, vouchers, who)
        if isinstance(found, Denial):
            return Verdict((), found)
        entitled |= {actor.email: actor for actor in found}
    return Verdict(tuple(entitled[email] for email in sorted(entitled)))


def shown(vouchers: tuple[Voucher, ...], who: Who) -> tuple[Actor, ...]:
    """Everybody whom this evidence shows, each once."""
    actors = map(who, vouchers)
    return tuple(dict.fromkeys(actor for actor in actors if actor is not None))


def _entitled(
    change: Change, how: How, vouchers: tuple[Voucher, ...], who: Who
) -> tuple[Actor, ...] | Denial:
    actors = shown(vouchers, who)
    refusals = [(actor, denial(actor, change)) for actor in actors]
    entitled = tuple(actor for actor, refusal in refusals if refusal is None)
    if entitled:
        return entitled
    found = next((refusal for _, refusal in refusals if refusal is not None), None)
    return found or _nobody(change, how)


def _nobody(change: Change, how: How) -> Denial:
    text = f"{quoted(change.path)}: nobody who is known here stands behind it; {_ADVICE[how]}"
    return Denial(change.path, "NobodyStandsBehindIt", text)
