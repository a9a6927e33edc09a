"""`egs-pre-receive`: the process that a Git server starts for each push; `reconciler.receiving` is what it decides.

Settings are the controller's: EGS_VERIFY and EGS_TRUST. Who pushes is what the server says: EGS_PUSHER, or what
web servers (REMOTE_USER) and gitolite (GL_USER) set. Anything that breaks refuses the push.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast, get_args

from reconciler.clock import SystemClock
from reconciler.receiving import Receiver, pushes
from reconciler.settings import Trust
from reconciler.store.local import LocalStore, quarantine
from reconciler.trust.assessing import Sources
from reconciler.trust.keyring import TrustFolder
from reconciler.trust.machines import machines_of
from reconciler.trust.model import Level
from reconciler.trust.verifying import SystemVerifier
from schemas.errors import EgsError, UserError

MOST_REFS = 1000


def received(lines: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """Why this push is refused, a sentence each; nothing: it may land."""
    wanted = pushes(lines)
    if len(wanted) > MOST_REFS:
        return [f"{len(wanted)} refs at once; push at most {MOST_REFS}"]
    trust = _trust(environment)
    store = LocalStore(Path(environment.get("GIT_DIR", ".")), quarantine(environment))
    try:
        return Receiver(
            store,
            _sources(trust),
            machines_of(trust),
            _pusher(environment),
            SystemClock().now().replace(microsecond=0),
        ).refusals(wanted)
    finally:
        store.close()


def _trust(environment: Mapping[str, str]) -> Trust:
    level = environment.get("EGS_VERIFY") or "none"
    if level not in get_args(Level):
        raise UserError(f"EGS_VERIFY is {level!r}; write {', '.join(get_args(Level))}", "WrongUse")
    folder = environment.get("EGS_TRUST")
    return Trust(cast("Level", level), Path(folder).expanduser().absolute() if folder else None)


def _sources(trust: Trust) -> Sources:
    """What a server without a forge can ask: signatures, where they are asked for at all."""
    level: Level = "signature" if trust.level in ("signature", "both") else "none"
    return Sources(level, TrustFolder(trust.folder).keyring, SystemVerifier(trust.folder))


def _pusher(environment: Mapping[str, str]) -> str:
    names = (environment.get(name, "") for name in ("EGS_PUSHER", "REMOTE_USER", "GL_USER"))
    return next(filter(None, names), "")


def main() -> None:
    """The console script; git shows whoever pushes what is said on stderr."""
    try:
        sentences = received(sys.stdin, os.environ)
    except (EgsError, OSError, ValueError) as error:
        sentences = [f"the push cannot be judged: {error}"]
    for sentence in sentences:
        sys.stderr.write(f"egs: {sentence}\n")
    sys.exit(1 if sentences else 0)


if __name__ == "__main__":
    main()
