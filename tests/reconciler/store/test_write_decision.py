"""What a writer decides and what its commits say, without any store (design section 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.git.git_objects import blob_oid
from reconciler.store.trailers import Epoch, Stamp, message, parse_stamp, parse_trailers
from reconciler.store.write_decision import changed, postponed_until
from tests.support import repos

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
INTENT = "1" * 40


def test_only_what_differs_is_kept():
    files = {"a": blob_oid(b"1"), "b": blob_oid(b"2")}
    kept, oids = changed(files, {"a": b"1", "b": None, "c": b"3", "never/was": None})
    assert kept == {"b": None, "c": b"3"}
    assert oids == {"b": None, "c": blob_oid(b"3")}


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(1, 6))
def test_no_minute_ever_has_more_pushes_than_the_budget(offsets, budget):
    pushes: list[datetime] = []
    for offset in sorted(offsets):
        now = NOW + timedelta(seconds=offset)
        until = postponed_until(pushes, now, budget)
        if until is None:
            pushes.append(now)
        else:
            assert until > now
            assert postponed_until(pushes, until, budget) is None
    for start in pushes:
        assert sum(start <= at < start + MINUTE for at in pushes) <= budget


STAMPS = st.builds(
    Stamp,
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,30}", fullmatch=True),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.none() | st.just(INTENT),
    st.none() | st.builds(Epoch, st.just(NOW), st.integers(0, 10**6), st.integers(0, 10**12)),
)


@given(STAMPS, st.text())
def test_a_stamp_is_read_back_whatever_the_summary_says(stamp, summary):
    assert parse_stamp(parse_trailers(message(summary, stamp))) == stamp


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Writer: w\nTerm: 1\nSeq: 1", id="a subject is no trailer"),
        pytest.param("S\n\nWriter: w\nTerm: 1\nSeq: 1\n\nSigned off", id="trailers end the message"),
        pytest.param("S\n\nWriter: w\nTerm: -1\nSeq: 1", id="a term counts"),
        pytest.param("S\n\nWriter: w\nTerm: 1", id="all three are needed"),
        pytest.param("S\n\nWriter: \nTerm: 1\nSeq: 1", id="a writer has a name"),
        pytest.param("S\n\nWriter: w\nTerm: ¹\nSeq: 1", id="digits are plain"),
    ],
)
def test_what_is_no_stamp(text):
    assert parse_stamp(parse_trailers(text)) is None


def test_blob_ids_are_gits_own(remote):
    assert blob_oid(b"kind: Project\n") == repos.git(remote, "rev-parse", "main:project.yaml")
