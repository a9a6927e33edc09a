"""A record's text, written from its values at once, is that of its plain data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from reconciler.status.record_text import plain_data, record_text, without_empty
from schemas.documents.base import Document, Metadata, Model
from schemas.documents.gpr import ModelInfo, Network, RequestSpec
from schemas.reading.units import Duration, Instant
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import Assignment, Charge, Condition, GPRRecord, GPRStatus, Phase

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TEXTS = st.text(max_size=6) | st.sampled_from(["", "no", "1:30", "a b", "bell\x07", "- a", "déjà"])
INSTANTS = st.integers(0, 10**6).map(lambda s: NOW + timedelta(seconds=s))
DURATIONS = st.integers(0, 10**5).map(lambda m: timedelta(minutes=m))
MANY = st.lists(TEXTS, max_size=3).map(tuple)
SPECS = st.builds(
    RequestSpec.model_construct,
    slice=TEXTS,
    display_name=st.none() | TEXTS,
    nodes=st.integers(1, 9),
    gpu_shapes=MANY,
    clusters=MANY,
    duration=DURATIONS,
    not_before=st.none() | INSTANTS,
    network=st.builds(Network, rdma=st.booleans()),
    model=st.builds(
        ModelInfo.model_construct, name=TEXTS, parameters=st.dictionaries(TEXTS, TEXTS, max_size=3)
    ),
    max_wait=st.none() | DURATIONS,
)
CONDITIONS = st.builds(Condition.model_construct, type=TEXTS, reason=TEXTS, message=TEXTS, at=INSTANTS)
STATUSES = st.builds(
    GPRStatus.model_construct,
    phase=st.sampled_from(Phase),
    uid=TEXTS,
    filed_at=INSTANTS,
    reason=st.none() | TEXTS,
    estimated_start_time=st.none() | INSTANTS,
    assignment=st.none() | st.just(Assignment(cluster="east", pool="a", nodes=("n-1", "n-2"))),
    charge=st.none() | st.just(Charge(gpu_hours=1.5, barred=("east/a",))),
    conditions=st.lists(CONDITIONS, max_size=2).map(tuple),
    accepted_spec=SPECS,
    spec_digest=TEXTS,
)


def slowly(content: BaseModel) -> str:
    """The text by way of plain data."""
    return dump(without_empty(plain_data(content)))


@given(STATUSES)
def test_a_request_is_written_as_its_plain_data(status: GPRStatus) -> None:
    record = GPRRecord(metadata=Metadata(name="x"), status=status)
    assert record_text(record) == slowly(record)


class Part(Model):
    """Nothing but what may be empty."""

    text: str = ""
    names: tuple[str, ...] = ()
    more: Annotated[dict[str, Any], Field(default_factory=dict)]


class Odd(Document):
    """One field of each sort."""

    kind: str = "Odd"
    part: Part = Part()
    parts: tuple[Part, ...] = ()
    number: float | None = None
    at: Annotated[Instant, "a note"] = NOW
    times: Annotated[dict[str, Instant], Field(default_factory=dict)]
    lasting: tuple[Duration, ...] = ()
    deep: Annotated[dict[str, dict[str, int | None]], Field(default_factory=dict)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"part": Part(names=("", "a"))},
        {"part": Part(more={"x": None, "y": [], "z": [None, [], 0, False, {"a": ""}]})},
        {"parts": (Part(), Part(text="b\x00"), Part(more={"k" * 300: [1]}))},
        {"number": 1e-7},
        {"number": 0.0},
        {"times": {"no": NOW}, "lasting": (timedelta(), timedelta(hours=5))},
        {"deep": {"a": {"b": None}, "c": {"d": 0}}},
    ],
)
def test_odd_fields_are_written_as_their_plain_data(fields: dict[str, Any]) -> None:
    odd = Odd(metadata=Metadata(name="x"), **fields)
    assert record_text(odd) == slowly(odd)
