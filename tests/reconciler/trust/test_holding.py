"""What is told of held changes, once; and how the status branch keeps thousands of them. Issue section 1."""

from __future__ import annotations

from reconciler.approvals.held_changes import MOST_TOLD, held_problems, told
from reconciler.model.events import EventReason
from reconciler.status.parse import OWN_BYTES
from reconciler.status.render import MAX_HELD, trust_files
from schemas.documents.base import Metadata
from schemas.status.judgements import HeldChange, TrustRecord
from tests.support.readback import facts_from
from tests.support.world import START, gpr_path


def record(*paths: str, main: str = "1" * 40, **other: str) -> TrustRecord:
    held = tuple(
        HeldChange(path=p, authorised=None, found="2" * 40, commit=other.get("commit", "3" * 40), rule="NotAMember",
                   message=f"{p}: no", since=START)
        for p in sorted(paths)
    )  # fmt: skip
    return TrustRecord(metadata=Metadata(name="trust"), main=main, held=held)


def reasons(before: TrustRecord | None, after: TrustRecord | None) -> list[tuple[str, str, str]]:
    return [(str(e.reason), e.request, e.slice) for e in told(before, after, START)]


def test_a_hold_is_told_when_it_begins_and_when_it_ends() -> None:
    path = gpr_path("a/x")
    assert reasons(None, None) == []
    assert reasons(None, record()) == [(str(EventReason.TRUST_BEGAN), "", "")]
    assert reasons(record(), record(path)) == [("ChangeNotAuthorised", "a/x", "")]
    assert reasons(record(path), record(path, main="4" * 40)) == []
    assert reasons(record(path), record(path, commit="5" * 40)) == [("ChangeNotAuthorised", "a/x", "")]
    assert reasons(record(path), record()) == [("ChangeAuthorised", "a/x", "")]
    assert reasons(record(), record("slices/b/slice.yaml")) == [("ChangeNotAuthorised", "", "b")]
    assert reasons(record(), record("project.yaml")) == [("ChangeNotAuthorised", "", "")]


def test_a_flood_is_cut_short() -> None:
    flood = record(*(gpr_path(f"a/x{n}") for n in range(300)))
    assert len(told(record(), flood, START)) == MOST_TOLD + 1
    assert len(held_problems(flood)) == 300


def test_thousands_of_holds_come_back_from_the_branch() -> None:
    """A path can be 152 characters long, an address and a sentence as much again."""
    name = "x" * 58
    flood = record(*(gpr_path(f"{name}/{name}{n:05}") for n in range(MAX_HELD * 6 + 1)))
    files = trust_files(flood)
    assert len(files) == 7
    assert max(map(len, files.values())) < OWN_BYTES
    assert facts_from(files, START, "").trust == flood
    assert facts_from(trust_files(record()), START, "").trust == record()
    assert facts_from({}, START, "").trust is None
