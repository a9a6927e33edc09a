"""How long Slurm's backfill takes for the worlds of `benchmarks.planner`: `python -m benchmarks.peer_slurm`.

A real slurmctld (Debian: `apt-get install slurmctld slurm-client munge`, as root) with nodes of state CLOUD, which
need no slurmd: all of them are busy at the start, as in our worlds, and one full backfill cycle looks at every pending
job. Its length and depth are what `sdiag` says. Slurm does more in that cycle than plan: docs/explain/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.planner import world
from scheduler.plan import plan
from scheduler.snapshot import Snapshot

CASES = ((1_000, 1_000), (5_000, 5_000))
"""Nodes, pending requests."""
PROGRAMS = ("slurmctld", "sbatch", "squeue", "sdiag", "munged")
RESOLUTION_S = 300
PATIENCE_S = 1_800
"""Longest wait for one full cycle."""
SOON_S = 30
"""Longest wait for a daemon to start."""
PORT = 16817
MUNGE = {"socket": "sock", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
FILED = 10_000
"""More than the requests of any case: at equal priority the first filed comes first, as in ours."""
MOST_URGENT = 1_000 * FILED
AT_ONCE = 4
"""`sbatch` processes side by side."""

CONFIG = """
ClusterName=bench
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock
CredType=cred/munge
StateSaveLocation={home}/state
SlurmctldPidFile={home}/slurmctld.pid
SlurmctldLogFile={home}/slurmctld.log
MaxJobCount=100000
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/linear
PriorityType=priority/basic
SchedulerType=sched/backfill
SchedulerParameters=bf_max_job_test={jobs},bf_max_time=3600,bf_window=43200,bf_resolution={resolution},bf_interval=5,bf_continue,\
bf_yield_interval=10000000,default_queue_depth=1,sched_interval=3600,max_rpc_cnt=0
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
ResumeTimeout=65000
TreeWidth=65533
NodeName=n[1-{nodes}] CPUs=1 State=CLOUD
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=EXCLUSIVE State=UP
"""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One full backfill cycle: duration, number of examined jobs, and starts by job name."""

    seconds: float
    depth: int
    starts: Mapping[str, int]


def main() -> None:
    """Prints one line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_slurm", description=__doc__)
    parser.add_argument("--case", metavar="NODESxPENDING", help="only this one, like 1000x1000")
    given = parser.parse_args()
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        needs = ", ".join(missing or PROGRAMS)
        sys.exit(f"peer_slurm: needs root and {needs}; apt-get install slurmctld slurm-client munge")
    cases = CASES if given.case is None else (tuple(map(int, given.case.split("x"))),)
    version = _run({}, "slurmctld", "-V").strip()
    print(f"{version}, resolution {RESOLUTION_S} s")
    print(f"{'nodes':>6} {'pending':>8} {'cycle, s':>9} {'depth':>6} {'ours, s':>8}  starts")
    for nodes, pending in cases:
        snapshot = world(pending, nodes)
        took, ours = _ours(snapshot)
        cycle = measured(snapshot, nodes)
        figures = f"{nodes:>6,} {pending:>8,} {cycle.seconds:>9.2f} {cycle.depth:>6,} {took:>8.4f}"
        print(f"{figures}  {_beside(cycle.starts, ours)}", flush=True)


def _ours(snapshot: Snapshot) -> tuple[float, dict[str, int]]:
    """Seconds for a plan from nothing (the second one: programs are loaded then), and its starts."""
    plan(snapshot)
    begin = time.perf_counter()
    planned = plan(snapshot)
    took = time.perf_counter() - begin
    return took, {key: place.start for key, place in planned.placements.items()}


def _beside(theirs: Mapping[str, int], ours: Mapping[str, int]) -> str:
    """Comparison of Slurm's starts with ours."""
    later = sorted(start - ours[key] for key, start in theirs.items())
    quarter_off = sum(abs(seconds) > 900 for seconds in later)
    median = statistics.median(later) / 60 if later else float("nan")
    return f"{len(later):,} starts, median {median:+.1f} min from ours, {quarter_off:,} more than 15 min away"


def measured(snapshot: Snapshot, nodes: int) -> Cycle:
    """A controller with the snapshot's leases running and its requests pending, until one cycle has seen them all."""
    pending = len(snapshot.requests)
    with _controller(nodes, pending) as env:
        _submit(
            env, [(lease.key, len(lease.nodes), lease.end, MOST_URGENT) for lease in snapshot.leases.values()]
        )
        _wait(lambda: "idle" not in _run(env, "sinfo", "-h", "-o", "%T"), "the nodes are not all busy")
        requests = snapshot.requests.values()
        _submit(
            env, [(r.key, r.nodes, r.duration, r.priority * FILED + FILED - r.filed_at) for r in requests]
        )
        _wait(lambda: _has_seen(env, pending), "no cycle looked at every job")
        seconds, depth = _last_cycle(env)
        return Cycle(seconds, depth, _starts(env))


@contextlib.contextmanager
def _controller(nodes: int, jobs: int) -> Iterator[dict[str, str]]:
    """A munged and a slurmctld in a folder of their own; the environment in which commands speak to them."""
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    home.chmod(0o755)
    (home / "state").mkdir()
    (home / "munge.key").write_bytes(secrets.token_bytes(1024))
    (home / "munge.key").chmod(0o400)
    text = CONFIG.format(home=home, nodes=nodes, jobs=jobs, resolution=RESOLUTION_S, port=PORT)
    (home / "slurm.conf").write_text(text, "utf-8")
    env = {**os.environ, "SLURM_CONF": str(home / "slurm.conf"), "TZ": "UTC"}
    munge = [f"--{name}={home}/munge.{kind}" for name, kind in MUNGE.items()]
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(
            subprocess.Popen(["munged", "--foreground", "--force", *munge], stderr=subprocess.DEVNULL)
        )
        _wait((home / "munge.sock").exists, "munged does not start", SOON_S)
        started.append(subprocess.Popen(["slurmctld", "-D", "-c"], env=env, stderr=subprocess.DEVNULL))
        _wait(lambda: "UP" in _run(env, "scontrol", "ping"), "slurmctld does not start", SOON_S)
        yield env
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _submit(env: Mapping[str, str], jobs: Sequence[tuple[str, int, int, int]]) -> None:
    """Jobs as (name, nodes, seconds, priority), a few at a time; Slurm counts whole minutes."""

    def one(job: tuple[str, int, int, int]) -> None:
        name, nodes, seconds, priority = job
        minutes = -(-seconds // 60)
        wish = (f"--job-name={name}", f"--nodes={nodes}", f"--time={minutes}", f"--priority={priority}")
        _run(env, "sbatch", "--quiet", "--output=/dev/null", "--chdir=/tmp", *wish, "--wrap=true")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, jobs))


def _has_seen(env: Mapping[str, str], pending: int) -> bool:
    """Whether the last cycle examined that many jobs; if not, change a job, since no cycle begins without a change."""
    if _last_cycle(env)[1] >= pending:
        return True
    last = _run(env, "squeue", "-h", "-t", "PD", "-o", "%A").split()[-1]
    _run(env, "scontrol", "update", f"JobId={last}", "Comment=again")
    return False


def _last_cycle(env: Mapping[str, str]) -> tuple[float, int]:
    """Seconds and depth of the backfill's last cycle."""
    text = _run(env, "sdiag").partition("Backfilling stats")[2]
    took = re.search(r"Last cycle: (\d+)", text)
    depth = re.search(r"Last depth cycle: (\d+)", text)
    return (int(took[1]) / 1e6, int(depth[1])) if took and depth else (0.0, 0)


def _starts(env: Mapping[str, str]) -> dict[str, int]:
    """Expected starts in seconds after the last job was filed, by job name, for jobs that have one."""
    rows = (line.split() for line in _run(env, "squeue", "-h", "--start", "-o", "%j %S").splitlines())
    found = {name: at for name, at in rows if at[0].isdigit()}
    filed = max(_run(env, "squeue", "-h", "-o", "%V").split())
    return {name: int((_instant(at) - _instant(filed)).total_seconds()) for name, at in found.items()}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


def _run(env: Mapping[str, str], *command: str) -> str:
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    return done.stdout


def _wait(is_so: Callable[[], bool], otherwise: str, patience_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"peer_slurm: {otherwise} after {patience_s} s")
        time.sleep(1)


if __name__ == "__main__":
    main()
