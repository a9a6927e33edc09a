"""`python -m tests.simulation COMMAND`: runs stories, campaigns and planted bugs; docs/explain/fault-simulation.md.

Exit 0: no law was broken, and every planted bug was noticed; 1: otherwise.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.simulation import campaigns
from tests.simulation.campaigns import STORIES, Sum
from tests.simulation.minimise import minimal
from tests.simulation.mutants import MUTANTS
from tests.simulation.story import Story, as_case, drawn, from_case
from tests.simulation.system import Outcomes, System


def run(asked: argparse.Namespace) -> int:
    """One story: of a seed, or of a case."""
    found = System(_story(asked)).run()
    if asked.journal:
        print("\n".join(found.journal))
    _print(found)
    return 1 if found.broken else 0


def minimise(asked: argparse.Namespace) -> int:
    """The case with the fewest happenings that still breaks a law."""
    story = _story(asked)
    if not System(story).run().broken:
        print("no law is broken", file=sys.stderr)
        return 0
    least = minimal(story)
    print(as_case(least, "what it shows, in a sentence", System(least).run().broken), end="")
    return 1


def campaign(asked: argparse.Namespace) -> int:
    """Many seeds of one kind."""
    begun, total = time.perf_counter(), Sum()
    seeds = range(asked.seed, asked.seed + asked.runs)
    for found in campaigns.several(asked.kind, seeds, asked.workers):
        total.add(found)
        for sentence in found.broken:
            print(f"seed {found.seed}: {sentence}", flush=True)
        if time.perf_counter() - begun > asked.minutes * 60:
            break
    took = time.perf_counter() - begun
    figures = ", ".join(f"{count} {what}s" for what, count in sorted(total.count.items()))
    cpu = sum(os.times()[:4])
    print(
        f"{asked.kind}: {total.runs} runs, {total.hours:.0f} simulated hours in {took:.0f} s, "
        f"{cpu:.0f} s of CPU; {figures}"
    )
    print(f"{len(total.failed)} of them broke a law")
    return 1 if total.failed else 0


def pulled(asked: argparse.Namespace) -> int:
    """Clusters in pull mode."""
    begun = time.perf_counter()
    found, most = campaigns.pulled_week(asked.clusters, asked.days)
    took = time.perf_counter() - begun
    print(
        f"{asked.clusters} clusters, {found.hours:.0f} simulated hours in {took:.0f} s, {found.count['push']} pushes, "
        f"at most {most} of one process in a minute, on average {most_often(found, asked.clusters):.3f}"
    )
    for sentence in found.broken:
        print(f"  broken: {sentence}")
    return 1 if found.broken else 0


def most_often(found: campaigns.Run, clusters: int) -> float:
    """Pushes a minute and host: the appliers' and the controllers'."""
    return found.count["push"] / (found.hours * 60) / (clusters + 2)


def planted(asked: argparse.Namespace) -> int:
    """How many seeds each planted bug survives."""
    wanted = [mutant.name for mutant in MUTANTS if asked.only in mutant.name]
    survivors = 0
    for name in wanted:
        seeds = campaigns.survived(name, asked.runs)
        survivors += seeds is None
        print(f"{'survives all' if seeds is None else seeds:>12}  {name}", flush=True)
    print(f"{len(wanted)} planted bugs, {survivors} survive {asked.runs} seeds")
    return 1 if survivors else 0


def _story(asked: argparse.Namespace) -> Story:
    if asked.case is not None:
        return from_case(yaml.safe_load(asked.case.read_text("utf-8")))
    if asked.kind is not None:
        return STORIES[asked.kind](asked.seed)
    return drawn(asked.seed, asked.hours)


def _print(found: Outcomes) -> None:
    figures = ", ".join(f"{count} {what}s" for what, count in sorted(found.count.items()))
    print(f"{found.hours:.1f} simulated hours, {figures}, digest {found.digest[:16]}")
    for sentence in found.broken:
        print(f"  broken: {sentence}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(act: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = commands.add_parser(act.__name__, help=act.__doc__)
        made.set_defaults(act=act)
        return made

    for one in (command(run), command(minimise)):
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--hours", type=float, default=2.0)
        one.add_argument("--kind", choices=sorted(STORIES), help="the story of that campaign's seed")
        one.add_argument("--case", type=Path, help="a YAML case instead of a seed")
        one.add_argument("--journal", action="store_true", help="print all that happened")
    many = command(campaign)
    many.add_argument("kind", choices=sorted(STORIES))
    many.add_argument("--runs", type=int, default=100)
    many.add_argument("--seed", type=int, default=0, help="the first one")
    many.add_argument("--minutes", type=float, default=30.0, help="no further run after this time")
    many.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    week = command(pulled)
    week.add_argument("--clusters", type=int, default=64)
    week.add_argument("--days", type=float, default=7.0)
    bugs = command(planted)
    bugs.add_argument("--runs", type=int, default=200, help="seeds to try")
    bugs.add_argument("--only", default="", help="those with this in their name")
    return parser


def main() -> int:
    """The command line."""
    asked = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    done: int = asked.act(asked)
    return done


if __name__ == "__main__":
    sys.exit(main())
