"""What a quarter of a year of kept states weighs on the remote.

    python -m benchmarks.history [--days 98] [--files 10000] [--changed 50] [--minutes 60]

A fleet of 10,000 requests whose status changes as in `benchmarks.growth`, written through
`reconciler.store.branch_writer` with the history branches of `reconciler.status.history`, onto a bare repository.
Time is simulated, the pushes are real; one comes every hour with the changes of an hour, because an hour's last
state is what is kept. At the end the remote is collected and measured with and without the history branches.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.growth import size_mb, status
from benchmarks.repositories import git
from reconciler.settings import DEFAULTS
from reconciler.status.history import History
from reconciler.status.kept_states import Bounds
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Person
from reconciler.store.write_decision import WriterSettings

_START = datetime(2026, 1, 5, tzinfo=UTC)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--days", type=int, default=98)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=50, help="files a minute")
    parser.add_argument("--minutes", type=int, default=60, help="between pushes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        remote = Path(folder) / "remote.git"
        remote.mkdir()
        git(remote, "init", "--quiet", "--bare")
        store = GitStore(str(remote), Path(folder) / "mirror")
        robot, chance = Person("egs", "egs@example.com"), random.Random(1)
        keeps = History(
            store, DEFAULTS.history_branch, robot, Bounds(DEFAULTS.history, DEFAULTS.history_bytes)
        ).keep
        writer = BranchWriter(
            store, "egs/status", "benchmark", robot, WriterSettings(pushes_per_minute=None), keeps=keeps
        )
        assert writer.take_over(_START).landed
        for number in range(asked.days * 1440 // asked.minutes):
            now = _START + number * timedelta(minutes=asked.minutes)
            count = min(asked.files, asked.changed * asked.minutes)
            chosen = range(asked.files) if number == 0 else chance.sample(range(asked.files), count)
            assert writer.write(
                dict(status(each, now, chance) for each in chosen), None, now, "Status"
            ).landed
            store.fetch(["egs/status"])
        store.close()
        git(remote, "gc", "--quiet", "--prune=now")
        whole = size_mb(remote)
        branches = git(remote, "for-each-ref", "--format=%(refname)", "refs/heads/egs/history").split()
        states = sum(int(git(remote, "rev-list", "--count", ref)) for ref in branches)
        for ref in branches:
            git(remote, "update-ref", "-d", ref)
        git(remote, "gc", "--quiet", "--prune=now")
        print(
            f"{len(branches)} branches, {states} states: {whole - size_mb(remote):.1f} MB of {whole:.1f} MB after gc"
        )


if __name__ == "__main__":
    main()
