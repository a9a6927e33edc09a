"""Starts and strict ends while thousands of requests arrive in one push, and while 100,000 files are verified.

    python -m benchmarks.flood [--requests 20000] [--files 100000] [--slices 200] [--nodes 40] [--plain]

Two embedded clusters with two pools each run one-minute requests, one of which ends every two seconds, under a
controller on the system's clock. Then come, each in one push: the requests; one request above all of them; and the
files, to another fleet whose commits are verified by signatures, where they are held. Reported is how long each push
took until it was verified, read, planned and committed, its CPU time without git's, and the latest start and strict
end in the clusters meanwhile. `--plain` disables the compiled engine. Goals: the requests in 30 s plainly and in 5 s
compiled; no end later than 2 s.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from time import process_time

from benchmarks import large_fleet
from benchmarks.repositories import data, git
from reconciler.clock import SystemClock, monotonic_s
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.compose import controller
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.machine_code import make_ready
from reconciler.model.cluster_port import Answer, LeaseRef, Stamp
from reconciler.processes.wake import Waking
from reconciler.settings import Settings, Trust
from scheduler import kernel
from schemas.rules.view import gpr_path

BEGIN_S, WAIT_S = 130, 200
"""The first of the leases begins when its nodes are prepared, which takes two minutes, and ends a minute later."""
RUNNING = 30
"""One-minute requests that begin two seconds apart, so that ends are due all the time."""


Pushes = Mapping[str, Iterator[tuple[str, bytes]]]


class Instants:
    """Delays of nodes handed over, and released at their strict ends."""

    def __init__(self, begin: datetime) -> None:
        """`begin` is when the first of `ending` may start."""
        self.late_s: dict[str, list[float]] = {"starts": [], "strict ends": []}
        self._begin = begin

    def watch(self) -> None:
        """From now on record every node of `ending`."""
        inner, outer = EmbeddedCluster.remove, EmbeddedCluster.add

        def removed(own: EmbeddedCluster, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
            lease = own.observe(now).nodes[node].lease
            if lease is not None and lease.end <= now:
                self._note("strict ends", lease.end)
            return inner(own, node, uid, stamp, now)

        def added(own: EmbeddedCluster, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
            if lease.slice.startswith("ends"):
                self._note("starts", due_at(self._begin, int(lease.request.rpartition("/r")[2])))
            return outer(own, node, lease, stamp, now)

        EmbeddedCluster.remove, EmbeddedCluster.add = removed, added  # type: ignore[method-assign]

    def _note(self, what: str, due: datetime) -> None:
        self.late_s[what].append((SystemClock().now() - due).total_seconds())

    def told(self) -> str:
        """Summary since the last call."""
        said = []
        for what, found in self.late_s.items():
            worst = f"the worst {max(found):.1f} s late" if found else "none to measure"
            said.append(f"{len(found)} {what}, {worst}")
            self.late_s[what] = []
        return "; ".join(said)


def push(repo: Path, files: Iterator[tuple[str, bytes]], what: str) -> str:
    """One commit on main."""
    who = b"committer Ada <ada@example.com> %d +0000\n" % int(SystemClock().now().timestamp())
    stream = b"commit refs/heads/main\n" + who + data(what.encode()) + b"from refs/heads/main^0\n"
    stream += b"".join(f"M 100644 inline {path}\n".encode() + data(content) for path, content in files)
    git(repo, "fast-import", "--quiet", "--done", given=stream + b"done\n")
    return git(repo, "rev-parse", "main").decode().strip()


def fleet(repo: Path, given: argparse.Namespace) -> datetime:
    """The documents without a request, and requests that begin and end all the time, from the returned instant."""
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--initial-branch=main")
    git(repo, "config", "gc.auto", "0")
    files = [f for f in large_fleet.files(given.slices * large_fleet.PER_SLICE) if "/gprs/" not in f[0]]
    for number in range(RUNNING):
        name = f"ends{number:02d}"
        spec = {"members": [{"email": "bo@example.com"}], "namespaces": [name], "clusters": ["east"]}
        files.append((f"slices/{name}/slice.yaml", large_fleet.document("Slice", name, spec)))
    begin = SystemClock().now().replace(microsecond=0) + timedelta(seconds=BEGIN_S)
    files += ending(begin, given.minutes)
    stream = b"".join(large_fleet.commit("refs/heads/main", "The fleet", iter(files)))
    git(repo, "fast-import", "--quiet", "--done", given=stream)
    return begin


def ending(begin: datetime, minutes: int) -> Iterator[tuple[str, bytes]]:
    """Requests of a minute each, from that instant on, one every two seconds."""
    for number in range(RUNNING * minutes):
        name, at = f"ends{number % RUNNING:02d}", due_at(begin, number)
        wish = {"slice": name, "nodes": 1, "duration": "0d0h1m", "priority": 150, "gpuShape": "H100-80GB"}
        spec = {**wish, "gpusPerNode": 8, "memoryPerGpu": 80, "notBefore": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
        yield gpr_path(name, f"r{number:04d}"), large_fleet.document("GPR", f"r{number:04d}", spec)


def due_at(begin: datetime, number: int) -> datetime:
    """When one of `ending` may start."""
    return begin + timedelta(seconds=number * 60 / RUNNING)


class Answered:
    """Waits for the cycle that has verified, read and planned a push."""

    def __init__(self, acting: Reconciler) -> None:
        self._acting, self._wanted, self._there = acting, "", Event()

    def watch(self, _: Cycle) -> None:
        """A cycle ended."""
        main = self._acting._memory.main
        if main._gate._at == self._wanted and not main.has_more:
            self._there.set()

    def took_s(self, waking: Waking, commit: str) -> float:
        """Seconds until it is answered."""
        begun_s, self._wanted = monotonic_s(), commit
        self._there.clear()
        waking.wake()
        self._there.wait()
        return monotonic_s() - begun_s


def measure(folder: Path, given: argparse.Namespace, pushes: Pushes, trust: Trust) -> None:
    """One controller's life: each push, and the ends meanwhile."""
    repo, clock = folder / "fleet.git", SystemClock()
    instants = Instants(fleet(repo, given))
    settings = Settings(repo=str(repo), state=folder / "state", pushes_per_minute=None, trust=trust)
    acting = controller(settings, adopt=True, clock=clock)
    answered = Answered(acting)
    waking = Waking(acting, clock, watch=answered.watch, beside=acting.hands.round)
    waking.start()
    Event().wait(WAIT_S)  # until the first of them end
    instants.watch()
    for what, files in pushes.items():
        commit, begun_s = push(repo, files, what), process_time()
        took_s = answered.took_s(waking, commit)
        cpu_s = process_time() - begun_s
        Event().wait(5)  # an end that was held up comes now
        load = os.getloadavg()[0]
        took = f"{took_s:.1f} s until answered, {cpu_s:.1f} s of CPU"
        print(f"{what}: {took}; {instants.told()}; load average {load:.1f}", flush=True)
    waking.stop(600)
    large_fleet.close(acting)


def unknown(folder: Path) -> Trust:
    """Commits are verified by signatures, but no person's key is known: pushed files are held."""
    folder.mkdir()
    key = folder / "controller"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    (folder / "allowed_signers").write_text(f'controller namespaces="git" {public}\n')
    return Trust(level="signature", folder=folder, key=key)


def main() -> None:
    """Make the repositories, measure, print."""
    raw = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    options.add_argument("--requests", type=int, default=20_000)
    options.add_argument("--files", type=int, default=100_000)
    options.add_argument("--slices", type=int, default=200)
    options.add_argument("--nodes", type=int, default=40, help="of each of the four pools")
    options.add_argument("--minutes", type=int, default=30, help="for which strict ends fall due")
    options.add_argument("--plain", action="store_true", help="without the compiled engine")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    large_fleet.NODES, large_fleet.PER_SLICE = given.nodes, max(1, -(-given.requests // given.slices))
    if given.plain:
        kernel.load = lambda: None
    else:
        make_ready()
    requests = (f for f in large_fleet.files(given.requests) if "/gprs/" in f[0])
    above = large_fleet.named(large_fleet.request_of(3, 299), large_fleet.PER_SLICE)
    first = (large_fleet.slice_and_name(large_fleet.PER_SLICE)[0], "above")
    one = [(gpr_path(*first), above.replace(b"g%06d" % large_fleet.PER_SLICE, b"above"))]
    requested = {f"{given.requests} requests": requests, "one request above them": iter(one)}
    many = {f"{given.files} files": (notes(number) for number in range(given.files))}
    with tempfile.TemporaryDirectory() as scratch:
        if given.requests:
            measure(Path(scratch) / "asked", given, requested, Trust())
        if given.files:
            measure(Path(scratch) / "judged", given, many, unknown(Path(scratch) / "trust"))


def notes(number: int) -> tuple[str, bytes]:
    """A request without an authorised author."""
    return gpr_path("s0000", f"held{number:06d}"), large_fleet.request(number).replace(
        b"g%06d" % number, b"held"
    )


if __name__ == "__main__":
    main()
