"""`python -m tests.simulation`: runs stories; docs/fault-simulation.md lists the commands."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.simulation.story import drawn
from tests.simulation.system import System


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--journal", action="store_true")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = System(drawn(asked.seed, asked.hours)).run()
    if asked.journal:
        print("\n".join(found.journal))
    print(f"seed {asked.seed}: {found.hours:.1f} hours, {dict(sorted(found.count.items()))}, {found.digest[:16]}")
    for sentence in found.broken:
        print(f"  broken: {sentence}")
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
