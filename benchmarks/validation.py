"""Reading, checking and cross-file rules for 500-byte requests, beside check-jsonschema.

    python -m benchmarks.validation [--files 20000] [--quick]

In this process, by its own processor time (one thread, so one core), start-up excluded: from bytes to documents
and problems with `read_document` and `Repository.update` (goal: 8,000 a second); from the JSON text that a cache
kept, after a restart; and for blobs the process knows, where only the table of known documents is asked (goal:
100,000 a second).

As commands, start-up included: ours and check-jsonschema on the same 1,000 files. Only ours also refuses what
YAML readers disagree about, and follows what documents say of each other.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from schemas.documents.base import Document
from schemas.reading.collector import collector_paused
from schemas.reading.reader import from_json, parse_to_json, read_document
from schemas.rules.repository import Repository

SCHEMA = Path(__file__).parents[1] / "schemas" / "json" / "gpr.schema.json"
PER_SLICE = 100
COMMAND_FILES = 1000
_HEAD = "apiVersion: egs.dev/v1alpha1\nkind: {}\nmetadata:\n  name: {}\nspec:\n"
_CHECK = """
import sys
from pathlib import Path
from schemas.rules.check import check_files
root = Path(sys.argv[1])
files = ((str(p.relative_to(root)), 0o100644, p.read_bytes()) for p in root.rglob("*.yaml"))
raise SystemExit(not check_files(files).ok)
"""

Files = Mapping[str, bytes]


def request(slice_: str, name: str, i: int) -> bytes:
    """A request of about 500 bytes; no two are alike."""
    return f"""{_HEAD.format("GPR", name)}  slice: {slice_}
  displayName: Fine-tune number {i}, with the data of week {i % 53}
  nodes: {1 + i % 4}
  gpusPerNode: 8
  gpuShape: H100-80GB
  memoryPerGpu: 80
  clusters: [east, west]
  duration: 0d{1 + i % 12}h{i % 60}m
  priority: {1 + i % 300}
  notBefore: "2026-11-{1 + i % 28:02}T{i % 24:02}:00:00Z"
  preemptible: true
  requeueOnFailure: true
  network:
    rdma: true
    secondary: false
  model:
    name: model-{i}
    framework: pytorch
    parameters:
      lora: "true"
      rank: "{i % 64}"
""".encode()


def repository_files(requests: int) -> tuple[Files, Files]:
    """The documents that requests refer to, and the requests."""
    base = {"project.yaml": f"{_HEAD.format('Project', 'default')}  admins: [{{email: ada@example.com}}]\n"}
    for name in ("east", "west"):
        pool = "{name: h100, gpuShape: H100-80GB, gpusPerNode: 8, memoryPerGpu: 80, rdma: true, nodes: 12}"
        base[f"clusters/{name}.yaml"] = (
            f"{_HEAD.format('Cluster', name)}  driver: embedded\n  pools:\n    - {pool}\n"
        )
    files: dict[str, bytes] = {}
    for i in range(requests):
        slice_, name = f"team-{i // PER_SLICE}", f"run-{i}"
        base[f"slices/{slice_}/slice.yaml"] = (
            f"{_HEAD.format('Slice', slice_)}  members: [{{email: bo@example.com}}]\n"
            f"  clusters: [east, west]\n  namespaces: [{slice_}]\n"
        )
        files[f"slices/{slice_}/gprs/{name}.yaml"] = request(slice_, name, i)
    return {path: text.encode() for path, text in base.items()}, files


def _per_second(
    work: Callable[[], object], items: int, rounds: int, clock: Callable[[], float] = time.process_time
) -> float:
    """Of the fastest round: what others do on the machine only ever makes it slower."""
    best = float("inf")
    for _ in range(rounds):
        began = clock()
        work()
        best = min(best, clock() - began)
    return items / best


def in_process(requests: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Documents a second, by what is done with them."""
    base, files = repository_files(requests)
    around = {path: read_document(path, data) for path, data in base.items()}

    def everything() -> None:
        tree = Repository()
        tree.update(around)
        tree.update({path: read_document(path, data) for path, data in files.items()})
        assert not [problem for problem in tree.problems() if problem.severity == "error"]

    texts = {path: parse_to_json(data) for path, data in files.items()}
    listing = [(path, hashlib.sha1(data, usedforsecurity=False).hexdigest()) for path, data in files.items()]
    known = {(path, oid): read_document(path, files[path]) for path, oid in listing}

    def lookups() -> None:
        tree = {path: known[path, oid] for path, oid in listing}
        assert len(tree) == requests

    with collector_paused():
        yield "read, parse, model and rules", _per_second(everything, requests, rounds)
    yield "the same, collector not paused", _per_second(everything, requests, rounds)
    yield (
        "read, parse and model",
        _per_second(lambda: [read_document(*each) for each in files.items()], requests, rounds),
    )
    yield (
        "from cached JSON text",
        _per_second(lambda: [from_json(*each) for each in texts.items()], requests, rounds),
    )
    yield "blobs the process knows", _per_second(lookups, requests, rounds)
    assert all(isinstance(document, Document) for document in known.values())


def as_commands(rounds: int) -> Iterator[tuple[str, float]]:
    """Files a second of whole commands."""
    base, files = repository_files(COMMAND_FILES)
    with tempfile.TemporaryDirectory() as folder:
        for path, data in {**base, **files}.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        places = [str(Path(folder, path)) for path in files]
        other = Path(sys.executable).parent / "check-jsonschema"
        commands = {
            "ours, as a command": [sys.executable, "-c", _CHECK, folder],
            "check-jsonschema": [str(other), "--schemafile", str(SCHEMA), *places],
        }
        for name, command in commands.items():
            yield (
                name,
                _per_second(lambda command=command: _run(command), COMMAND_FILES, rounds, time.perf_counter),
            )  # type: ignore[misc]


def again(files: int) -> Iterator[tuple[str, float]]:
    """Files a second of `egs validate` in a clone, by processor time: at first, and when nothing changed since."""
    base, requests = repository_files(files)
    with tempfile.TemporaryDirectory() as folder:
        for path, data in {**base, **requests}.items():
            place = Path(folder, "clone", path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        subprocess.run(["git", "init", "--quiet", f"{folder}/clone"], check=True)
        time.sleep(3)  # what just changed is not kept
        for name in ("a clone, at first", "a clone that did not change"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [
                sys.executable,
                "-c",
                "from egs.cli import main; main()",
                "validate",
                f"{folder}/clone",
            ]
            environment = {**os.environ, "EGS_CACHE": f"{folder}/cache"}
            subprocess.run(command, check=True, capture_output=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            yield name, files / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="2,000 files, one round")
    parser.add_argument(
        "--clone", type=int, metavar="FILES", help="only commands, in a clone with this number of files"
    )
    asked = parser.parse_args()
    requests, rounds = (2000, 1) if asked.quick else (asked.files, 3)
    size = sum(map(len, repository_files(100)[1].values())) // 100
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {asked.clone or requests} files of {size} bytes"
    )
    print("documents a second, best of", 1 if asked.clone else rounds)
    figures = (
        again(asked.clone)
        if asked.clone
        else itertools.chain(in_process(requests, rounds), as_commands(rounds))
    )
    for name, rate in figures:
        print(f"  {name:34}{rate:12,.0f}", flush=True)
    print("goals: 8,000 for read, parse, model and rules; 100,000 for known blobs")


if __name__ == "__main__":
    main()
