"""Whose a namespace is: the slices' inventories say so. A label alone gives nothing. Pure."""

from __future__ import annotations

from reconciler.clusters.kubernetes.tenancy.namespaces import Space
from reconciler.clusters.kubernetes.tenancy.slice_inventory import Claim


def holds(claim: Claim, space: Space, *, is_furnished: bool) -> bool:
    """The claim is about this very namespace, and no later one of its name.

    `is_furnished`: the slice's members have their rights in it, by an object that we wrote.
    """
    if claim.namespaces is None:  # the inventory is lost, or the slice was gone: both signs together must do
        return is_furnished and (space.slice, space.project) == (claim.slice, claim.project)
    if space.name not in claim.namespaces:
        return False
    uid = claim.uids.get(space.name)
    if uid is not None:
        return uid == space.uid
    # Named before it was there, or by a release that wrote no uids: one that came up by itself is not ours.
    return not claim.namespaces[space.name] or space.is_made or is_furnished


def made(claim: Claim, space: Space, *, is_held: bool) -> bool:
    """By us and for this slice; what bears our annotation of adoption never was."""
    return is_held and claim.made.get(space.name, False) and not space.is_adopted
