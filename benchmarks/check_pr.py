"""How long `egs check-pr` takes in a repository of 10,000 requests.

    python -m benchmarks.check_pr [--requests 10000] [--waiting 8] [--runs 9] [--keep FOLDER]

A clone as a CI job has it: the pull's branch checked out, origin/main and origin/egs/status beside it, no cache. In
each slice of 100 requests one holds nodes, `--waiting` wait and the rest are over; the status branch was written by the
real controller, promises and all. Ten files change: six new requests, of which three rank high and one needs an
approval, two edits, a cancellation and an early end. Whole commands are timed, each in a process of its own: the median
of the time that passed, and the least processor time, git's included. Goals: 2 s for the check of ten requests, 1 s for
the hook.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.repositories import ENVIRONMENT, cpu_s, git
from reconciler.compose import controller
from reconciler.model.facts import Facts
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Person
from schemas.documents.gpr import GPR, RequestSpec, resolve
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import Assignment, Check, Cost, GPRStatus, Phase

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
PER_SLICE = 100
WAITING = 8
"""Waiting requests per slice, unless said; one more holds nodes, all others are over."""
NODES = 120
"""Nodes of each of the two clusters."""
GOAL_S = 2.0
ADA = Person("Ada", "ada@example.com")
OVER = (Phase.COMPLETED, Phase.COMPLETED, Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED)


def make(folder: Path, requests: int, waiting: int) -> Path:
    """A bare repository with that many requests, and the status that the real controller wrote of them."""
    repo = folder / "fleet.git"
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--initial-branch=main")
    store = GitStore(str(repo), folder / "mirror")
    main = store.write(Draft(dict(_files(requests)), "The fleet", ADA, NOW))
    store.push("main", main, None)
    settings = Settings(repo=str(repo), state=folder / "state", pushes_per_minute=None)
    branch = StatusBranch(store, settings, "history")
    store.fetch(["main", "egs/status"])
    branch.take_over(NOW)
    history = Facts(NOW, main, dict(_statuses(requests, waiting)))
    branch.write(history, {}, (), "History", urgent=True)
    store.close()
    acting = controller(settings, adopt=True)
    for _ in range(3):  # it takes the branch, plans and publishes; then nothing is left to do
        acting.cycle(NOW + timedelta(minutes=1))
    return repo


def _files(requests: int) -> Iterator[tuple[str, bytes]]:
    yield "project.yaml", _document("Project", "default", {"admins": [{"email": ADA.email}]})
    for cluster in ("east", "west"):
        pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": NODES}
        spec = {"driver": "embedded", "mode": "manage", "pricePerGpuHour": 2.5, "pools": [pool]}
        yield f"clusters/{cluster}.yaml", _document("Cluster", cluster, spec)
    for number in range(requests):
        if number % PER_SLICE == 0:
            name = _slice(number)
            people = [{"email": f"{who}-{name}@example.com"} for who in ("bo", "cy")]
            spec = {
                "members": people,
                "clusters": ["east", "west"],
                "namespaces": [name],
                "quota": {"gpus": 32},
            }
            yield f"slices/{name}/slice.yaml", _document("Slice", name, spec)
        yield gpr_path(_slice(number), _name(number)), request(number)


def _slice(number: int) -> str:
    return f"s{number // PER_SLICE:04d}"


def _name(number: int) -> str:
    return f"g{number:06d}"


def request(number: int, **more: object) -> bytes:
    """The file of the numbered request, about 500 bytes."""
    spec: dict[str, object] = {
        "slice": _slice(number),
        "displayName": f"Fine-tune number {number}, the second try with a longer warm-up",
        "nodes": 1 + number % 7 % 4,
        "gpusPerNode": 8,
        "gpuShape": "H100-80GB",
        "memoryPerGpu": 80,
        "duration": f"0d{1 + number % 12}h0m",
        "priority": 50 + number % 150,
        "preemptible": True,
        "network": {"rdma": False, "secondary": False},
        "model": {"name": "llama-3-8b", "framework": "pytorch", "parameters": {"lora": "true", "rank": "16"}},
    }
    return _document("GPR", _name(number), spec | more)


def _statuses(requests: int, waiting: int) -> Iterator[tuple[str, GPRStatus]]:
    free = iter(range(10 * requests))
    for number in range(requests):
        place = number % PER_SLICE
        if place < PER_SLICE - waiting:
            phase = Phase.PROVISIONED if place == 0 else OVER[place % len(OVER)]
            yield f"{_slice(number)}/{_name(number)}", _status(number, phase, free)


def _status(number: int, phase: Phase, free: Iterator[int]) -> GPRStatus:
    filed = read_document(gpr_path(_slice(number), _name(number)), request(number))
    assert isinstance(filed, GPR)
    spec = resolve(filed.spec, None)
    assert isinstance(spec, RequestSpec)
    start = NOW - timedelta(minutes=30) if phase is Phase.PROVISIONED else NOW - timedelta(days=3)
    names = _nodes(spec.nodes, free if phase is Phase.PROVISIONED else iter(range(spec.nodes)))
    checks = tuple(
        Check(stage="pre", node=node, name=name, passed=True, value="ok", at=start)
        for node in names[1]
        for name in ("gpus", "memory")
    )
    return GPRStatus(
        phase=phase,
        uid=f"gpr-{number:08x}-0000",
        filed_at=start - timedelta(hours=2),
        estimated_start_time=start,
        estimated_end_time=start + spec.duration,
        assignment=Assignment(cluster=names[0], pool="h100", nodes=names[1]),
        held_from=start - timedelta(minutes=2),
        start_time=start,
        end_time=start + spec.duration,
        checks=checks,
        cost=Cost(amount=20.0, currency="USD", gpu_hours=8.0),
        accepted_spec=spec,
        spec_digest=spec.digest(300),
    )


def _nodes(count: int, free: Iterator[int]) -> tuple[str, tuple[str, ...]]:
    """Names as `ClusterSpec` gives them, the nodes of one lease in one cluster."""
    numbers = [next(free) for _ in range(count)]
    while numbers[0] // NODES != numbers[-1] // NODES:
        numbers = [*numbers[1:], next(free)]
    cluster = ("east", "west")[numbers[0] // NODES % 2]
    return cluster, tuple(f"h100-{number % NODES + 1}" for number in numbers)


def _document(kind: str, name: str, spec: dict[str, object]) -> bytes:
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return dump({**head, "spec": spec}).encode()


def branch(repo: Path, tree: Path) -> None:
    """A clone with ten changed files on the branch `pull`, and one of the project on the branch `policy`."""
    git(tree.parent, "clone", "--quiet", str(repo), str(tree))
    git(tree, "checkout", "--quiet", "-b", "pull")
    for slice_number in range(6):
        number, more = slice_number * PER_SLICE + 95, {}
        if slice_number < 3:
            more["priority"] = 250
        if slice_number == 5:
            more["nodes"] = 8
        text = request(number, **more).replace(_name(number).encode(), b"new")
        (tree / gpr_path(_slice(number), "new")).write_bytes(text)
    for slice_number, more in ((6, {"nodes": 2}), (7, {"duration": "2h"})):
        number = slice_number * PER_SLICE + 95
        (tree / gpr_path(_slice(number), _name(number))).write_bytes(request(number, **more))
    (tree / gpr_path(_slice(895), _name(895))).unlink()
    (tree / gpr_path(_slice(900), _name(900))).write_bytes(request(900, earlyRelease=True))
    _commit(tree)
    git(tree, "checkout", "--quiet", "-b", "policy", "main")
    spec = {"admins": [{"email": ADA.email}], "limits": {"nodesPerRequest": 3}}
    (tree / "project.yaml").write_bytes(_document("Project", "default", spec))
    _commit(tree)


def _commit(tree: Path) -> None:
    git(tree, "add", "-A")
    who = ("-c", "user.name=Bo", "-c", "user.email=bo@example.com")
    git(tree, *who, "commit", "--quiet", "-m", "A pull request")


Timed = tuple[float, float, subprocess.CompletedProcess[str]]
"""Seconds of one run, those of a processor, and its output."""


def timed(command: list[str], cwd: Path, given: str = "") -> Timed:
    environment = {**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[1])}
    begun, before = time.perf_counter(), cpu_s()
    done = subprocess.run(
        command, cwd=cwd, env=environment, input=given, capture_output=True, text=True, check=False
    )
    return time.perf_counter() - begun, cpu_s() - before, done


def main() -> None:
    """Make the repository, run the commands, print medians."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--waiting", type=int, default=WAITING, help="in each slice of 100, at most 99")
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--keep", type=Path, help="make the repository there, or use an existing one")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        if not (folder / "fleet.git").exists():
            begun = time.perf_counter()
            make(folder, given.requests, given.waiting)
            print(f"repository made in {time.perf_counter() - begun:.0f} s", flush=True)
        tree = Path(scratch) / "tree"
        branch(folder / "fleet.git", tree)
        _report(folder / "fleet.git", tree, given.runs)


def _report(repo: Path, tree: Path, runs: int) -> None:
    now = ["--now", "2026-11-21T08:12:00Z"]
    egs = [str(Path(sys.executable).with_name("egs")), "check-pr", *now, "-o", "json"]
    for what, head in (("ten requests", "pull"), ("a limit for everybody", "policy")):
        found = [timed([*egs, "--head", head], tree) for _ in range(runs)]
        answer = json.loads(found[-1][2].stdout)
        moved, needs = len(answer["moved"]), len(answer["approvals"])
        print(f"egs check-pr, {what}: {_told(found)} ({moved} others move, {needs} need approval)")
    git(repo, "fetch", "--quiet", str(tree), "+pull:refs/keep/pull")
    old, new = (git(repo, "rev-parse", ref).decode().strip() for ref in ("main", "refs/keep/pull"))
    hook = [sys.executable, "-m", "reconciler.processes.push_hook_process"]
    found = [timed(hook, repo, f"{old} {new} refs/heads/main\n") for _ in range(runs)]
    assert found[-1][2].returncode == 0, found[-1][2].stderr
    print(f"pre-receive hook, ten requests: {_told(found)}")


def _told(found: list[Timed]) -> str:
    return f"{statistics.median(f[0] for f in found):.2f} s, CPU {min(f[1] for f in found):.2f} s"


if __name__ == "__main__":
    main()
