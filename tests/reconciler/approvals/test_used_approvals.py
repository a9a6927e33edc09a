"""Which statements never count again (D9: replay), as a table of what became of their request."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from reconciler.approvals.used_approvals import MOST_SPENT, REMEMBERED, is_live, spent_after
from reconciler.model.facts import Facts, Wanted
from schemas.documents.approval import Approval, statement_id
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.status.gpr_status import ApprovalState, GPRStatus, Phase
from schemas.status.judgements import SpentApproval
from tests.support.world import START, approval, parsed

DIGEST = "sha256:" + "1" * 64
KEY = "a/x"
END = START + timedelta(days=3)


def _filed() -> Approval:
    text = approval("a", "x", DIGEST, notAfter="2026-11-24T08:00:00Z")
    word = parsed("approvals/a/x/ada.yaml", text)
    assert isinstance(word, Approval)
    return word


WORD = _filed()
ID = statement_id("default", WORD)
MERGE = "merge:c0ffee:a/x"
How = Literal["file", "signed", "forge", "merge"]


def _status(
    phase: Phase, *ids: str, how: How | None = "signed", decision: Literal["approve", "reject"] = "approve"
) -> GPRStatus:
    return GPRStatus(
        phase=phase,
        uid="gpr-00000000-0000",
        filed_at=START,
        accepted_spec=RequestSpec(slice="a", nodes=2, duration=timedelta(hours=1)),
        spec_digest=DIGEST,
        approval=ApprovalState(decision=decision, by="ada", how=how, ids=ids),
    )


def _wanted(*words: Approval) -> Wanted:
    admins = ProjectSpec.model_validate({"admins": [{"email": "ada@example.com"}]}, strict=False)
    return Wanted("c", admins, {}, {}, {}, {KEY: words}, {})


WAITS, STARTS = _status(Phase.QUEUED, ID), _status(Phase.PROVISIONING, ID)
THERE, GONE = (WORD,), ()


@pytest.mark.parametrize(
    ("before", "after", "words", "why"),
    [
        pytest.param(WAITS, STARTS, THERE, "consumed", id="its request starts"),
        pytest.param(
            WAITS, _status(Phase.PROVISIONING, MERGE, how="merge"), THERE, "consumed", id="a merge is used up"
        ),
        pytest.param(WAITS, _status(Phase.PENDING_APPROVAL), GONE, "withdrawn", id="its file went"),
        pytest.param(WAITS, _status(Phase.PENDING_APPROVAL), THERE, None, id="its key was revoked, say"),
        pytest.param(
            _status(Phase.QUEUED, MERGE, how="merge"),
            _status(Phase.PENDING_APPROVAL),
            GONE,
            None,
            id="a forge that is silent takes nothing back",
        ),
        pytest.param(WAITS, None, THERE, "withdrawn", id="its request went"),
        pytest.param(WAITS, _status(Phase.CANCELLED, ID), THERE, "withdrawn", id="its request was cancelled"),
        pytest.param(STARTS, _status(Phase.QUEUED, ID), THERE, None, id="its request is queued again"),
        pytest.param(
            WAITS,
            _status(Phase.REJECTED, "sha256:other", decision="reject"),
            THERE,
            "withdrawn",
            id="somebody else rejected its request",
        ),
        pytest.param(
            _status(Phase.PENDING_APPROVAL, ID, how="signed"),
            _status(Phase.REJECTED, ID, decision="reject"),
            THERE,
            None,
            id="a rejection stands as long as its file does",
        ),
        pytest.param(
            _status(Phase.REJECTED, ID, decision="reject"), None, GONE, "withdrawn", id="a rejection went"
        ),
        pytest.param(
            _status(Phase.REJECTED, ID, decision="reject"), None, THERE, None, id="a rejection outlives"
        ),
        pytest.param(
            _status(Phase.QUEUED, ID, how="file"),
            _status(Phase.PROVISIONING, ID, how="file"),
            THERE,
            None,
            id="where nothing is verified nothing is spent",
        ),
    ],
)
def test_what_becomes_of_a_statement(
    before: GPRStatus, after: GPRStatus | None, words: tuple[Approval, ...], why: str | None
) -> None:
    facts = Facts(START, requests={KEY: before})
    requests = {} if after is None else {KEY: after}
    rows = spent_after(facts, requests, _wanted(*words), START).get("a", ())
    assert [row.why for row in rows] == ([] if why is None else [why])


def test_a_row_lasts_as_long_as_its_statement_would_have() -> None:
    """Then it goes by itself; one whose end is not known any more is remembered longer than any counts."""
    known = spent_after(Facts(START, requests={KEY: WAITS}), {KEY: STARTS}, _wanted(WORD), START)
    assert [row.until for row in known["a"]] == [END]
    after = Facts(START, requests={KEY: STARTS}, used_approvals=known)
    assert spent_after(after, {KEY: STARTS}, _wanted(WORD), END - timedelta(seconds=1)) is known
    assert spent_after(after, {KEY: STARTS}, _wanted(WORD), END) == {}
    unknown = spent_after(Facts(START, requests={KEY: WAITS}), {}, _wanted(), START)
    assert [row.until for row in unknown["a"]] == [START + REMEMBERED]


def _facts(*why: Literal["consumed", "withdrawn"], status: GPRStatus | None = None) -> Facts:
    rows = tuple(SpentApproval(id=ID, request=KEY, why=each, until=END) for each in why)
    return Facts(START, requests={} if status is None else {KEY: status}, used_approvals={"a": rows})


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        pytest.param(_facts(), True, id="a new one"),
        pytest.param(_facts("consumed"), False, id="one that was used up by a request before this one"),
        pytest.param(_facts("consumed", status=WAITS), True, id="one that this very request used"),
        pytest.param(_facts("withdrawn", status=WAITS), False, id="one that was taken back"),
        pytest.param(_facts("consumed", status=_status(Phase.QUEUED)), False, id="filed anew"),
    ],
)
def test_a_statement_is_live(facts: Facts, want: bool) -> None:
    assert is_live(ID, KEY, facts) is want


def test_where_no_more_can_be_remembered_nothing_new_counts() -> None:
    row = SpentApproval(id="sha256:0", request=KEY, why="consumed", until=END)
    full = Facts(START, used_approvals={"a": (row,) * MOST_SPENT})
    assert not is_live(ID, KEY, full)
    assert is_live(ID, KEY, replace(full, requests={KEY: WAITS}))
    assert is_live(ID, "b/x", full)
