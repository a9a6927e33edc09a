"""Whose words count, cycle after cycle: signatures are checked once, everything else every time (D8, E5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.approvals.who_approved import MOST_CHECKS, DecisionReader, with_readers_decisions
from reconciler.model.facts import Facts, Filed, Wanted
from reconciler.store.memory_store import MemoryStore
from reconciler.trust.keyring import Keyring
from reconciler.trust.signature_check import SystemVerifier
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.errors import Fault
from schemas.status.gpr_status import ApprovalState, GPRStatus, Phase, Provenance
from schemas.status.judgements import TrustRecord
from tests.support.machinekeys import key, keyring, line
from tests.support.memory_remote import MemoryRemote
from tests.support.world import START, approval, parsed

DIGEST = "sha256:" + "1" * 64
SPEC = RequestSpec(slice="a", nodes=2, duration=timedelta(hours=1))
BEHIND = Provenance(commit="c" * 40, authors=("bo@example.com",))


def written_by(*authors: str) -> Provenance:
    """Written by these."""
    return BEHIND.model_copy(update={"authors": authors})


ADA = line("ada@example.com", "ada")


class Counting:
    """Counts what is really checked."""

    def __init__(self) -> None:
        self.checked = 0

    def key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
        self.checked += 1
        return SystemVerifier().key_of(namespace, message, signature)


def _decision(name: str = "x", by: str = "ada", **spec: object) -> Approval:
    given: dict[str, object] = {"notAfter": "2026-12-01T00:00:00Z", **spec}
    path = f"approvals/a/{name}/ada.yaml"
    unsigned = parsed(path, approval("a", name, DIGEST, **given))  # type: ignore[arg-type]
    assert isinstance(unsigned, Approval)
    signature = key(by).sign(NAMESPACE, statement("default", unsigned))
    signed = parsed(path, approval("a", name, DIGEST, signature=signature, **given))  # type: ignore[arg-type]
    assert isinstance(signed, Approval)
    return signed


def _wanted(*decisions: Approval) -> Wanted:
    project = ProjectSpec.model_validate({"admins": [{"email": "ada@example.com"}]}, strict=False)
    by_key = {f"a/{decision.spec.gpr}": (decision,) for decision in decisions}
    filed = {name: Filed(SPEC, provenance=BEHIND) for name in by_key}
    return Wanted("c", project, {}, {}, filed, by_key, {})


def _reader(
    verifier: Counting, keys: Callable[[], Keyring] = lambda: keyring(ADA), level: str = "signature"
) -> DecisionReader:
    return DecisionReader(level, MemoryStore(MemoryRemote()), keys, verifier)  # type: ignore[arg-type]


def _heard(
    reader: DecisionReader, wanted: Wanted, now: datetime = START, facts: Facts | None = None
) -> list[str]:
    found = reader.hear(wanted, facts or Facts(now), now)
    return [f"{decision.by} {decision.how}" for decision in found.decisions.get("a/x", ())]


def test_a_signature_is_checked_once() -> None:
    verifier, wanted = Counting(), _wanted(_decision())
    reader = _reader(verifier)
    first = reader.hear(wanted, Facts(START), START)
    later = [reader.hear(wanted, Facts(START), START + timedelta(hours=n)) for n in range(20)]
    assert [decision.how for decision in first.decisions["a/x"]] == ["signed"]
    assert all(found is first for found in later)  # so that nothing is rendered anew
    assert verifier.checked == 1


def test_a_key_that_is_revoked_counts_no_more_in_the_next_cycle() -> None:
    revoked: list[str] = []
    reader = _reader(Counting(), lambda: keyring(ADA, revoked=tuple(revoked)))
    wanted = _wanted(_decision())
    assert _heard(reader, wanted) == ["ada signed"]
    revoked.append("ada")
    assert _heard(reader, wanted) == []
    ignored_decisions = reader.hear(wanted, Facts(START), START).ignored_decisions
    assert ignored_decisions == {
        "a/x": (
            "the approval of ada does not count: it is signed with a key that is not registered for ada@example.com",
        )
    }


def test_a_word_is_over_at_its_end() -> None:
    reader, wanted = _reader(Counting()), _wanted(_decision(notAfter="2026-11-21T09:00:00Z"))
    assert _heard(reader, wanted, START + timedelta(minutes=59)) == ["ada signed"]
    assert _heard(reader, wanted, START + timedelta(minutes=60)) == []


def test_while_the_keys_cannot_be_read_no_word_counts() -> None:
    """The line that cannot be read may be the one that revokes."""
    broken: list[bool] = []

    def keys() -> Keyring:
        if broken:
            raise Fault("trust folder: allowed_signers:3: no key", "BadTrustFolder")
        return keyring(ADA)

    reader, wanted = _reader(Counting(), keys), _wanted(_decision())
    assert _heard(reader, wanted) == ["ada signed"]
    broken.append(True)
    assert _heard(reader, wanted) == []
    assert "allowed_signers:3" in reader.hear(wanted, Facts(START), START).ignored_decisions["a/x"][0]


def test_junk_that_claims_an_admins_key_does_not_keep_the_controller_busy() -> None:
    """So many signatures a cycle, the rest in the next; what claims another key is not checked at all."""
    verifier = Counting()
    junk = [_decision(f"j{n}").model_copy(deep=True) for n in range(MOST_CHECKS + 20)]
    decisions = [w.model_copy(update={"spec": w.spec.model_copy(update={"reason": "other"})}) for w in junk]
    reader = _reader(verifier)
    wanted = _wanted(*decisions, *(_decision(f"e{n}", "eve") for n in range(50)))
    reader.hear(wanted, Facts(START), START)
    assert verifier.checked == MOST_CHECKS
    reader.hear(wanted, Facts(START), START)
    assert verifier.checked == MOST_CHECKS + 20


def test_a_machine_in_trouble_is_asked_again() -> None:
    class Troubled(Counting):
        def key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
            found = super().key_of(namespace, message, signature)
            if self.checked == 1:
                raise Fault("no memory left", "GpgFailed")
            return found

    reader, wanted = _reader(Troubled()), _wanted(_decision())
    assert _heard(reader, wanted) == []
    assert _heard(reader, wanted) == ["ada signed"]


@pytest.mark.parametrize(
    ("behind", "want"),
    [
        pytest.param(BEHIND, ["ada signed"], id="somebody else wrote it"),
        pytest.param(None, [], id="nobody knows who wrote it"),
        pytest.param(written_by("ada@example.com"), [], id="the admin wrote it"),
        pytest.param(written_by("Ada@Example.com"), [], id="the admin wrote it, in capitals"),
        pytest.param(written_by("ada@example.com", "bo@example.com"), [], id="the admin wrote a part"),
    ],
)
def test_nobody_approves_their_own_request(behind: Provenance | None, want: list[str]) -> None:
    wanted = _wanted(_decision())
    wanted = replace(wanted, filed={"a/x": Filed(SPEC, provenance=behind)})
    assert _heard(_reader(Counting()), wanted) == want
    allowed = wanted.project.model_copy(
        update={"approval": wanted.project.approval.model_copy(update={"own_requests": True})}
    )
    assert _heard(_reader(Counting()), replace(wanted, project=allowed)) == ["ada signed"]


def test_where_nothing_is_verified_the_name_of_a_file_is_enough() -> None:
    """As in every release before; and readers go by that, too."""
    decision = parsed("approvals/a/x/ada.yaml", approval("a", "x", DIGEST))
    other = parsed("approvals/a/y/bo.yaml", approval("a", "y", DIGEST, by="bo"))
    assert isinstance(decision, Approval)
    assert isinstance(other, Approval)
    wanted = _wanted(decision, other)
    found = _reader(Counting(), level="none").hear(wanted, Facts(START), START)
    assert {name: [w.how for w in decisions] for name, decisions in found.decisions.items()} == {
        "a/x": ["file"],
        "a/y": [],
    }
    assert with_readers_decisions(wanted, Facts(START)).decisions == found.decisions


def test_readers_without_keys_go_by_what_the_controller_found() -> None:
    """An unsigned file is not shown as an approval where it is none."""
    state = ApprovalState(decision="approve", by="ada, grace-h", how="signed", ids=("sha256:1", "sha256:2"))
    status = GPRStatus(
        phase=Phase.QUEUED,
        uid="gpr-00000000-0000",
        filed_at=START,
        accepted_spec=SPEC,
        spec_digest=DIGEST,
        approval=state,
    )
    trust = TrustRecord.model_validate({"metadata": {"name": "trust"}, "main": "c" * 40}, strict=False)
    wanted = _wanted(_decision(), _decision("y"))
    found = with_readers_decisions(wanted, Facts(START, requests={"a/x": status}, trust=trust))
    assert {name: [w.by for w in decisions] for name, decisions in found.decisions.items()} == {
        "a/x": ["ada", "grace-h"]
    }


def test_readers_without_keys_are_told_why_a_word_does_not_count() -> None:
    """The controller's own sentence, as long as nothing else changed."""
    said = (
        "QuotaExceeded: an admin approves it; the approval of ada does not count: it is not signed; sign it"
    )
    status = GPRStatus(
        phase=Phase.PENDING_APPROVAL,
        reason="NeedsApproval",
        message=said,
        uid="gpr-00000000-0000",
        filed_at=START,
        accepted_spec=SPEC,
        spec_digest=DIGEST,
    )
    trust = TrustRecord.model_validate({"metadata": {"name": "trust"}, "main": "c" * 40}, strict=False)
    found = with_readers_decisions(_wanted(_decision()), Facts(START, requests={"a/x": status}, trust=trust))
    assert found.ignored_decisions == {"a/x": (said.partition("; ")[2],)}
