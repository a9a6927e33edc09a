"""Which slice owns a namespace, according to the slices' inventories. A label alone proves nothing. Pure."""

from __future__ import annotations

from reconciler.clusters.kubernetes.tenancy.namespaces import Space
from reconciler.clusters.kubernetes.tenancy.slice_inventory import Claim


def holds(claim: Claim, space: Space, *, is_furnished: bool) -> bool:
    """True if the claim is about exactly this namespace, not a later one of the same name.

    `is_furnished`: the slice's members have permissions in it, through an object that we wrote.
    """
    # The inventory is lost, or the slice was removed: then both signs are needed.
    if claim.namespaces is None:
        return is_furnished and (space.slice, space.project) == (claim.slice, claim.project)
    if space.name not in claim.namespaces:
        return False
    uid = claim.uids.get(space.name)
    if uid is not None:
        return uid == space.uid
    # Claimed before it existed, or by a release without uids: one created by others is not ours.
    return not claim.namespaces[space.name] or space.is_made or is_furnished


def made(claim: Claim, space: Space, *, is_held: bool) -> bool:
    """True if we made it for this slice; a namespace with our adoption annotation was not made by us."""
    return is_held and claim.made.get(space.name, False) and not space.is_adopted
