"""A fleet of many manifests in a bare repository, as the real controller leaves it: what speed is measured on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache as remembered
from pathlib import Path

from benchmarks.repositories import data, git
from reconciler.compose import controller
from reconciler.loop import Reconciler
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.status.render import request_file, request_path
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Person
from schemas.documents.gpr import GPR, RequestSpec, resolve
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import Assignment, Check, Cost, GPRStatus, Phase

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
PER_SLICE = 100
WAITING = 10
"""Waiting requests per slice."""
NODES = 250
"""Nodes of each of the two pools of each of the two clusters."""
OVER = (Phase.COMPLETED, Phase.COMPLETED, Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED)
ADA = Person("Ada", "ada@example.com")
_COMMITTER = b"committer Ada <ada@example.com> 1767225600 +0000\n"


def make(folder: Path, manifests: int) -> None:
    """A bare repository with that many requests, run by the real controller until nothing changes."""
    repo = folder / "fleet.git"
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--initial-branch=main")
    git(repo, "config", "gc.auto", "0")
    stream = b"".join(commit("refs/heads/main", "The fleet", files(manifests)))
    git(repo, "fast-import", "--quiet", "--done", given=stream)
    store = GitStore(str(repo), folder / "mirror")
    settings = settings_of(folder)
    store.fetch(["main"])
    branch = StatusBranch(store, settings, "history")
    branch.take_over(NOW)
    store.close()
    message = git(repo, "log", "-1", "--format=%B", "egs/status").decode().strip()
    main = git(repo, "rev-parse", "main").decode().strip()
    stream = b"".join(commit("refs/heads/egs/status", f"{message}\nIntent: {main}\n", _statuses(manifests)))
    git(repo, "fast-import", "--quiet", "--done", "--force", given=stream)
    acting, now = controller(settings), NOW + timedelta(minutes=1)
    for _ in range(100):  # it plans, publishes and hands nodes over
        done = acting.cycle(now)
        now = max(now + timedelta(seconds=1), min(done.wake, now + timedelta(seconds=30)))
        is_quiet = not done.changed and not done.acted and done.pushed == "Unchanged"
        if is_quiet and now > NOW + timedelta(minutes=5):
            break
    close(acting)


def close(acting: Reconciler) -> None:
    """Close its mirror, so that another controller can use it."""
    acting._ports.store.close()


def settings_of(folder: Path) -> Settings:
    return Settings(repo=str(folder / "fleet.git"), state=folder / "state", pushes_per_minute=None)


def commit(ref: str, message: str, files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    yield f"commit {ref}\n".encode() + _COMMITTER + data(message.encode())
    for path, content in files:
        yield f"M 100644 inline {path}\n".encode() + data(content)
    yield b"done\n"


def files(manifests: int) -> Iterator[tuple[str, bytes]]:
    yield "project.yaml", document("Project", "default", {"admins": [{"email": ADA.email}]})
    for cluster in ("east", "west"):
        yield f"clusters/{cluster}.yaml", _cluster(cluster)
    for number in range(manifests):
        slice_, name = slice_and_name(number)
        if number % PER_SLICE == 0:
            spec = {"members": [{"email": f"bo-{slice_}@example.com"}], "namespaces": [slice_]}
            spec |= {"clusters": ["east", "west"], "quota": {"gpus": 32}}
            yield f"slices/{slice_}/slice.yaml", document("Slice", slice_, spec)
        yield gpr_path(slice_, name), request(number)


def slice_and_name(number: int) -> tuple[str, str]:
    """Of the numbered request."""
    return f"s{number // PER_SLICE:04d}", f"g{number:06d}"


def request(number: int, priority: int = 0) -> bytes:
    """The file of the numbered request, about 500 bytes; priority 0: its own."""
    return named(request_of(number % 420, priority), number)


def named(text: bytes, number: int) -> bytes:
    """What was made for the slice s0000 and the name g000000, for this number."""
    slice_, name = slice_and_name(number)
    return text.replace(b"s0000", slice_.encode()).replace(b"g000000", name.encode())


@remembered
def request_of(kind: int, priority: int) -> bytes:
    spec: dict[str, object] = {
        "slice": "s0000",
        "displayName": "Fine-tune g000000, the second try with a longer warm-up",
        "nodes": 1 + kind % 7 % 4,
        "gpusPerNode": 8,
        "gpuShape": "H100-80GB",
        "memoryPerGpu": 80,
        "duration": f"0d{1 + kind % 12}h{kind % 60}m",
        "priority": priority or 50 + kind % 150,
        "preemptible": True,
        "network": {"rdma": False, "secondary": False},
        "model": {"name": "llama-3-8b", "framework": "pytorch", "parameters": {"lora": "true", "rank": "16"}},
    }
    return document("GPR", "g000000", spec)


def _statuses(manifests: int) -> Iterator[tuple[str, bytes]]:
    for number in range(manifests):
        if number % PER_SLICE < PER_SLICE - WAITING:
            path = request_path("/".join(slice_and_name(number)))
            yield path, named(_status(number % 420, OVER[number % len(OVER)]), number)


@remembered
def _status(kind: int, phase: Phase) -> bytes:
    filed = read_document(gpr_path("s0000", "g000000"), request_of(kind, 0))
    assert isinstance(filed, GPR)
    spec = resolve(filed.spec, None)
    assert isinstance(spec, RequestSpec)
    start = NOW - timedelta(days=3)
    nodes = tuple(f"a-{i + 1}" for i in range(spec.nodes))
    checks = tuple(
        Check(stage="pre", node=node, name=name, passed=True, value="ok", at=start)
        for node in nodes
        for name in ("gpus", "memory")
    )
    status = GPRStatus(
        phase=phase,
        uid="gpr-g000000-0000",
        filed_at=start - timedelta(hours=2),
        estimated_start_time=start,
        estimated_end_time=start + spec.duration,
        assignment=Assignment(cluster="east", pool="a", nodes=nodes),
        held_from=start - timedelta(minutes=2),
        start_time=start,
        end_time=start + spec.duration,
        released_at=start + spec.duration,
        checks=checks,
        cost=Cost(amount=20.0, currency="USD", gpu_hours=8.0),
        accepted_spec=spec,
        spec_digest=spec.digest(300),
    )
    return request_file("s0000/g000000", status)


def document(kind: str, name: str, spec: dict[str, object]) -> bytes:
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return dump({**head, "spec": spec}).encode()


def file_one(repo: Path, slice_: int, run: int) -> None:
    """One person's merge: a new request of one slice, in the middle of its slice's ranks."""
    name = f"new-{run}-{slice_}"
    content = request(slice_ * PER_SLICE, 101).replace(f"g{slice_ * PER_SLICE:06d}".encode(), name.encode())
    push(repo, {gpr_path(f"s{slice_:04d}", name): content})


def push(repo: Path, files: Mapping[str, bytes]) -> None:
    """A person's commit on main."""
    stream = b"commit refs/heads/main\n" + _COMMITTER + data(b"Change files") + b"from refs/heads/main^0\n"
    for path, content in files.items():
        stream += f"M 100644 inline {path}\n".encode() + data(content)
    git(repo, "fast-import", "--quiet", "--done", given=stream + b"done\n")


def longer(running: Iterable[str]) -> dict[str, bytes]:
    """The files of these requests, which ask for an hour more: others are promised their nodes."""
    found = {}
    for key in running:
        slice_, name = key.split("/")
        content = request(int(name[1:])).replace(b"spec:\n", b"spec:\n  extend: 0d1h0m\n")
        found[gpr_path(slice_, name)] = content
    return found


def burst() -> dict[str, bytes]:
    """One of the clusters for those alone who wait long, with fewer GPU-hours than they ask for."""
    return {"clusters/west.yaml": _cluster("west", burst={"after": "0d0h10m", "gpuHoursPerMonth": 60_000})}


def _cluster(name: str, **more: object) -> bytes:
    pools = [
        {"name": name, "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": NODES}
        for name in ("a", "b")
    ]
    spec = {"driver": "embedded", "mode": "manage", "pricePerGpuHour": 2.5, "pools": pools, **more}
    return document("Cluster", name, spec)
