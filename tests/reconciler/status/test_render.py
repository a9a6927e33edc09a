"""The status branch's files: what is written is read back, stays bounded, and can be read by people (design §5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Reachability
from reconciler.status.branch import StatusBranch
from reconciler.status.event_files import EVENTS_PER_FILE, appended
from reconciler.status.parse import events_from, request_status
from reconciler.status.render import MAX_NODE_FILES, event_rows, render, request_file, request_path
from reconciler.status.yaml_rows import Written, plain, row, with_rows
from schemas.documents.gpr import RequestSpec
from schemas.rules.problems import Problem
from schemas.status.gpr_status import Assignment, GPRStatus, Phase
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState
from tests.reconciler.acting.test_actions import wanted
from tests.support.readback import facts_from
from tests.support.world import World, at, cluster, project

MEGABYTE = 1_000_000
HOSTILE = 'a "quote", a \ttab, | a pipe, \x07 a bell, ünïcode, - and: colons #\nand lines'


def queued(i: int, **more: object) -> GPRStatus:
    return GPRStatus(
        phase=Phase.QUEUED, uid=f"gpr-{i:08x}", filed_at=at(0), estimated_start_time=at(i + 1),
        estimated_end_time=at(i + 61), estimated_cluster="east", estimated_pool="h100",
        accepted_spec=RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1)), spec_digest="sha256:0",
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_busy_world_is_read_back_as_it_was_written() -> None:
    world = World({"clusters/east.yaml": cluster("east", 3, pricePerGpuHour=1.25)})
    world.file("a/x", nodes=2, duration="30m")
    world.file("b/y", displayName="ünïcode: yes", priority=250)
    world.run(at(5))
    world.report("h100-1", False, reason="GpuLost", message=HOSTILE.replace("\x07", ""))
    world.run(at(90))
    facts = world.log[-1].facts
    assert facts is not None
    read = world.facts()
    assert (read.requests, read.nodes, read.clusters, read.usage) == (
        facts.requests, facts.nodes, facts.clusters, facts.usage,
    )  # fmt: skip
    assert (read.intent, read.held_deletions) == (facts.intent, facts.held_deletions)


def test_each_request_stands_once_in_the_queue_and_in_the_schedule_from_its_first_decision_on() -> None:
    world = World()
    world.file("a/x", duration="30m")
    world.run(at(0))
    assert world.status("a/x").phase is Phase.PROVISIONING
    for path in ("clusters/east/schedule.yaml", "queue.yaml"):
        assert (world.text(path) or "").count("a/x") == 1


def test_rows_are_kept_for_live_requests_alone() -> None:
    """A controller that runs for months does not grow with its history."""
    written, made = Written(), wanted()
    kept = []
    for requests in ({"a/x": queued(1), "a/y": queued(2)}, {"a/y": queued(2)}, {}):
        render(Facts(at(0), requests=requests), made, tuple(requests), (), written)
        kept.append({key for memo in written.rows.values() for key in ("a/x", "a/y") if key in memo})
    assert kept == [{"a/x", "a/y"}, {"a/y"}, set()]


def test_a_lease_in_the_schedule_ends_where_its_eviction_is() -> None:
    policy = project(scheduling={"preemption": {"notice": "10m", "guaranteed": "0m"}})
    world = World({"project.yaml": policy, "clusters/east.yaml": cluster(nodes=1)})
    world.file("a/low", duration="10h", priority=50)
    world.run(at(20))
    world.file("b/high", duration="1h", priority=250)
    world.run(at(21))
    (low,) = (row for row in reservations(world) if row["request"] == "a/low")
    assert low["end"] == at(30)


def test_a_schedule_of_leases_with_many_nodes_says_how_many_it_leaves_out() -> None:
    names = tuple(f"node-{i:04}-{'x' * 200}" for i in range(100))
    held = {"phase": Phase.PROVISIONED, "assignment": Assignment(cluster="east", pool="h100", nodes=names)}
    requests = {f"a/r{i}": queued(i).model_copy(update=held) for i in range(100)}
    files = render(Facts(at(0), requests=requests), wanted(), (), ())
    data = files["clusters/east/schedule.yaml"]
    found = yaml.safe_load(data)
    assert len(data) <= MEGABYTE
    assert len(found["reservations"]) + found["omitted"] == 100


def reservations(world: World) -> list[dict[str, Any]]:
    """Rows of the schedule on the status branch."""
    found: list[dict[str, Any]] = yaml.safe_load(world.text("clusters/east/schedule.yaml") or "")[
        "reservations"
    ]
    return found


@pytest.mark.parametrize(
    "text", [pytest.param(HOSTILE, id="odd characters"), pytest.param("no", id="a word of YAML 1.1")]
)
def test_texts_survive_their_file(text: str) -> None:
    status = queued(1, message=text, reason="FitsNowhere")
    assert request_status(request_file("a/x", status)).message == text.replace("\x07", "\ufffd")
    event = Event(at(1), EventReason.FILED, text, "a/x")
    (file,) = appended("events/2026-11-20/00-0.yaml", [], event_rows([event]))
    assert events_from(file.data)[0]["message"] == text.replace("\x07", "\ufffd")


def test_no_file_passes_a_megabyte_and_no_folder_a_thousand_entries() -> None:
    requests = {f"a/r{i}": queued(i) for i in range(9000)}
    nodes = {
        ("east", f"h100-{i}"): NodeRecord(
            metadata=NodeMetadata(name=f"h100-{i}"),
            cluster="east",
            pool="h100",
            state=NodeState.LOST,
            since=at(0),
        )
        for i in range(2000)
    }
    problems = [
        Problem(
            file=f"slices/a/gprs/r{i}.yaml",
            line=1,
            column=1,
            rule="X",
            severity="error",
            message="m" * 300,
            fix="f" * 200,
        )
        for i in range(9000)
    ]
    facts = Facts(at(0), "c0", requests, nodes)
    files = render(facts, wanted(), tuple(requests), problems)
    assert {path: len(data) for path, data in files.items() if len(data) > MEGABYTE} == {}
    assert sum(path.startswith("nodes/east/") for path in files) <= MAX_NODE_FILES
    assert b"omitted" in files["queue.yaml"]
    assert b"omitted" in files["problems.yaml"]


def test_problems_that_quote_much_stay_under_a_megabyte() -> None:
    long = "\u65e5" * 500
    problems = [Problem(f"{i}{long}", 1, 1, "X", "error", long, long) for i in range(1000)]
    (data,) = (
        v for k, v in render(Facts(at(0), "c0"), wanted(), (), problems).items() if k == "problems.yaml"
    )
    assert MEGABYTE // 2 < len(data) <= MEGABYTE
    assert b"omitted" in data


@pytest.mark.parametrize("letter", ["m", "\u65e5", "\udcff"], ids=ascii)
def test_a_full_file_of_events_stays_under_a_megabyte(letter: str) -> None:
    events = [
        Event(at(0), EventReason.DELAYED, letter * 4000, "a/x" * 10, "east", "h100-1")
    ] * EVENTS_PER_FILE
    assert len(with_rows(plain("Events", {}), "events", map(row, event_rows(events)))) <= MEGABYTE


def test_the_passing_of_time_changes_no_file() -> None:
    requests = {f"a/r{i}": queued(i) for i in range(3)}
    facts = Facts(at(0), "c0", requests, clusters={"east": Reachability(True, at(0))})
    later = replace(facts, at=at(10))
    assert render(facts, wanted(), tuple(requests), ()) == render(later, wanted(), tuple(requests), ())


def test_the_inverse_of_render_is_facts_from() -> None:
    facts = Facts(at(0), "c0", {"a/x": queued(1)})
    files = render(facts, wanted(), ("a/x",), ()) | {
        request_path("a/x"): request_file("a/x", facts.requests["a/x"])
    }
    assert facts_from(files, facts.at, "c0") == facts


def test_the_page_shows_queue_leases_and_trouble() -> None:
    world = World({"clusters/east.yaml": cluster("east", 2)})
    world.file("a/runs", duration="2h")
    world.run(at(5))
    world.file("b/waits", nodes=2, duration="1h")
    world.report("h100-2", False, reason="GpuLost", message="GPU 3 | fell off the bus")
    world.run(at(6))
    page = world.text("README.md") or ""
    assert "| a/runs | Provisioned | east/h100: h100-1 | 2026-11-21 08:02:00 | 2026-11-21 10:02:00 |" in page
    assert "b/waits" in page
    assert "| east/h100-2 | Unhealthy | GpuLost | GPU 3 \\| fell off the bus |" in page
    assert all(line.count("|") - line.count("\\|") >= 3 for line in page.splitlines() if line.startswith("|"))


def test_a_stranger_reads_a_branch_that_is_not_there_as_empty() -> None:
    world = World()
    reader = StatusBranch(world.people, world.settings, "reader")
    assert reader.read(at(0)).facts == Facts(at(0))


def test_a_quarantine_is_the_last_to_be_left_out() -> None:
    states = [NodeState.LOST] * 2000 + [NodeState.QUARANTINED, NodeState.UNHEALTHY, NodeState.DIRTY]
    nodes = {
        ("east", f"h100-{i:05}"): NodeRecord(
            metadata=NodeMetadata(name=f"h100-{i:05}"), cluster="east", pool="h100", state=state, since=at(0)
        )
        for i, state in enumerate(states)
    }
    files = render(Facts(at(0), "c0", {}, nodes), wanted(), (), ())
    assert {f"nodes/east/h100-{i:05}.yaml" for i in (2000, 2001, 2002)} <= files.keys()
