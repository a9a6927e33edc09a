"""Records and filings are dictionaries to whoever asks, and tell what changed without reading what is over (D17)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Filed
from reconciler.model.request_files import Filings, UnreadFile, raw, read_filings, with_filed
from reconciler.model.statuses import Records, UnreadRecord, changed, holders, live, records
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import HOLDING, TERMINAL, GPRStatus, Phase

AT = datetime(2026, 11, 21, tzinfo=UTC)
SPEC = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
KEYS = st.sampled_from([f"a/{name}" for name in "abcdef"])


def status(phase: Phase, uid: str = "gpr-1") -> GPRStatus:
    return GPRStatus(phase=phase, uid=uid, filed_at=AT, accepted_spec=SPEC, spec_digest="sha256:0")


STEPS = st.lists(st.tuples(KEYS, st.none() | st.builds(status, st.sampled_from(Phase))), max_size=30)


@given(STEPS)
def test_records_are_a_dictionary_whatever_is_put_and_taken(
    steps: list[tuple[str, GPRStatus | None]],
) -> None:
    plain: dict[str, GPRStatus] = {}
    found = records({})
    for key, put in steps:
        if put is None:
            assert found.pop(key, None) == plain.pop(key, None)
        else:
            plain[key] = found[key] = put
        assert found == plain
        assert plain == found
        assert dict(found) == plain
        assert len(found) == len(plain)
        assert live(found) == {k: s for k, s in plain.items() if s.phase not in TERMINAL}
        assert holders(found) == holders(plain) == {k: s for k, s in plain.items() if s.phase in HOLDING}


@given(STEPS, STEPS)
def test_what_changed_is_told_as_of_dictionaries_and_a_copy_changes_alone(
    before: list[tuple[str, GPRStatus | None]], after: list[tuple[str, GPRStatus | None]]
) -> None:
    first = records({key: put for key, put in before if put is not None})
    kept, held, second = dict(first), dict(first.holders), first.copy()
    for key, put in after:
        if put is None:
            second.pop(key, None)
        else:
            second[key] = put
    assert dict(first) == kept
    assert first.holders == held
    assert second.holders == holders(dict(second))
    assert changed(first, second) == changed(kept, dict(second))
    assert changed(first, second) >= {key for key in {*first, *second} if first.get(key) != second.get(key)}


def test_the_record_of_a_request_that_is_over_is_read_when_somebody_asks_and_once() -> None:
    asked = []

    def read(oid: str) -> GPRStatus:
        asked.append(oid)
        return status(Phase.COMPLETED)

    found = Records({}, {"a/x": UnreadRecord("1" * 40, read)})
    twin = found.copy()
    twin["a/y"] = status(Phase.QUEUED)
    assert changed(found, twin) == {"a/y"}
    assert "a/x" in found
    assert set(found) == {"a/x"}
    assert live(found) == {}
    assert asked == []
    assert found["a/x"] == found.get("a/x") == twin["a/x"] == status(Phase.COMPLETED)
    assert asked == ["1" * 40]


def test_a_request_that_queues_again_leaves_those_that_are_over() -> None:
    found = records({"a/x": status(Phase.FAILED)})
    found["a/x"] = status(Phase.QUEUED)
    assert found.live.keys() == {"a/x"}
    assert found.over == {}
    del found["a/x"]
    assert len(found) == 0
    with pytest.raises(KeyError):
        found["a/x"]


def test_the_file_of_a_request_that_is_over_is_read_when_somebody_asks_and_once() -> None:
    asked = []

    def read() -> Filed:
        asked.append(1)
        return Filed(SPEC)

    refused = Filed(None, "its file is refused")
    found = Filings({"a/x": UnreadFile("1" * 40, read), "a/y": refused})
    assert list(found) == ["a/x", "a/y"]
    assert "a/x" in found
    assert len(found) == 2
    assert list(read_filings(found)) == [("a/y", refused)]
    assert raw(with_filed(found, {"a/z": refused})).keys() == {"a/x", "a/y", "a/z"}
    assert asked == []
    assert found["a/x"] == found.get("a/x") == Filed(SPEC)
    assert asked == [1]
