"""Keys and profiles are the matter of the person whom they name (B7, B10, H12), however that person is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.identity.callers import Grant, caller_of
from reconciler.model.evidence import Actor
from reconciler.trust.policy import Change, denial
from schemas.documents.apikey import ApiKey
from tests.reconciler.trust.own_changes import key_of, profile_of
from tests.support.landing import Land, person, rules
from tests.support.profile import law
from tests.support.world import parsed, slice_

KEY, PROFILE = "keys/k.yaml", "people/p.yaml"
A = frozenset({"a"})
BO = Actor("bo@example.com", member_of=A)
HERE = Actor("bo@example.com", member_of=A, own_in=A)
ADA = Actor(
    "ada@example.com", is_admin=True, handle="ada", admins=frozenset({"ada@example.com", "al@example.com"})
)
OLGA = Actor("olga@example.com", owns=A, member_of=A, own_in=A)
DOOR = Actor("bo@example.com", member_of=A, is_narrowed=True)


def key(who: str = "bo", **spec: object) -> ApiKey:
    found = parsed(KEY, key_of("k", who, **spec))  # type: ignore[arg-type]
    assert isinstance(found, ApiKey)
    return found


@pytest.mark.parametrize(
    ("actor", "change", "may"),
    [
        pytest.param(BO, Change(KEY, "create", None, key()), True, id="one's own"),
        pytest.param(BO, Change(KEY, "create", None, key(role="Owner", slices=())), True, id="of any scope"),
        pytest.param(BO, Change(KEY, "create", None, key("ada")), False, id="another's"),
        pytest.param(BO, Change(KEY, "create", None, None), False, id="one that does not read"),
        pytest.param(BO, Change(KEY, "change", key(), key(revoked=True)), True, id="revoked"),
        pytest.param(BO, Change(KEY, "change", key(), None), True, id="made unreadable"),
        pytest.param(BO, Change(KEY, "change", None, key()), False, id="written over what does not read"),
        pytest.param(BO, Change(KEY, "change", key("ada"), key()), False, id="taken over"),
        pytest.param(BO, Change(KEY, "change", key(), key("ada")), False, id="handed on"),
        pytest.param(BO, Change(KEY, "delete", key(), None), True, id="deleted"),
        pytest.param(BO, Change(KEY, "delete", key("ada"), None), False, id="another's is deleted"),
        pytest.param(BO, Change(KEY, "delete", None, None), False, id="what does not read is deleted"),
        pytest.param(DOOR, Change(KEY, "create", None, key()), False, id="said by a service for requests"),
        pytest.param(
            ADA, Change(KEY, "create", None, key("ada", role="Owner", slices=())), True, id="an admin's own"
        ),
        pytest.param(ADA, Change(KEY, "create", None, key("robot")), True, id="a robot's, by an admin"),
        pytest.param(
            ADA, Change(KEY, "create", None, key(role="Owner")), False, id="an owner's, by an admin"
        ),
        pytest.param(ADA, Change(KEY, "create", None, key("al", role="Viewer")), False, id="another admin's"),
        pytest.param(ADA, Change(KEY, "change", key(), key("al")), False, id="handed to another admin"),
        pytest.param(ADA, Change(KEY, "change", key("al"), key("ada")), False, id="taken from another admin"),
        pytest.param(ADA, Change(KEY, "change", None, key("al")), False, id="another admin's, over nothing"),
        pytest.param(
            ADA, Change(KEY, "change", key("al"), key("al", revoked=True)), True, id="revoked by another"
        ),
        pytest.param(
            ADA,
            Change(KEY, "change", key("al", revoked=True), key("al")),
            False,
            id="brought back by another",
        ),
        pytest.param(
            ADA,
            Change(KEY, "change", key("al"), key("al", revoked=True, role="Owner")),
            False,
            id="revoked by another and changed",
        ),
        pytest.param(ADA, Change(KEY, "change", key("al"), None), True, id="broken by another"),
        pytest.param(ADA, Change(KEY, "delete", key("al"), None), True, id="deleted by another"),
        pytest.param(HERE, Change(KEY, "create", None, key()), True, id="where a slice alone knows them"),
        pytest.param(
            HERE, Change(KEY, "create", None, key(slices=())), False, id="everywhere, known to one alone"
        ),
        pytest.param(
            HERE, Change(KEY, "create", None, key(role="Owner")), False, id="an owner's, of a member alone"
        ),
        pytest.param(
            OLGA, Change(KEY, "create", None, key("olga", role="Owner")), True, id="an owner's, of an owner"
        ),
        pytest.param(
            HERE, Change(KEY, "change", key(slices=()), key()), False, id="narrowed, where it was for all"
        ),
        pytest.param(
            HERE,
            Change(PROFILE, "create", None, parsed(PROFILE, profile_of("p", "bo"))),
            False,
            id="a profile that only takes the place",
        ),
        pytest.param(
            BO,
            Change(PROFILE, "create", None, parsed(PROFILE, profile_of("p", "bo", []))),
            True,
            id="a profile of one's own",
        ),
        pytest.param(
            DOOR,
            Change(PROFILE, "create", None, parsed(PROFILE, profile_of("p", "bo", ["a"]))),
            False,
            id="a profile, said by a service for requests",
        ),
    ],
)
def test_who_may_change_a_key_or_a_profile(actor: Actor, change: Change, may: bool) -> None:
    refused = denial(actor, change)
    assert (refused is None) == may
    assert refused is None or (refused.rule == "NotYours" and actor.email in refused.message)


ROLES = ("Viewer", "Editor", "Owner")
SCOPES = st.frozensets(st.sampled_from("abc")).map(lambda scope: scope or None)
GRANTS = st.builds(Grant, st.sampled_from(ROLES), SCOPES)


@law(100)
@given(st.lists(GRANTS, max_size=2), GRANTS)
def test_no_key_makes_a_key_that_may_more(carried: list[Grant], wanted: Grant) -> None:
    """B7: whoever steals one has no more by making another."""
    person_ = Actor("bo@example.com", owns=frozenset("ab"), member_of=frozenset("abc"))
    before = caller_of(person_, "bo", carried, "abc")
    made = key(role=wanted.role, slices=tuple(sorted(wanted.slices or ())))
    if denial(before.actor, Change(KEY, "create", None, made)) is not None:
        return
    after = caller_of(person_, "bo", [wanted], "abc")
    assert after.actor.owns <= before.actor.owns
    assert after.actor.member_of <= before.actor.member_of
    assert before.sees is None or (after.sees is not None and after.sees <= before.sees)


def test_an_admins_address_in_a_slice_opens_no_more_than_that_slice(tmp_path: Path) -> None:
    """B7: the owner of a slice lists a stranger's key beside an admin's address."""
    land = Land.begun(tmp_path)
    gate = land.gate()
    land.admit(gate)
    as_ada = {"email": "ada@example.com", "keys": person("eve")["keys"]}
    members = [person("bo", account=13), as_ada]
    owners = [person("olga", account=12)]
    text = slice_("a", members=members, owners=owners, quota={"gpus": 16})
    land.pushed(land.commit({"slices/a/slice.yaml": text}, "olga", land.at))
    assert not land.admit(gate).held
    files = {
        "keys/all.yaml": key_of("all", "ada", "Owner", ()),
        "keys/high.yaml": key_of("high", "ada", "Owner", ("a",)),
        "keys/low.yaml": key_of("low", "ada", "Editor", ("a",)),
        "people/ada.yaml": profile_of("ada", "ada", []),
    }
    land.pushed(land.commit(files, "eve", land.at))
    held = rules(land.admit(gate))
    assert held == dict.fromkeys(("keys/all.yaml", "keys/high.yaml", "people/ada.yaml"), "NotYours")
