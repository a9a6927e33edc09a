"""Whether a change counts: its evidence identifies a person who may make it. Pure.

The controller asks about main, the hook of a Git server about a push; the check of a pull request, which may
have no evidence, uses the policy directly. Evidence is an argument: what each caller can know differs, what
it means does not.
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
"""The evidence for one change, by its kind; each required kind must identify a person who may make it."""

Who = Callable[[Voucher], Actor | None]
"""The person that evidence identifies, with their rights in the tree before the change."""

ASKED: Mapping[Level, tuple[How, ...]] = {
    "none": (),
    "signature": ("signature",),
    "forge": ("forge",),
    "both": ("signature", "forge"),
}
"""The evidence that a change needs at each level."""

NOBODY = Actor("nobody")
"""An unknown person: may do what everyone may, as with files without effect and signed approvals."""

_ADVICE: Mapping[How, str] = {
    "signature": "submit it again with a commit or merge signed by a key that project.yaml, its slice.yaml or the "
    "operator's allowed_signers lists for a person who may change it",
    "forge": "submit it again in a pull request opened or merged by an account that project.yaml or its slice.yaml "
    "lists for a person who may change it",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The identified people who may make the change; `denial` is None if that suffices."""

    actors: tuple[Actor, ...] = ()
    denial: Denial | None = None


def judge(change: Change, evidence: Evidence, who: Who) -> Verdict:
    """Judges a change by the rights in the tree before it."""
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
    """Everyone this evidence identifies, without duplicates."""
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
    text = f"{quoted(change.path)}: no known person made or approved this change; {_ADVICE[how]}"
    return Denial(change.path, "NobodyStandsBehindIt", text)
