"""How a change goes to main: straight, by somebody's merge, or not at all (B7, D15)."""

from __future__ import annotations

from typing import Any

import pytest

from portal.http.errors import ApiError
from portal.identity.callers import Caller, Grant, caller_of
from portal.writes.permission import goes
from portal.writes.write_request import WriteRequest
from reconciler.model.evidence import Actor
from schemas.documents.project import Project, ProjectSpec
from tests.support.world import gpr, gpr_path, parsed, project, slice_

BO = Actor("bo@example.com", member_of=frozenset({"a"}))
OLGA = Actor("olga@example.com", owns=frozenset({"a"}), member_of=frozenset({"a"}))
ADA = Actor("ada@example.com", is_admin=True, handle="ada")
REQUEST = {gpr_path("a/x"): gpr("a", "x").encode()}
QUOTA = {"slices/a/slice.yaml": slice_("a", quota={"gpus": 9}).encode()}
PULLS, PUSHES = {"changes": "pull-request"}, {}  # type: ignore[var-annotated]


def caller(person: Actor, role: Any = "Owner") -> Caller:
    """By a key of that role."""
    return caller_of(person, person.email, [Grant(role)], {"a", "b"})


def spec(**fields: Any) -> ProjectSpec:
    """A project's."""
    document = parsed("project.yaml", project(**fields))
    assert isinstance(document, Project)
    return document.spec


def way(who: Caller, changes: dict[str, bytes], rules: dict[str, Any], **more: bool) -> str:
    """Where it goes, or the status of the refusal."""
    write = WriteRequest(who, "A change", lambda _view, _tree: changes, **more)
    try:
        return goes(write, changes, {"slices/a/slice.yaml": slice_("a").encode()}.get, spec(**rules))
    except ApiError as error:
        return str(int(error.status))


CASES = {
    "a member files a request": (caller(BO), REQUEST, PUSHES, {}, "push"),
    "a Viewer's key files nothing": (caller(BO, "Viewer"), REQUEST, PUSHES, {}, "403"),
    "nobody files in another slice": (
        caller(BO),
        {gpr_path("b/x"): gpr("b", "x").encode()},
        PUSHES,
        {},
        "403",
    ),
    "a project that wants pull requests gets them": (caller(BO), REQUEST, PULLS, {}, "propose"),
    "what must not wait does not": (caller(BO), REQUEST, PULLS, {"must_push": True}, "push"),
    "whoever asks an admin does so": (caller(ADA), QUOTA, PUSHES, {"asks": True}, "propose"),
    "an owner's wish for quota is an admin's to merge": (caller(OLGA), QUOTA, PUSHES, {}, "propose"),
    "also where it must not wait": (caller(OLGA), QUOTA, PUSHES, {"must_push": True}, "propose"),
    "a member's is nobody's": (caller(BO), QUOTA, PUSHES, {}, "403"),
    "an admin sets quota": (caller(ADA), QUOTA, PUSHES, {}, "push"),
    "an admin's Editor key does not": (caller(ADA, "Editor"), QUOTA, PUSHES, {}, "403"),
    "a file that is no document is not written": (caller(ADA), {"x.sh": b""}, PUSHES, {}, "422"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_ways(case: tuple[Caller, dict[str, bytes], dict[str, Any], dict[str, bool], str]) -> None:
    who, changes, rules, more, wanted = case
    assert way(who, changes, rules, **more) == wanted
