"""Parts of a campaign: manifests, people's commits, and processes of `egs-reconciler` with their own clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.repositories import ENVIRONMENT, git
from reconciler.clock import SystemClock

CLOCK = SystemClock()
"""The true time."""
SLICES = tuple(f"team-{letter}" for letter in "abcdefgh")
CROWD = "crowd"
"""The slice whose members flood the repository."""
CLUSTERS = {"east": 6, "west": 5}
HEAD = "apiVersion: egs.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
WARM = timedelta(seconds=10)
"""A process that has run this long counts as started."""


def fleet() -> dict[str, str]:
    """The manifests before anything is filed."""
    files = {"project.yaml": HEAD.format("Project", "default") + "  admins: [{email: ada@example.com}]\n"}
    for name, nodes in CLUSTERS.items():
        pool = f"{{name: h100, gpuShape: H100-80GB, gpusPerNode: 8, memoryPerGpu: 80, nodes: {nodes}}}"
        spec = f"  driver: embedded\n  mode: manage\n  prepare: 0m\n  drain: 1m\n  pools:\n  - {pool}\n"
        files[f"clusters/{name}.yaml"] = HEAD.format("Cluster", name) + spec
    for name in (*SLICES, CROWD):
        spec = f"  members: [{{email: bo@example.com}}]\n  clusters: [east, west]\n  namespaces: [{name}]\n"
        files[f"slices/{name}/slice.yaml"] = HEAD.format("Slice", name) + spec
    return files


def request(key: str, nodes: int, minutes: int, priority: int, more: str = "") -> dict[str, str]:
    """The file of a request."""
    slice_, _, name = key.partition("/")
    spec = f"  slice: {slice_}\n  nodes: {nodes}\n  duration: {minutes}m\n  priority: {priority}\n{more}"
    return {f"slices/{slice_}/gprs/{name}.yaml": HEAD.format("GPR", name) + spec}


def commit(repo: Path, files: Mapping[str, str | None], now: datetime) -> None:
    """One commit on main; None deletes."""
    who = f"Bo <bo@example.com> {int(now.timestamp())} +0000"
    stream = [f"commit refs/heads/main\ncommitter {who}\ndata 1\nx\n".encode()]
    if git(repo, "for-each-ref", "refs/heads/main"):
        stream.append(b"from refs/heads/main^0\n")
    for path, text in files.items():
        data = (text or "").encode()
        change = f"D {path}\n" if text is None else f"M 100644 inline {path}\ndata {len(data)}\n"
        stream.append(change.encode() + (b"" if text is None else data + b"\n"))
    git(repo, "fast-import", "--quiet", given=b"".join(stream))


@dataclass(slots=True)
class Controller:
    """One process of `egs-reconciler run`, its state and the clock of its machine."""

    repo: Path
    state: Path
    process: subprocess.Popen[bytes] | None = None
    begun: datetime | None = None
    due: datetime | None = None  # when it is started again
    until: datetime | None = None  # a pause, or a wrong clock, ends then
    is_paused: bool = False
    ended: Counter[str] = field(default_factory=Counter)

    @property
    def offset(self) -> Path:
        return self.state / "offset"

    def start(self, word: str = "run", *more: str) -> None:
        """Start a process on the state that the last one left."""
        with (self.state / "log").open("ab") as log:
            words = [word, "--repo", str(self.repo), "--state", str(self.state), *more]
            command = [sys.executable, "-m", "benchmarks.campaign.process", str(self.offset), "--", *words]
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **ENVIRONMENT}
            )
        self.begun, self.due = CLOCK.now(), None

    def signal(self, number: int) -> None:
        """Send a signal to the process, if there is one."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; unsaved state is lost."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        self.process, self.begun, self.is_paused = None, None, False

    def set_clock(self, seconds: float) -> None:
        """Set the error of the machine's clock."""
        self.offset.write_text(str(seconds))

    def is_well(self, now: datetime) -> bool:
        """Whether it runs, has started, and has the right time."""
        runs = self.process is not None and self.process.poll() is None and not self.is_paused
        return (
            runs and self.begun is not None and now - self.begun > WARM and not float(self.offset.read_text())
        )

    def look(self, now: datetime) -> None:
        """End pauses, restart processes that ended."""
        if self.until is not None and now >= self.until:
            self.until, self.is_paused = None, False
            self.signal(signal.SIGCONT)
            self.set_clock(0)
        if self.process is not None and self.process.poll() is not None:
            self._ended()
        if self.process is None and (self.due is None or now >= self.due):
            self.start()

    def _ended(self) -> None:
        """It ended by itself: act like an operator who follows its message."""
        assert self.process is not None
        lines = (self.state / "log").read_text(errors="replace").strip().splitlines()
        last = lines[-1] if lines else ""
        reason = last.rpartition("(")[2].removesuffix(")") if self.process.returncode else "end"
        self.ended[reason] += 1
        if reason == "NotAdopted":
            self.start("adopt")
            assert self.process is not None
            self.process.wait(120)
        self.process = None
