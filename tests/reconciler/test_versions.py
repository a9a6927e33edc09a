"""Upgrade and going back: what one version wrote, the next one reads, and what a newer one adds stops no older one.

`recorded/0.1.0` has the repository and the simulated clusters of 0.1.0 (commit b506c1fc), which played the demo's story
until 12:50 and was killed. No file in it is ever written again by a newer version.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.report import from_text
from reconciler.compose import controller
from reconciler.cycle import Cycle
from reconciler.health.agent_reports import FILE
from reconciler.loop import Reconciler
from reconciler.settings import Settings
from reconciler.status.parse import RECORDS, record_from, request_status
from schemas.reading.reader import read_document
from schemas.reading.strict_yaml import load
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import GPRStatus, Phase
from tests.support.repos import bare, commit

RECORDED = Path(__file__).parent / "recorded" / "0.1.0"
KILLED = datetime(2026, 3, 2, 12, 50, tzinfo=UTC)
LAST_WRITTEN = datetime(2026, 3, 2, 12, 32, tzinfo=UTC)
MOST_CYCLES = 60
FREE = ("labels", "parameters")
"""Maps whose keys are people's own."""


def files(part: str) -> dict[str, str]:
    """The recorded files below a folder."""
    folder = RECORDED / part
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def upgraded(folder: Path, status: Mapping[str, str]) -> Reconciler:
    """Today's controller, on the repository and the clusters that 0.1.0 left, with this status."""
    repo = bare(folder / "fleet.git")
    main = commit(repo, files("main"))
    said = (RECORDED / "message.txt").read_text("utf-8").replace("MAIN", main)
    commit(repo, status, "egs/status", said, at_s=int(LAST_WRITTEN.timestamp()))
    for path, report in files("agents").items():
        commit(repo, {FILE: report}, f"egs/agents/{path.removesuffix('.yaml')}")
    shutil.copytree(RECORDED / "clusters", folder / "state" / "clusters")
    poll = timedelta(minutes=10)
    return controller(Settings(repo=str(repo), state=folder / "state", poll=poll, pushes_per_minute=None))


def run(reconciler: Reconciler, now: datetime, until: datetime) -> Cycle:
    """The last cycle of those at each instant that matters until then."""
    for _ in range(MOST_CYCLES):
        cycle = reconciler.cycle(now)
        if cycle.wake > until and cycle.wake > now:
            return cycle
        now = max(now, cycle.wake)
    raise AssertionError(f"no rest at {now}")


def promised(requests: Mapping[str, GPRStatus]) -> dict[str, object]:
    """All that people were told of their times and nodes."""
    return {
        key: (
            r.phase,
            r.uid,
            r.filed_at,
            r.start_time or r.estimated_start_time,
            r.end_time or r.estimated_end_time,
            None if r.assignment is None else r.assignment.nodes,
            [(slip.cause, slip.by) for slip in r.slips],
        )
        for key, r in requests.items()
    }


def told(status: Mapping[str, str]) -> dict[str, object]:
    """The same, in files."""
    found = {
        f"{path.split('/')[1]}/{Path(path).stem}": request_status(text.encode())
        for path, text in status.items()
        if path.startswith("slices/")
    }
    return promised(found)


def test_every_promise_and_lease_of_the_version_before_is_kept(tmp_path: Path) -> None:
    """A13: nothing is filed anew, nothing moves, and what is due comes at its time."""
    status = files("status")
    reconciler = upgraded(tmp_path, status)
    first = reconciler.cycle(KILLED)
    assert first.facts is not None
    assert promised(first.facts.requests) == told(status)
    due = {key: r.estimated_start_time for key, r in first.facts.requests.items() if r.phase is Phase.QUEUED}
    assert len(due) == 3
    facts = run(reconciler, KILLED, KILLED + timedelta(minutes=73)).facts
    assert facts is not None
    after = facts.requests
    assert {key: after[key].start_time for key in ("nlp/hotfix", "robotics/policy-sweep")} == {
        key: due[key] for key in ("nlp/hotfix", "robotics/policy-sweep")
    }
    assert after["nlp/eval-nightly"].estimated_start_time == due["nlp/eval-nightly"]
    assert (after["nlp/llama-finetune"].phase, after["nlp/llama-finetune"].end_time) == (
        Phase.COMPLETED,
        first.facts.requests["nlp/llama-finetune"].end_time,
    )


def newer(part: object) -> object:
    """A record as a later version may write it: with a field more in each of its parts."""
    if isinstance(part, dict):
        known = {key: value if key in FREE else newer(value) for key, value in part.items()}
        return known | {"addedLater": {"by": "a newer version"}}
    return [newer(one) for one in part] if isinstance(part, list) else part


@pytest.mark.parametrize("path", [path for path in files("status") if RECORDS.fullmatch(path)])
def test_a_record_with_a_field_of_a_newer_version_is_read_without_it(path: str) -> None:
    """A13: people go back to this version: a record that a newer one wrote counts."""
    data = files("status")[path].encode()
    added = dump(newer(load(data))).encode()
    assert record_from(path, data) is not None
    assert record_from(path, added) == record_from(path, data)


def test_a_report_of_a_newer_agent_is_read_without_what_is_unknown() -> None:
    """A13: an agent is upgraded before its controller, or a controller goes back."""
    (data,) = (text.encode() for text in files("agents").values())
    assert from_text(dump(newer(load(data))).encode()) == from_text(data)


def test_a_document_with_a_field_of_a_newer_version_is_refused() -> None:
    """A13: what people write is never ignored: the field would do nothing, and they would not know."""
    text = files("main")["slices/nlp/gprs/llama-finetune.yaml"]
    read = read_document("slices/nlp/gprs/llama-finetune.yaml", f"{text}  addedLater: 1\n".encode())
    assert isinstance(read, tuple)
    assert [problem.rule for problem in read] == ["UnknownField"]


def test_people_who_go_back_lose_no_promise(tmp_path: Path) -> None:
    """A13: the status of a newer version counts, though not all of it is known here."""
    status = {
        path: dump(newer(load(text.encode()))) if RECORDS.fullmatch(path) else text
        for path, text in files("status").items()
    }
    first = upgraded(tmp_path, status).cycle(KILLED)
    assert first.facts is not None
    assert promised(first.facts.requests) == told(files("status"))
