"""The plan as text is that of its rows: whatever they hold, and whenever it is asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from portal.views.plan_text import PlanText, row_text
from reconciler.queries.schedule import Row
from schemas.status.gpr_status import Phase
from schemas.status.insights import Forecast

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
INSTANTS = st.none() | st.integers(-7200, 7200).map(lambda s: NOW + timedelta(seconds=s))
FORECAST = Forecast(p10=NOW, p50=NOW + timedelta(hours=1), p90=NOW + timedelta(hours=2), learnt_from=9)
ROWS = st.builds(
    Row,
    key=st.sampled_from(["vision/a", "nlp/b"]),
    phase=st.sampled_from(Phase),
    rank=st.none() | st.integers(1, 9),
    start=INSTANTS,
    end=INSTANTS,
    pool=st.none() | st.just(("east", "a")),
    nodes=st.none() | st.just(("a-1", "a-2")),
    reason=st.none() | st.text(max_size=5) | st.just('"requests":[]'),
    forecast=st.none() | st.just(FORECAST),
)


@given(ROWS, st.integers(-9000, 9000))
def test_a_row_is_the_text_of_its_fields_at_any_time(row: Row, late_s: int) -> None:
    now = NOW + timedelta(seconds=late_s)
    assert row_text("gpr-1", row, NOW).at(now) == to_json({"gprId": "gpr-1", **row.json(now)}).decode()


@given(st.lists(ROWS), st.integers(0, 9000))
def test_time_alone_does_not_change_the_digest(rows: list[Row], late_s: int) -> None:
    earlier = PlanText("c", tuple(row_text("gpr-1", row, NOW) for row in rows), [])
    later = PlanText("c", tuple(row_text("gpr-1", row, NOW + timedelta(seconds=late_s)) for row in rows), [])
    assert earlier.digest() == later.digest()
    assert len(json.loads(later.requests(NOW))) == len(rows)
