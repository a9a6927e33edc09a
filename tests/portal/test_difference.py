"""The difference of two states, in words and data, as far as its reader may see it now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconciler.queries.past.differences import difference
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState
from tests.support.portal import Site
from tests.support.world import slice_

PEOPLE = {"owners": [{"email": "olga@example.com"}], "quota": {"gpus": 64}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, list[str]]]:
    """Four states: one runs and one waits; it is overtaken; the first is over; people and rules change."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/runs", nodes=4, duration="2h", clusters=["east"])
    made.settle()
    made.file("vision/waits", nodes=4, duration="1h", clusters=["east"], priority=60)
    made.pass_time(20)
    states = [made.view.status]
    made.file("nlp/urgent", nodes=4, duration="1h", clusters=["east"], priority=250)
    made.pass_time(20)
    states.append(made.view.status)
    made.pass_time(120)
    states.append(made.view.status)
    members = [{"email": "bo@example.com"}, {"email": "dora@example.com"}]
    made.commit(
        {
            "slices/vision/slice.yaml": slice_(
                "vision", ("east", "west"), members=members, weight=2, **PEOPLE
            ),
            "slices/nlp/slice.yaml": slice_(
                "nlp", members=[{"email": "cy@example.com"}, {"email": "dan@example.com"}]
            ),
            "templates/small.yaml": None,
            "project.yaml": (made.main("project.yaml") or "").replace(
                "spec:", "spec:\n  maxExtension: 0d2h0m"
            ),
        }
    )
    made.pass_time(5)
    yield made, states
    made.close()


def ask(site: Site, from_: str, to: str = "", who: str = "ada-owner", status: int = 200) -> Any:
    answer = site.client(who).get("/api/v1/diff", params={"from": from_, "to": to})
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status == 200 else answer.json()["message"]


def rows(found: Any) -> set[tuple[str, str]]:
    return {(f"{row['slice']}/{row['name']}", row["change"]) for row in found["requests"]}


def test_a_slip_has_its_cause(site: tuple[Site, list[str]]) -> None:
    made, states = site
    found = ask(made, states[0], states[1])
    assert rows(found) == {("nlp/urgent", "filed"), ("nlp/urgent", "promised"), ("vision/waits", "slipped")}
    slip = next(row for row in found["requests"] if row["change"] == "slipped")
    assert slip["causes"] == ["HigherRankArrived (nlp/urgent)"]
    assert slip["was"] < slip["now"]
    assert slip["text"].startswith("vision/waits starts later: ")
    assert found["summary"] == ["1 request filed", "1 request promised", "1 request slipped"]
    assert [found["from"]["commit"], found["to"]["commit"]] == states[:2]


def test_starts_and_ends(site: tuple[Site, list[str]]) -> None:
    made, states = site
    found = ask(made, states[1], states[2])
    assert {("nlp/urgent", "started"), ("vision/runs", "ended")} <= rows(found)
    (end,) = (row for row in found["requests"] if row["change"] == "ended")
    assert (end["was"], end["now"]) == ("Provisioned", "Completed")


def test_people_and_rules(site: tuple[Site, list[str]]) -> None:
    made, states = site
    found = ask(made, states[2])
    assert [row["text"] for row in found["people"]] == [
        "dan@example.com is a member of nlp",
        "dora@example.com is a member of vision",
    ]
    changed = {(row["path"], row["field"]): (row["was"], row["now"]) for row in found["documents"]}
    assert changed["slices/vision/slice.yaml", "spec.weight"] == (1.0, 2.0)
    assert ("project.yaml", "spec.maxExtension") in changed
    assert changed["templates/small.yaml", ""] == (True, None)
    assert "2 people changed rights" in found["summary"]


def test_a_member_sees_what_is_theirs_and_no_other_name(site: tuple[Site, list[str]]) -> None:
    made, states = site
    for from_, to in ((states[0], states[1]), (states[0], ""), (states[1], states[2])):
        found = ask(made, from_, to, "bo-viewer")
        assert {row["slice"] for row in (*found["requests"], *found["people"])} <= {"vision"}
        assert "urgent" not in str(found)
        assert "dan@" not in str(found)
        assert "project.yaml" not in str(found)
    slip = next(
        row for row in ask(made, states[0], states[1], "bo-viewer")["requests"] if row["change"] == "slipped"
    )
    assert slip["causes"] == ["HigherRankArrived (another workspace's request)"]


def test_the_same_state_does_not_differ(site: tuple[Site, list[str]]) -> None:
    made, states = site
    found = ask(made, states[1], states[1])
    assert (found["summary"], found["requests"], found["omitted"]) == ([], [], 0)


def test_what_is_refused(site: tuple[Site, list[str]]) -> None:
    made, states = site
    assert "exchange the two" in ask(made, states[1], states[0], status=422)
    assert "name a commit" in ask(made, "", status=422)
    assert "not kept" in ask(made, "f" * 40, status=410)
    assert made.client().get("/api/v1/diff").status_code == 422


def test_nodes_without_a_record_are_ready(site: tuple[Site, list[str]]) -> None:
    view = site[0].view
    meta, since = NodeMetadata(name="h100-1"), view.facts.at
    lost = NodeRecord(
        metadata=meta, cluster="east", pool="h100", state=NodeState.LOST, reason="NodeGone", since=since
    )
    after = replace(view.facts, nodes={("east", "h100-1"): lost})
    (row,) = difference((view.facts, view.wanted), (after, view.wanted)).nodes
    assert row.text == "east/h100-1 is Lost (NodeGone), it was Ready"
    (row,) = difference((after, view.wanted), (view.facts, view.wanted)).nodes
    assert row.text == "east/h100-1 is Ready, it was Lost"
