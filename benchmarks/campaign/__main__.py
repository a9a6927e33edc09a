"""Everything at once: controllers killed and paused, clocks that jump, branches that vanish, floods, bad disks.

`python -m benchmarks.campaign [--faults 500] [--gap 2.5] [--seed 1] [--controllers 3]`

Real processes of `egs-reconciler run` work without an election on one bare repository and two simulated clusters, while
people file, cancel and release. A fault comes every `--gap` seconds on average, whatever the last one left behind. The
auditor (`benchmarks.campaign.auditor`) only uses what the documentation promises. At the end faults stop, and the
system must come to rest. Exit 1: a law was broken.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.campaign.auditor import OVER, Auditor, Leases
from benchmarks.campaign.parts import CLOCK, CLUSTERS, CROWD, SLICES, Controller, commit, fleet, request
from benchmarks.repositories import git
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from schemas.documents.cluster import Cluster
from schemas.errors import Fault
from schemas.reading.reader import read_document

FLOOD = 200
TICK_S = 0.25
PEOPLE_S = 20.0
PUT_BACK = timedelta(minutes=2)
"""Longest time until the most advanced controller has restored the branch: all may be killed or paused."""
REST = timedelta(minutes=12)
"""Longest time until the system is at rest after the last fault."""


class Campaign:
    """Faults, people and the auditor, in turn."""

    def __init__(self, root: Path, seed: int, controllers: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.repo, self.away = root / "fleet.git", root / "away.git"
        git(root, "init", "--quiet", "--bare", "--initial-branch=main", str(self.repo))
        git(self.repo, "config", "receive.denyNonFastForwards", "false")
        commit(self.repo, fleet(), CLOCK.now())
        (root / "clusters").mkdir()
        self.controllers = [self._controller(number) for number in range(controllers)]
        self.auditor = Auditor(self.repo)
        self.clusters = {name: self._cluster(name) for name in CLUSTERS}
        self.faults: Counter[str] = Counter()
        self.filed: dict[str, timedelta] = {}
        self.ended: set[str] = set()  # requests that a person cancelled or released
        self.reset_until: datetime | None = None
        self.back_at: datetime | None = None
        self.crowd: list[str] = []
        self.count = 0
        self.adoptions = 0

    def _controller(self, number: int) -> Controller:
        state = self.root / f"state-{number}"
        state.mkdir()
        (state / "clusters").symlink_to(self.root / "clusters")
        (state / "offset").write_text("0")
        return Controller(self.repo, state)

    def _cluster(self, name: str) -> EmbeddedCluster:
        path = f"clusters/{name}.yaml"
        document = read_document(path, fleet()[path].encode())
        assert isinstance(document, Cluster)
        return EmbeddedCluster(name, document.spec, self.root / "clusters" / f"{name}.json")

    # -- faults ----------------------------------------------------------------------------------------------

    def fault(self, now: datetime) -> None:
        """Inject one random fault."""
        kinds: list[tuple[int, Callable[[datetime], str]]] = [
            (52, self._kill), (18, self._pause), (10, self._clock), (4, self._branch_deleted),
            (4, self._branch_set_back), (5, self._remote_away), (4, self._damaged), (3, self._flood),
        ]  # fmt: skip
        (act,) = self.random.choices([act for _, act in kinds], [weight for weight, _ in kinds])
        self.faults[act(now)] += 1

    def _one(self) -> Controller:
        return self.random.choice(self.controllers)

    def _kill(self, now: datetime) -> str:
        one = self._one()
        one.kill()
        one.due = now + timedelta(seconds=self.random.choice((0, 0, 1, 5, 20)))
        return "kill -9"

    def _pause(self, now: datetime) -> str:
        one = self._one()
        one.is_paused, one.until = True, now + timedelta(seconds=self.random.uniform(1, 30))
        one.signal(signal.SIGSTOP)
        return "pause"

    def _clock(self, now: datetime) -> str:
        """The clock of a running machine jumps either way; or a machine restarts with a clock that is behind."""
        one = self._one()
        wrong = self.random.choice((90, 600, 3600, 86400))
        if self.random.random() < 0.5:
            one.kill()
            one.set_clock(-wrong)
        else:
            one.set_clock(self.random.choice((-1, 1)) * wrong)
        one.until = now + timedelta(seconds=self.random.uniform(5, 40))
        return "clock jumps"

    def _branch_deleted(self, now: datetime) -> str:
        git(self._there(), "update-ref", "-d", "refs/heads/egs/status")
        self.reset_until = now + PUT_BACK
        return "status branch deleted"

    def _branch_set_back(self, now: datetime) -> str:
        where = self._there()
        tip = git(where, "for-each-ref", "--format=%(objectname)", "refs/heads/egs/status").decode().strip()
        if tip:
            rows = git(where, "rev-list", "--first-parent", "-20", tip).decode().split()
            git(where, "update-ref", "refs/heads/egs/status", self.random.choice(rows))
            self.reset_until = now + PUT_BACK
        return "status branch set back"

    def _remote_away(self, now: datetime) -> str:
        if self.repo.exists():
            self.repo.rename(self.away)
            self.back_at = now + timedelta(seconds=self.random.uniform(1, 15))
        return "remote away"

    def _damaged(self, _: datetime) -> str:
        """One byte of a controller's mirror flips, or one of its files is truncated."""
        mirror = self._one().state / "mirror.git"
        files = sorted(
            f
            for f in mirror.rglob("*")
            if f.is_file() and f.suffix in (".pack", ".idx", "") and f.stat().st_size
        )
        if files:
            file = self.random.choice(files)
            data = bytearray(file.read_bytes())
            place = self.random.randrange(len(data))
            if self.random.random() < 0.5:
                data[place] ^= 0xFF
            else:
                del data[place:]
            file.chmod(0o644)
            file.write_bytes(data)
        return "mirror damaged"

    def _flood(self, now: datetime) -> str:
        if self.crowd or not self.repo.exists():
            return "flood, skipped: one is running"
        files: dict[str, str | None] = {}
        for _ in range(FLOOD):
            self.count += 1
            self.crowd.append(key := f"{CROWD}/r{self.count}")
            files |= request(key, 1, 60, 1)
        commit(self.repo, files, now)
        return f"flood of {FLOOD} requests"

    def _there(self) -> Path:
        return self.repo if self.repo.exists() else self.away

    # -- people ----------------------------------------------------------------------------------------------

    def people(self, now: datetime) -> None:
        """File one request; now and then cancel another; now and then the crowd withdraws."""
        if not self.repo.exists():
            return
        files: dict[str, str | None] = {}
        if self.crowd and self.random.random() < 0.3:
            for key in self.crowd:
                files |= request(key, 1, 60, 1, "  earlyRelease: true\n")
            self.ended |= set(self.crowd)
            self.crowd = []
        self.count += 1
        key = f"{self.random.choice(SLICES)}/r{self.count}"
        minutes = self.random.choice((2, 2, 3))
        shape = (self.random.choice((1, 1, 2)), minutes, self.random.choice((50, 101, 150, 250)))
        self.filed[key] = timedelta(minutes=minutes)
        files |= request(key, *shape)
        if self.random.random() < 0.2 and (mine := self._open_request()):
            files |= request(mine, 1, 2, 101, "  earlyRelease: true\n")
            self.ended.add(mine)
        commit(self.repo, files, now)

    def _open_request(self) -> str | None:
        keys = [
            key
            for key, status in self.auditor.requests.items()
            if status["phase"] not in OVER and key in self.filed
        ]
        waiting = [key for key in keys if self.auditor.requests[key]["phase"] == "Queued"]
        return self.random.choice(waiting) if waiting else None

    # -- the run ---------------------------------------------------------------------------------------------

    def step(self, now: datetime) -> None:
        """Check the processes and the state."""
        if self.back_at is not None and now >= self.back_at:
            self.away.rename(self.repo)
            self.back_at = None
        for each in self.controllers:
            each.look(now)
        try:
            on = self._leases()
        except Fault:
            return
        adoptions = sum(each.ended["NotAdopted"] for each in self.controllers)
        if adoptions > self.adoptions:
            self.adoptions = adoptions
            self.auditor.adopted()
        attended = any(each.is_well(now) for each in self.controllers)
        if self.repo.exists():
            was_reset = self.reset_until is not None and now < self.reset_until
            self.auditor.look(on, CLOCK.now(), attended=attended, was_reset=was_reset)

    def _leases(self) -> Leases:
        found = {}
        for name, cluster in self.clusters.items():
            for node in cluster.observe(CLOCK.now()).nodes.values():
                if node.lease is not None:
                    found[name, node.name] = node.lease.uid
        return found

    def is_at_rest(self) -> bool:
        """Every filed request is over, and every node is free."""
        phases = [self.auditor.requests.get(key, {}).get("phase") for key in self.filed]
        return (
            all(p in OVER or (p is None and k in self.ended) for k, p in zip(self.filed, phases, strict=True))
            and not self._leases()
        )

    def run(self, faults: int, gap_s: float) -> None:
        """All faults, then rest."""
        next_fault = next_person = CLOCK.now() + timedelta(seconds=15)
        while sum(self.faults.values()) < faults:
            now = CLOCK.now()
            self.step(now)
            if now >= next_fault:
                self.fault(now)
                next_fault = now + timedelta(seconds=self.random.expovariate(1 / gap_s))
            if now >= next_person:
                self.people(now)
                next_person = now + timedelta(seconds=self.random.expovariate(1 / PEOPLE_S))
            time.sleep(TICK_S)
        self._come_to_rest()

    def _come_to_rest(self) -> None:
        begun = CLOCK.now()
        for each in self.controllers:
            each.until = begun
        self.back_at = begun if self.away.exists() else None
        late = begun + REST
        while CLOCK.now() < late and not (self.is_at_rest() and not self.crowd):
            self.step(CLOCK.now())
            if self.crowd and self.repo.exists():
                files: dict[str, str | None] = {}
                for key in self.crowd:
                    files |= request(key, 1, 60, 1, "  earlyRelease: true\n")
                commit(self.repo, files, CLOCK.now())
                self.crowd = []
            time.sleep(TICK_S)
        self.auditor.finish(self.filed, self.ended, CLOCK.now())

    def stop(self) -> None:
        """Stop all processes."""
        for each in self.controllers:
            each.kill()


def told(campaign: Campaign) -> str:
    """The figures, and every broken law."""
    auditor = campaign.auditor
    late = sorted(auditor.lateness)
    phases = Counter(auditor.requests.get(key, {}).get("phase") for key in campaign.filed)
    ended = sum((each.ended for each in campaign.controllers), Counter())
    lines = [
        f"faults: {sum(campaign.faults.values())}",
        *(f"  {kind}: {n}" for kind, n in campaign.faults.most_common()),
    ]
    lines += [
        f"requests: {len(campaign.filed)}; {', '.join(f'{n} {phase}' for phase, n in phases.most_common())}"
    ]
    lines += [
        f"commits seen on egs/status: {auditor.commits}; processes that ended by themselves: {dict(ended) or 'none'}"
    ]
    lines.append(f"filed anew, unknown to the controller that put the branch back: {auditor.filed_anew}")
    if late:
        middle, worst = late[len(late) // 2], late[-1]
        lines.append(
            f"leases: {len(late)}; late ends, less time without a controller: median {middle}, worst {worst}"
        )
    lines += [f"laws broken: {len(auditor.broken)}", *(f"  {sentence}" for sentence in auditor.broken)]
    return "\n".join(lines)


def main() -> None:
    """Exit 1 when a law was broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--gap", type=float, default=2.5, help="seconds between two faults, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep all files in this folder, for inspection")
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="egs-campaign-")) if given.keep is None else given.keep
    root.mkdir(exist_ok=True)
    campaign = Campaign(root, given.seed, given.controllers)
    try:
        campaign.run(given.faults, given.gap)
    finally:
        campaign.stop()
        if given.keep is None:
            shutil.rmtree(root, ignore_errors=True)
    print(told(campaign))
    sys.exit(bool(campaign.auditor.broken))


if __name__ == "__main__":
    main()
