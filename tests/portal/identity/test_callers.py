"""What a caller may is never more than what the person may, and never more than what the key or the groups carry."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.identity.callers import (
    ALL_OF_ONES_OWN,
    Caller,
    Grant,
    called,
    caller_of,
    grants_of,
    rights_of,
    with_groups,
)
from portal.writes.permission import goes
from portal.writes.write_request import WriteRequest
from reconciler.model.evidence import Actor
from schemas.documents.base import Metadata
from schemas.documents.project import GroupGrant
from schemas.status.judgements import TrustRecord
from tests.support.profile import law
from tests.support.world import gpr, gpr_path

SLICES = ("a", "b", "c")
VERIFIED = TrustRecord(metadata=Metadata(name="trust"), main="0" * 40)

some = st.frozensets(st.sampled_from((*SLICES, "gone")))
roles = st.sampled_from(["Owner", "Editor", "Viewer"])
grants = st.lists(st.builds(Grant, roles, st.none() | some), max_size=3)


@st.composite
def people(draw: st.DrawFn) -> Actor:
    owns = draw(st.frozensets(st.sampled_from(SLICES)))
    is_admin = draw(st.booleans())
    return Actor(
        "bo@example.com",
        is_admin,
        owns,
        owns | draw(st.frozensets(st.sampled_from(SLICES))),
        "bo" if is_admin else "",
        own_in=draw(st.none() | some),
    )


def acts(actor: Actor) -> set[tuple[str, str]]:
    """All that the actor may, spelt out."""
    everywhere = SLICES if actor.is_admin else ()
    found = {("own", s) for s in (*actor.owns, *everywhere)}
    found |= {("work", s) for s in (*actor.member_of, *everywhere)}
    own_in = (*SLICES, "gone") if actor.own_in is None else actor.own_in
    return found | {("key", s) for s in own_in} | ({("admin", "")} if actor.is_admin else set())


def let_through(given_: list[Grant]) -> set[tuple[str, str]]:
    """All that somebody with these grants could do if the person might do everything."""
    found = set[tuple[str, str]]()
    for grant, slice_ in product(given_, (*SLICES, "gone")):
        if grant.covers(slice_):
            found |= {("work", slice_)} if grant.role != "Viewer" else set()
            found |= {("own", slice_), ("key", slice_)} if grant.role == "Owner" else set()
    return found | ({("admin", "")} if Grant("Owner") in given_ else set())


@law(200)
@given(people(), grants)
def test_by_a_key_nobody_may_more_than_the_person_nor_than_the_key(person: Actor, given_: list[Grant]):
    caller = caller_of(person, "Bo", given_, SLICES)
    assert acts(caller.actor) <= acts(person) & let_through(given_)
    assert caller.judged == caller.actor
    assert caller.sees is None or caller.sees <= (set(SLICES) if person.is_admin else person.member_of)
    assert caller.sees is not None or (person.is_admin and any(g.slices is None for g in given_))
    assert caller.actor.handle == ("bo" if caller.is_admin else "")


@law(200)
@given(people(), grants)
def test_groups_add_their_roles_in_their_slices_and_nothing_else(person: Actor, groups: list[Grant]):
    own = caller_of(person, "Bo", ALL_OF_ONES_OWN, SLICES)
    caller = with_groups(own, groups, SLICES, None)
    assert acts(own.actor) == acts(person), "a login carries all that one may"
    more = acts(caller.actor) - acts(own.actor)
    assert more <= {(what, s) for what, s in let_through(groups) if what in ("own", "work") and s in SLICES}
    assert caller.is_admin is person.is_admin, "nobody is an admin by a group"
    assert caller.actor.own_in == person.own_in
    assert caller.judged == caller.actor, "where nothing is verified, groups count as lists do"
    for slice_ in SLICES:
        seen = person.is_admin or slice_ in person.member_of or any(g.covers(slice_) for g in groups)
        assert caller.may_see(slice_) is seen


@law(50)
@given(people(), grants)
def test_where_main_is_verified_groups_count_for_proposals_alone(person: Actor, groups: list[Grant]):
    own = caller_of(person, "Bo", ALL_OF_ONES_OWN, SLICES)
    caller = with_groups(own, groups, SLICES, VERIFIED)
    assert caller.judged == own.actor
    assert caller.actor == with_groups(own, groups, SLICES, None).actor


@law(100)
@given(people(), grants, grants)
def test_what_is_told_of_a_caller_is_what_they_may(person: Actor, given_: list[Grant], groups: list[Grant]):
    caller = with_groups(caller_of(person, "Bo", given_, SLICES), groups, SLICES, None)
    told = rights_of(caller)
    for slice_ in SLICES:
        covering = [grant.role for grant in told if grant.covers(slice_)]
        assert (slice_ in caller.actor.owns or caller.is_admin) is ("Owner" in covering)
        assert (slice_ in caller.actor.member_of or caller.is_admin) is bool(
            {"Owner", "Editor"} & {*covering}
        )
        assert caller.may_see(slice_) is bool(covering) or caller.is_admin


BO = Actor("bo@example.com", owns=frozenset({"a"}), member_of=frozenset({"a", "b"}))
ADA = Actor("ada@example.com", is_admin=True, handle="ada")


def short(caller: Caller) -> tuple[str, str, str, bool]:
    """Owns, works in, sees, is admin."""
    sees = "all" if caller.sees is None else "".join(sorted(caller.sees))
    return (
        "".join(sorted(caller.actor.owns)), "".join(sorted(caller.actor.member_of)), sees, caller.is_admin
    )  # fmt: skip


@pytest.mark.parametrize(
    ("person", "grant", "want"),
    [
        pytest.param(BO, Grant("Owner"), ("a", "ab", "ab", False), id="an Owner's key has all of its person"),
        pytest.param(BO, Grant("Editor"), ("", "ab", "ab", False), id="an Editor's owns nothing"),
        pytest.param(BO, Grant("Viewer"), ("", "", "ab", False), id="a Viewer's reads"),
        pytest.param(BO, Grant("Owner", frozenset({"b", "c"})), ("", "b", "b", False), id="a scope cuts"),
        pytest.param(ADA, Grant("Owner"), ("abc", "abc", "all", True), id="an admin's is an admin"),
        pytest.param(
            ADA, Grant("Owner", frozenset({"a"})), ("a", "a", "a", False), id="in a scope it is none"
        ),
        pytest.param(
            ADA, Grant("Editor"), ("", "abc", "all", False), id="an admin's Editor works everywhere"
        ),
        pytest.param(ADA, Grant("Viewer"), ("", "", "all", False), id="an admin's Viewer sees everything"),
        pytest.param(
            Actor("x@example.com"), Grant("Owner"), ("", "", "", False), id="a stranger's opens nothing"
        ),
    ],
)
def test_a_key(person: Actor, grant: Grant, want: tuple[str, str, str, bool]):
    assert short(caller_of(person, "x", [grant], SLICES)) == want


def test_groups_of_the_project_become_grants():
    rules = [
        GroupGrant(group="team", role="Editor", slices=("a",)),
        GroupGrant(group="audit", role="Viewer"),
        GroupGrant(group="others", role="Owner"),
    ]
    found = grants_of({"team", "audit", "unknown"}, rules)
    assert found == (Grant("Editor", frozenset({"a"})), Grant("Viewer"))
    auditor = with_groups(
        caller_of(Actor("x@example.com"), "x", ALL_OF_ONES_OWN, SLICES), found, SLICES, None
    )
    assert short(auditor) == ("", "a", "all", False)
    assert [replace(r) for r in rights_of(auditor)] == [Grant("Editor", frozenset({"a"})), Grant("Viewer")]


TEAM = [Grant("Editor", frozenset({"a"}))]


@pytest.mark.parametrize(
    ("trust", "slice_", "want"),
    [
        pytest.param(None, "a", "push", id="where nothing is verified it goes to main"),
        pytest.param(VERIFIED, "a", "propose", id="where main is verified somebody merges it"),
        pytest.param(None, "b", "refused", id="in another slice it is refused"),
        pytest.param(
            VERIFIED, "b", "refused", id="in another slice it is refused where main is verified too"
        ),
    ],
)
def test_a_change_that_a_group_alone_lets_somebody_make(trust: TrustRecord | None, slice_: str, want: str):
    own = caller_of(Actor("gus@example.com"), "Gus", ALL_OF_ONES_OWN, SLICES)
    write = WriteRequest(with_groups(own, TEAM, SLICES, trust), "File it", lambda view, tree: {})
    changes = {gpr_path(f"{slice_}/new"): gpr(slice_, "new").encode()}
    try:
        got: str = goes(write, changes, lambda path: None, None)
    except ApiError as error:
        got = "refused" if error.status == 403 else str(error)
    assert got == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("Bo Diddley", "Bo Diddley", id="a name stays"),
        pytest.param(
            "Bo\nOn-Behalf-Of: Ada <ada@example.com>", "Bo On-Behalf-Of: Ada ada@example.com", id="a line"
        ),
        pytest.param(" \t<>\u202e", "bo", id="nothing that prints: the address has a name"),
        pytest.param("x" * 300, "x" * 100, id="a long one is cut"),
    ],
)
def test_a_name_stays_on_one_line_of_a_commit(name: str, want: str):
    assert called(name, "bo@example.com") == want
