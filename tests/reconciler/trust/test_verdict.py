"""A change counts when each kind of evidence that is asked for shows somebody who may make it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.evidence import Actor, Voucher
from reconciler.trust.policy import OWNERS_FIELDS, TABLE, Change, denial, is_governed
from reconciler.trust.verdict import Evidence, judge
from schemas.documents.slice import Slice
from schemas.reading.reader import PATHS
from tests.support.world import gpr, gpr_path, parsed, slice_

ADA = Actor("ada@example.com", is_admin=True, handle="ada")
BO = Actor("bo@example.com", member_of=frozenset({"a"}))
CY = Actor("cy@example.com", member_of=frozenset({"b"}))
PATH = gpr_path("a/x")
CHANGE = Change(PATH, "create", None, parsed(PATH, gpr("a", "x")))
WHO = {1: ADA, 2: BO, 3: CY}


def who(voucher: Voucher) -> Actor | None:
    return WHO.get(voucher.account)


def forge(*accounts: int) -> tuple[Voucher, ...]:
    return tuple(Voucher("forge", account=account) for account in accounts)


@pytest.mark.parametrize(
    ("evidence", "rule"),
    [
        pytest.param({"signature": forge(2)}, None, id="a member signed"),
        pytest.param({"signature": forge(3, 2)}, None, id="one of several may"),
        pytest.param({"signature": forge(3)}, "NotAMember", id="somebody else signed"),
        pytest.param({"signature": ()}, "NobodyStandsBehindIt", id="nobody signed"),
        pytest.param({"signature": forge(9)}, "NobodyStandsBehindIt", id="a stranger signed"),
        pytest.param({"signature": forge(2), "forge": forge(1)}, None, id="both say somebody who may"),
        pytest.param(
            {"signature": forge(2), "forge": ()}, "NobodyStandsBehindIt", id="the forge says nobody"
        ),
        pytest.param(
            {"signature": forge(3), "forge": forge(1)}, "NotAMember", id="the signature says somebody else"
        ),
    ],
)
def test_a_change_counts(evidence: Evidence, rule: str | None) -> None:
    found = judge(CHANGE, evidence, who)
    assert (found.denial.rule if found.denial else None) == rule
    assert bool(found.actors) == (rule is None)


@given(st.sets(st.sampled_from([1, 2, 3, 9])), st.sets(st.sampled_from([1, 2, 3, 9])))
def test_more_vouchers_never_take_a_right_away(some: set[int], more: set[int]) -> None:
    before = judge(CHANGE, {"signature": forge(*some)}, who).denial
    after = judge(CHANGE, {"signature": forge(*some, *more)}, who).denial
    assert after is None or before is not None


def test_an_owner_changes_what_the_table_says_and_nothing_else() -> None:
    owner = Actor("olga@example.com", owns=frozenset({"a"}), member_of=frozenset({"a"}))
    old = parsed("slices/a/slice.yaml", slice_("a"))
    assert isinstance(old, Slice)
    free = {name for name in type(old.spec).model_fields if _may_set(owner, old, name)}
    assert free == set(OWNERS_FIELDS)


OTHERWISE: dict[str, object] = {
    "description": "Vision",
    "members": [{"email": "cy@example.com"}],
    "owners": [{"email": "cy@example.com"}],
    "clusters": ["west"],
    "namespaces": ["other"],
    "quota": {"gpus": 1},
    "limits": {"maxNodes": 1},
    "paused": True,
    "queues": {"kueue": True},
    "services": {"across": "mcs"},
    "notifications": [{"name": "chat", "secret": "chat"}],
    "weight": 2.0,
}


def _may_set(owner: Actor, old: Slice, name: str) -> bool:
    other = parsed("slices/a/slice.yaml", slice_("a", **{name: OTHERWISE[name]}))
    return denial(owner, Change("slices/a/slice.yaml", "change", old, other)) is None


def test_every_kind_of_document_has_a_row() -> None:
    assert {row.kind for row in TABLE} == {rule.kind for rule in PATHS} | {""}
    assert all(is_governed(rule.path.replace("<", "").replace(">", "")) for rule in PATHS)
