"""A team with one admin, whose keys stand in the manifests alone, and who may approve their own requests."""

from __future__ import annotations

from tests.reconciler.trust.corpus.keys import signed_by
from tests.reconciler.trust.corpus.merges import merged
from tests.support import world
from tests.support.court import Bench, Case, person

PROJECT = {"admins": [person("ada")], "approval": {"ownRequests": True}, "limits": {"nodesPerRequest": 1000}}


def as_ada_in_the_slice(bench: Bench) -> None:
    """The slice's owner lists a key of their own beside Ada's address, and signs with it."""
    members = [person("bo"), {"email": "ada@example.com", "keys": [world_key("olga")]}]
    text = world.slice_(bench.slice, members=members, owners=[person("olga")], quota={"gpus": 8})
    bench.court.push({f"slices/{bench.slice}/slice.yaml": text}, "olga")
    bench.put(bench.word("ada", "olga"))


def as_ada_in_the_project(bench: Bench) -> None:
    """The slice's owner makes themself an admin: main does not believe it."""
    project = world.project(admins=[person("ada"), person("olga")])
    bench.court.push({"project.yaml": project}, "olga")
    bench.put(bench.word("olga", "olga"), "olga")


def world_key(name: str) -> str:
    """The public half of somebody's key."""
    keys = person(name)["keys"]
    assert isinstance(keys, list)
    return str(keys[0])


FORGERIES = [
    Case("by an owner's key beside the admin's address", as_ada_in_the_slice),
    Case("by an owner who lists themself as admin", as_ada_in_the_project),
    Case("of a one-admin team, by a member", signed_by("bo")),
]
GENUINE = [
    Case("by a key of project.yaml", signed_by("ada"), "approved"),
    Case("of one's own request, where that is allowed", signed_by("ada"), "approved", by="ada"),
    Case("one's own merge, where that is allowed", merged("ada", "ada"), "approved", is_filed=False),
    Case("a merge by a key of project.yaml", merged("ada"), "approved", is_filed=False),
]
