"""`egs job …`: a request and what runs on it in one change, and what became of it (A9, J1)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from egs.commands.backend import Backend
from egs.commands.errors import Said
from egs.commands.output import Row
from egs.commands.running import jobs
from egs.commands.running.job_logs import Own
from tests.reconciler.cli.rig import (
    BO,
    NOW,
    Answer,
    Control,
    egs,
    fleet,
    main_file,
    minutes,
    repository,
    request,
)
from tests.support.repos import git, tip

FILE = """\
# two objects
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {"on": "yes", epochs: "3"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      containers:
        - {name: main, image: "example.com/train:1", resources: {limits: {nvidia.com/gpu: 8}}}
"""
WORKLOAD = "slices/a/workloads/finetune.yaml"
REQUEST = "slices/a/gprs/finetune.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "finetune.yaml"
    path.write_text(FILE)
    return path


def job(repo: Path, *args: object) -> Answer:
    return egs("job", *args, "--repo", repo, "--author", BO)


def run(repo: Path, file: Path, *args: object) -> Answer:
    return job(repo, "run", file, "--slice", "a", "--now", NOW, *args)


def test_run_files_both_in_one_commit_and_the_workload_runs(tmp_path: Path, file: Path) -> None:
    """A9: one command from a file to a running Job."""
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    done = run(repo, file, "--nodes", 2, "--gpus-per-node", 8, "--duration", "6h")
    assert done.code == 0, done.err
    assert git(repo, "log", "--format=%s", f"{before}..main").splitlines() == ["Run a/finetune"]
    assert git(repo, "diff", "--name-only", before, "main").split() == [REQUEST, WORKLOAD]
    wanted = yaml.safe_load(main_file(repo, WORKLOAD))["spec"]
    assert wanted == {"slice": "a", "gpr": "finetune", "manifests": [*yaml.safe_load_all(FILE)]}
    control = Control(repo, tmp_path / "state")
    control.run(minutes(10))
    row = egs("get", "jobs", "--repo", repo, "-o", "json").json[0]
    assert (row["slice"], row["name"], row["phase"], row["cluster"]) == ("a", "finetune", "Running", "east")
    assert [(each["kind"], each["state"]) for each in row["objects"]] == [
        ("ConfigMap", "Ready"),
        ("Job", "Running"),
    ]
    shown = egs("describe", "job", "a/finetune", "--repo", repo, "-o", "json").json
    assert [event["reason"] for event in shown["events"]] == ["WorkloadRunning"]
    assert "a/finetune  Running" in egs("job", "list", "--repo", repo).out


def test_delete_removes_the_file_alone(tmp_path: Path, file: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    run(repo, file, "--nodes", 1, "--duration", "6h")
    before = tip(repo)
    assert job(repo, "delete", "a/finetune").code == 0
    assert git(repo, "diff", "--name-only", before, "main") == WORKLOAD
    assert job(repo, "delete", "a/finetune").code == 1


def test_a_request_that_exists_is_used(tmp_path: Path, file: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/mine")))
    assert run(repo, file, "--gpr", "mine", "--namespace", "a").code == 0
    assert yaml.safe_load(main_file(repo, WORKLOAD))["spec"]["gpr"] == "mine"
    assert "finetune.yaml" not in git(repo, "ls-tree", "--name-only", "main:slices/a/gprs")


def test_a_trial_shows_both_files_and_writes_nothing(tmp_path: Path, file: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    done = run(repo, file, "--nodes", 1, "--duration", "6h", "--dry-run")
    assert done.code == 0
    assert [each["kind"] for each in yaml.safe_load_all(done.out)] == ["GPR", "Workload"]
    assert tip(repo) == before


@pytest.mark.parametrize(
    ("more", "text", "said"),
    [
        (("--gpr", "none"), FILE, "request"),
        (("--gpr", "mine", "--nodes", "2"), FILE, "--gpr names a request that exists"),
        (("--nodes", "1", "--duration", "1h", "--name", "mine"), FILE, "mine"),
        (("--nodes", "1", "--duration", "1h"), FILE.replace("ConfigMap", "Secret"), "Secret"),
        (("--nodes", "1", "--duration", "1h"), "just: [text", "the file is not YAML"),
        (("--nodes", "1", "--duration", "1h"), FILE.replace('"on"', "on"), "the key True"),
        (("--nodes", "1", "--duration", "1h"), FILE.replace('"3"', "2026-11-21"), "quote it"),
        (("--nodes", "1", "--duration", "1h"), FILE.replace('"3"', ".inf"), "quote it"),
        (("--nodes", "1", "--duration", "1h"), FILE.replace('"3"', "&all [*all]"), "contains itself"),
        (("--nodes", "1", "--duration", "1h"), "", "no Kubernetes objects"),
        (("--nodes", "1", "--duration", "1h", "--namespace", "b"), FILE, "namespace"),
        (("--nodes", "1"), FILE, "duration"),
        (("--nodes", "1", "--duration", "1h", "--context", "x"), FILE, "the logs of --watch"),
    ],
    ids=[
        "unknown",
        "both",
        "taken",
        "kind",
        "yaml",
        "key",
        "date",
        "endless",
        "loop",
        "empty",
        "namespace",
        "terms",
        "logs",
    ],
)
def test_what_cannot_run_is_refused_and_nothing_is_written(
    tmp_path: Path, file: Path, more: tuple[str, ...], text: str, said: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/mine")))
    before = tip(repo)
    file.write_text(text)
    done = run(repo, file, *more)
    assert done.code != 0
    assert said in done.err
    assert tip(repo) == before


def event(reason: str, message: str) -> dict[str, Any]:
    head = {"kind": "event", "at": "2026-11-21T08:00:00Z", "request": "a/x", "cluster": "", "node": ""}
    return {**head, "reason": reason, "message": message}


def row(phase: str, reason: str | None = None, since: str = "2026-11-21T08:00:00Z", name: str = "x") -> Row:
    return {"slice": "a", "name": name, "phase": phase, "reason": reason, "message": "why", "since": since}


WAITS, RUNS = row("Pending", "RequestWaits"), row("Running")
OTHER = row("Failed", name="other")


class Lines:
    """A backend: in turn the workloads of a look, or the line that comes before it."""

    def __init__(self, *happened: Row | list[Row] | None) -> None:
        self._happened, self._rows = happened, []

    def watch(self, slice_: str, gpr: str, every_s: int) -> Iterable[Row | None]:
        assert (slice_, gpr) == ("a", "a/x")
        for each in self._happened:
            if isinstance(each, list):
                self._rows = each
            yield None if isinstance(each, list) else each

    def rows(self, kind: str, filters: Row) -> list[Row]:
        assert (kind, filters) == ("jobs", {"slice": "a"})
        if self._rows == [AWAY]:
            raise Said("the server does not answer", "Unavailable", 3)
        return self._rows

    def whole(self, kind: str, name: str) -> Row:
        job = {"slice": "a", "name": "x", "cluster": "east", "namespace": "a", "objects": []}
        return {"job": job, "cluster": {"driver": "embedded"}}[kind]


AWAY = row("Away")
LATE = event("GPRCompleted", "too late")


@pytest.mark.parametrize(
    ("happened", "code"),
    [
        pytest.param([[WAITS], [RUNS], [row("Succeeded")]], 0, id="it succeeds"),
        pytest.param([[WAITS], [RUNS], [row("Failed")]], 1, id="it fails"),
        pytest.param([[RUNS], [row("Removed")]], 1, id="its lease ends before it does"),
        pytest.param([[WAITS], [row("Pending", "RequestOver")]], 1, id="its request was rejected"),
        pytest.param([[row("Pending", "RequestOver")]], 1, id="its request was over"),
        pytest.param([[WAITS], []], 1, id="its file is deleted"),
        pytest.param([[], [WAITS], [row("Succeeded")]], 0, id="it is on main after a while"),
        pytest.param([[AWAY], [WAITS], [AWAY], [row("Failed")]], 1, id="a look that fails ends nothing"),
        pytest.param([[row("Failed")], [WAITS], [row("Succeeded")]], 0, id="one before it had failed"),
        pytest.param([[row("Failed")]] * 13, 1, id="as one before it, for a minute"),
        pytest.param(
            [[WAITS], event("WorkloadFailed", "workload a/x is Failed: an hour ago"), [row("Succeeded")]],
            0,
            id="an event of one before it",
        ),
    ],
)
def test_watch_ends_with_the_workload_and_not_with_another(
    happened: list[Row | list[Row]], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """What counts is its state, whatever events say; J1."""
    looks = [[*each, OTHER] if isinstance(each, list) and each != [AWAY] else each for each in happened]
    done = {"slice": "a", "gpr": "a/x", "workload": "a/x"}
    assert jobs._followed(cast(Backend, Lines(*looks, LATE)), done, Own()) == code
    told = capsys.readouterr()
    assert "too late" not in told.out
    assert told.err.count("is simulated, so that the pods of x write no logs") == ([RUNS] in happened)
