"""Long lists are written row by row, and what is as before is not made anew: the bytes are the same (G3, E1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Facts, Wanted
from reconciler.status.render import render
from reconciler.status.yaml_rows import Written, document, plain, row, with_rows
from schemas.documents.base import Metadata
from schemas.documents.cluster import ClusterSpec
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.status.gpr_status import Assignment, GPRStatus, Phase
from schemas.status.inventory import Reservation, Schedule

AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
SPEC = RequestSpec(slice="a", nodes=2, duration=timedelta(hours=1))
POOLS = ({"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 4},)
CLUSTERS = {
    name: ClusterSpec.model_validate_json(
        f'{{"driver": "embedded", "pools": [{str(POOLS[0]).replace(chr(39), chr(34))}]}}'
    )
    for name in ("east", "west")
}
WANTED = Wanted(
    commit="",
    project=ProjectSpec.model_validate_json('{"admins": [{"email": "ada@example.com"}]}'),
    clusters=CLUSTERS,
    slices={},
    filed={},
    approvals={},
    pools={},
    manifests=CLUSTERS,
)
TEXTS = st.text(max_size=8)


@given(st.lists(st.dictionaries(TEXTS.filter(bool), TEXTS | st.integers() | st.lists(TEXTS), max_size=4)))
def test_rows_are_what_the_whole_list_would_be(rows: list[dict[str, Any]]) -> None:
    whole = plain("Queue", {"omitted": 1, "requests": rows})
    assert with_rows(plain("Queue", {"omitted": 1}), "requests", map(row, rows)) == whole


@pytest.mark.parametrize("nodes", [None, ("h100-1", "h100-2")], ids=["promised", "held"])
def test_a_schedule_is_written_as_its_model_has_it(nodes: tuple[str, ...] | None) -> None:
    status = _status("east", nodes)
    files = render(Facts(AT, requests={"a/x": status}), WANTED, () if nodes else ("a/x",), ())
    entry = Reservation(
        request="a/x",
        phase=status.phase,
        pool="h100",
        nodes=nodes,
        count=2,
        begin=AT,
        end=AT + timedelta(hours=1),
    )
    schedule = Schedule(metadata=Metadata(name="east"), reservations=(entry,))
    assert files["clusters/east/schedule.yaml"] == document(schedule)
    assert b"a/x" not in files["clusters/west/schedule.yaml"]


def _status(cluster: str, nodes: tuple[str, ...] | None = None, hours: int = 0) -> GPRStatus:
    return GPRStatus(
        phase=Phase.PROVISIONED if nodes else Phase.QUEUED,
        uid="gpr-1",
        filed_at=AT,
        estimated_start_time=AT + timedelta(hours=hours),
        estimated_end_time=AT + timedelta(hours=hours + 1),
        estimated_cluster=cluster,
        estimated_pool="h100",
        assignment=Assignment(cluster=cluster, pool="h100", nodes=nodes) if nodes else None,
        accepted_spec=SPEC,
        spec_digest="sha256:0",
    )


PLACES = st.builds(_status, st.sampled_from(["east", "west"]), hours=st.integers(0, 3))


@given(st.lists(st.dictionaries(st.sampled_from(["a/w", "a/x", "a/y", "a/z"]), PLACES), max_size=5))
def test_with_a_memory_the_files_are_the_same(worlds: list[dict[str, GPRStatus]]) -> None:
    written = Written()
    for requests in worlds:
        facts, order = Facts(AT, requests=requests), tuple(sorted(requests))
        assert render(facts, WANTED, order, (), written) == render(facts, WANTED, order, ())
