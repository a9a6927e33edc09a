"""The fields of a request in a form: what a request says comes back as the same request (D1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from portal.http.errors import ApiError
from portal.pages.user.request_fields import body_of, changes_of, fields_of, minute_of, short
from portal.vendor.gpr_filing import asked
from portal.vendor.gpr_models import GprAsk
from schemas.documents.gpr import GPRSpec, ModelInfo, Network, RequestSpec, resolve

PLAIN = RequestSpec(slice="vision", nodes=2, duration=timedelta(hours=6))
FULL = PLAIN.edited(
    display_name="Llama 70B",
    gpus_per_node=8,
    gpu_shapes=("H100-80GB", "A100-80GB"),
    memory_per_gpu=80,
    instance_type="a2-highgpu-8g",
    clusters=("west", "east"),
    duration=timedelta(days=1, hours=2, minutes=3),
    priority=250,
    not_before=datetime(2026, 11, 22, 8, 30, tzinfo=UTC),
    start="ready",
    prefer="price",
    max_wait=timedelta(hours=2),
    idle_timeout=timedelta(minutes=30),
    preemptible=False,
    requeue_on_failure=False,
    network=Network(rdma=True),
    model=ModelInfo(name="llama"),
)


@pytest.mark.parametrize("spec", [PLAIN, FULL], ids=["plain", "every field"])
def test_a_request_comes_back_as_it_was(spec: RequestSpec) -> None:
    ask = GprAsk.model_validate(body_of(fields_of(spec)))
    content = {"slice": "vision", **asked(ask).spec}
    assert resolve(GPRSpec.model_validate_json(json.dumps(content)), None) == spec


def test_only_what_differs_is_a_change() -> None:
    shown = fields_of(FULL)
    assert changes_of(shown, shown) == {}
    assert changes_of({"priority": "101"}, shown) == {"priority": 101}
    assert changes_of(shown | {"idle": "", "rdma": "no"}, shown) == {
        "idleTimeOutDuration": None,
        "enableRDMA": False,
    }


@pytest.mark.parametrize("form", [{"nodes": "two"}, {"rdma": "maybe"}])
def test_what_cannot_be_read_is_refused(form: dict[str, str]) -> None:
    with pytest.raises(ApiError) as refused:
        body_of(form)
    assert next(iter(form)) in str(refused.value)


def test_times_without_a_zone_are_utc() -> None:
    assert body_of({"notBefore": "2026-11-22T08:30"}) == {"notBefore": "2026-11-22T08:30:00Z"}
    assert minute_of("2026-11-22T09:30:00+01:00") == "2026-11-22T08:30"
    assert minute_of("tomorrow") == "tomorrow"


def test_durations_read_as_people_write_them() -> None:
    assert [short(timedelta(minutes=n)) for n in (90, 360, 1440, 1445)] == ["1h30m", "6h", "1d", "1d5m"]
