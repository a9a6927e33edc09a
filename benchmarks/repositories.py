"""Repositories of many manifests, made in one `fast-import`; shared by the benchmarks of the store."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
_COMMITTER = "committer Ada <ada@example.com> 1767225600 +0000"


def git(repo: Path, *args: str, given: bytes = b"") -> bytes:
    """Run plain git in a repository."""
    return subprocess.run(
        ["git", *args], cwd=repo, env=ENVIRONMENT, input=given, stdout=subprocess.PIPE, check=True
    ).stdout


def cpu_s() -> float:
    """Processor time of this process and of those that it waited for: on a busy machine less uncertain than a clock."""
    return sum(os.times()[:4])


def manifest(slice_: str, name: str, version: int) -> bytes:
    """A GPR of about 530 bytes."""
    text = f"""apiVersion: egs.dev/v1alpha1
kind: GPR
metadata: {{name: {name}}}
spec:
  slice: {slice_}
  displayName: "Fine-tune number {version} of {name}, the second try with a longer warm-up"
  nodes: 2
  gpusPerNode: 8
  gpuShape: H100-80GB
  memoryPerGpu: 80
  clusters: [east, west]
  duration: 0d6h{version % 60}m
  priority: {101 + version % 100}
  preemptible: true
  requeueOnFailure: true
  network: {{rdma: true, secondary: false}}
  model: {{name: llama-3-8b, framework: pytorch, parameters: {{lora: "true", rank: "16"}}}}
"""
    return text.encode()


def fleet(slices: list[str]) -> dict[str, bytes]:
    """What the manifests refer to: a project, two clusters and the slices."""
    head = "apiVersion: egs.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
    pool = "{name: h100, gpuShape: H100-80GB, gpusPerNode: 8, memoryPerGpu: 80, rdma: true, nodes: 100}"
    files = {"project.yaml": head.format("Project", "default") + "  admins: [{email: ada@example.com}]\n"}
    for name in ("east", "west"):
        spec = f"  driver: embedded\n  mode: manage\n  pools:\n  - {pool}\n"
        files[f"clusters/{name}.yaml"] = head.format("Cluster", name) + spec
    for name in slices:
        spec = f"  members: [{{email: bo@example.com}}]\n  clusters: [east, west]\n  namespaces: [{name}]\n"
        files[f"slices/{name}/slice.yaml"] = head.format("Slice", name) + spec
    return {path: text.encode() for path, text in files.items()}


def gpr_path(number: int, per_folder: int = 100) -> tuple[str, str, str]:
    """Slice, name and path of the numbered GPR."""
    slice_, name = f"s{number // per_folder:05d}", f"g{number:06d}"
    return slice_, name, f"slices/{slice_}/gprs/{name}.yaml"


def make(repo: Path, count: int) -> None:
    """A bare repository with `count` GPRs on main, and as many files on egs/status."""
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--initial-branch=main")
    git(repo, "config", "gc.auto", "0")
    stream = b"".join(_stream("refs/heads/main", count, manifest)) + b"done\n"
    git(repo, "fast-import", "--quiet", "--done", given=stream)
    git(repo, "branch", "egs/status", "main")


def change(repo: Path, number: int, version: int) -> None:
    """One person's merge: one GPR of main changed by one commit."""
    slice_, name, path = gpr_path(number)
    stream = f"commit refs/heads/main\n{_COMMITTER}\n".encode() + data(b"Change one request")
    stream += b"from refs/heads/main^0\n" + _file(path, manifest(slice_, name, version)) + b"done\n"
    git(repo, "fast-import", "--quiet", "--done", given=stream)


def _stream(ref: str, count: int, text: Callable[[str, str, int], bytes]) -> Iterator[bytes]:
    yield f"commit {ref}\n{_COMMITTER}\n".encode() + data(b"All of them")
    for number in range(count):
        slice_, name, path = gpr_path(number)
        yield _file(path, text(slice_, name, 0))


def _file(path: str, content: bytes) -> bytes:
    return f"M 100644 inline {path}\n".encode() + data(content)


def data(content: bytes) -> bytes:
    """A piece of content as fast-import reads it."""
    return b"data %d\n" % len(content) + content + b"\n"
