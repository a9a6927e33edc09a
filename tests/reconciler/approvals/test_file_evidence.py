"""Who stands behind a request's file, as its status says it: nobody approves their own request."""

from __future__ import annotations

import pytest

from reconciler.approvals.file_evidence import with_evidence
from reconciler.model.facts import Filed
from schemas.status.gpr_status import GPRStatus, Provenance
from tests.reconciler.documents.test_held_edits import hold
from tests.support.world import START, World, gpr, gpr_path


def provenance(commit: str, *authors: str, merged_by: str | None = None) -> Provenance:
    return Provenance(commit=commit, authors=authors, merged_by=merged_by)


@pytest.fixture(scope="module")
def status() -> GPRStatus:
    world = World()
    world.commit({gpr_path("a/x"): gpr("a", "x")})
    world.run(START)
    return world.status("a/x")


OLD = provenance("1", "bo", merged_by="ada")


@pytest.mark.parametrize(
    ("before", "found", "is_same", "want"),
    [
        pytest.param(None, None, True, None, id="nothing is verified"),
        pytest.param(None, provenance("1", "bo"), True, provenance("1", "bo"), id="the first who wrote it"),
        pytest.param(OLD, None, True, OLD, id="nothing new"),
        pytest.param(OLD, OLD, True, OLD, id="the same again"),
        pytest.param(
            OLD,
            provenance("2", "cy"),
            True,
            provenance("2", "bo", "cy", merged_by="ada"),
            id="a colleague's comment makes nobody a stranger, and takes no merge back",
        ),
        pytest.param(
            OLD,
            provenance("2", "cy"),
            False,
            provenance("2", "bo", "cy"),
            id="a merge speaks for what it brought alone",
        ),
        pytest.param(OLD, None, False, provenance("1", "bo"), id="a template that changed ends it too"),
        pytest.param(
            OLD,
            provenance("2", "cy", merged_by="eva"),
            False,
            provenance("2", "bo", "cy", merged_by="eva"),
            id="another merge",
        ),
    ],
)
def test_provenance(
    status: GPRStatus,
    before: Provenance | None,
    found: Provenance | None,
    is_same: bool,
    want: Provenance | None,
) -> None:
    old = status.model_copy(update={"provenance": before})
    after = old if is_same else old.model_copy(update={"spec_digest": "sha256:" + "0" * 64})
    filed = Filed(after.accepted_spec, provenance=found)
    assert with_evidence(old, after, filed, START).provenance == want


def test_a_merge_of_a_file_that_does_not_read_speaks_for_nothing(status: GPRStatus) -> None:
    filed = Filed(None, "it does not read", provenance("2", "bo", merged_by="ada"))
    assert with_evidence(status, status, filed, START).provenance is None


def test_a_merge_of_what_is_not_accepted_speaks_for_nothing(status: GPRStatus) -> None:
    """The terms of a lease stand while it runs, whatever its file says."""
    other = status.accepted_spec.model_copy(update={"nodes": 100})
    filed = Filed(other, provenance=provenance("2", "bo", merged_by="ada"))
    assert with_evidence(status, status, filed, START).provenance == provenance("2", "bo")


def test_what_is_held_is_a_condition_as_long_as_it_is(status: GPRStatus) -> None:
    filed = Filed(status.accepted_spec, held=hold("x", "1", "2"))
    noted = with_evidence(status, status, filed, START)
    assert [(c.type, c.reason, c.message) for c in noted.conditions] == [("ChangeNotAuthorised", "R", "m")]
    assert with_evidence(noted, noted, Filed(status.accepted_spec), START).conditions == ()
