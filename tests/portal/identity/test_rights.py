"""Who is refused what, and how it is said (B7): what one may not see is not there, what one may not do says who may."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.http.errors import ApiError
from portal.identity.callers import Grant, caller_of
from portal.identity.rights import check_admin, check_member, check_owner, seen_slice
from portal.views.view import View
from reconciler.model.evidence import Actor
from reconciler.model.facts import Facts, Wanted
from reconciler.trust.authority import Authority
from schemas.documents.base import Person
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
BO = Person(email="bo@example.com")
VISION = SliceSpec(members=(BO,), clusters=("east",), namespaces=("vision",))
WANTED = Wanted("c", ProjectSpec(admins=(BO,)), {}, {"vision": VISION, "nlp": VISION}, {}, {}, {})
VIEW = View("c", "", Facts(NOW), WANTED, Authority(), NOW)
MEMBER = Actor("bo@example.com", member_of=frozenset({"vision"}))
OWNER = Actor("olga@example.com", owns=frozenset({"vision"}), member_of=frozenset({"vision"}))
ADMIN = Actor("ada@example.com", is_admin=True)


def caller(person, role="Owner", slices=None, key=""):
    """Somebody with that role."""
    return caller_of(person, person.email, [Grant(role, slices)], WANTED.slices, key=key)


def status(call, *given):
    """With which status it is refused; 200: it is not."""
    try:
        call(*given)
    except ApiError as error:
        return error.status.value
    return 200


@pytest.mark.parametrize(
    ("who", "want"),
    [
        pytest.param(caller(ADMIN), (200, 200, 200, 200), id="an admin may all"),
        pytest.param(caller(ADMIN, "Editor"), (200, 403, 403, 200), id="an admin's Editor is a member"),
        pytest.param(caller(ADMIN, "Viewer"), (200, 403, 403, 403), id="an admin's Viewer reads"),
        pytest.param(caller(ADMIN, "Owner", frozenset({"nlp"})), (404, 403, 403, 403), id="out of scope"),
        pytest.param(caller(OWNER), (200, 403, 200, 200), id="an owner"),
        pytest.param(caller(OWNER, "Editor"), (200, 403, 403, 200), id="an owner's Editor owns nothing"),
        pytest.param(caller(MEMBER), (200, 403, 403, 200), id="a member"),
        pytest.param(caller(MEMBER, "Viewer"), (200, 403, 403, 403), id="a member's Viewer"),
        pytest.param(caller(Actor("eve@example.com")), (404, 403, 403, 403), id="nobody's member"),
    ],
)
def test_who_may(who, want):
    found = (
        status(seen_slice, VIEW, who, "vision"),
        status(check_admin, who, "do this"),
        status(check_owner, who, "vision", "do this"),
        status(check_member, who, "vision", "do this"),
    )
    assert found == want


def test_a_slice_that_one_may_not_see_and_one_that_is_not_there_sound_the_same():
    bo = caller(MEMBER)
    told = []
    for name in ("nlp", "none"):
        with pytest.raises(ApiError) as caught:
            seen_slice(VIEW, bo, name)
        told.append(str(caught.value).replace(name, "X"))
    assert told[0] == told[1]


def test_the_sentence_says_who_may_and_what_the_caller_has():
    with pytest.raises(ApiError) as caught:
        check_admin(caller(ADMIN, "Viewer", key="ada-viewer"), "make templates")
    assert str(caught.value) == (
        "only admins make templates; you are ada@example.com with the key ada-viewer of role Viewer"
    )
