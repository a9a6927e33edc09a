"""`egs-pre-receive`: the process that a Git server starts for each push; `push_hook` decides.

It uses the controller's settings EGS_VERIFY and EGS_TRUST. The server names the pusher: EGS_PUSHER, or the
variables of web servers (REMOTE_USER) and gitolite (GL_USER). Any failure refuses the push.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast, get_args

from reconciler.clock import SystemClock
from reconciler.model.evidence import Level
from reconciler.processes.push_hook import Receiver, pushes
from reconciler.settings import Trust
from reconciler.store.git.local_store import LocalStore, quarantine
from reconciler.trust.keyring import TrustFolder
from reconciler.trust.machines import machines_of
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.step_evidence import Sources
from schemas.errors import EgsError, UserError

MOST_REFS = 1000
HELP = """\
egs-pre-receive: judges a push before it lands; git runs it as the hook `pre-receive` of a bare repository.

It takes no arguments. Stdin has a line for each ref that is pushed: OLD NEW REF, as git gives them.

  EGS_VERIFY    none (default), signature, forge or both: how changes of main are judged; without signatures in it,
                documents alone are
  EGS_TRUST     folder of the operator's keys: allowed_signers, revoked_keys, gpg/
  EGS_PUSHER    who pushes, as the server knows them (else REMOTE_USER, then GL_USER); agent:CLUSTER/NODE, for
                example, is held to its own branch

The hook deploy/forges/pre-receive sets EGS_VERIFY=signature and EGS_TRUST=/etc/egs/trust where they are not set.

Exit 0: it may land. 1: it is refused, with a sentence for each reason on stderr. 2: wrong use.
"""


def received(lines: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """Why this push is refused, in sentences; empty: it is allowed."""
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
    """The evidence on a server without a forge: signatures, if they are required at all."""
    level: Level = "signature" if trust.level in ("signature", "both") else "none"
    return Sources(level, TrustFolder(trust.folder).keyring, SystemVerifier(trust.folder))


def _pusher(environment: Mapping[str, str]) -> str:
    names = (environment.get(name, "") for name in ("EGS_PUSHER", "REMOTE_USER", "GL_USER"))
    return next(filter(None, names), "")


def main() -> None:
    """The console script; git shows stderr to the pusher."""
    if sys.argv[1:]:
        is_asked = sys.argv[1:] in (["--help"], ["-h"])
        (sys.stdout if is_asked else sys.stderr).write(HELP)
        sys.exit(0 if is_asked else 2)
    try:
        sentences = received(sys.stdin, os.environ)
    except (EgsError, OSError, ValueError) as error:
        sentences = [f"the push could not be judged: {error}"]
    for sentence in sentences:
        sys.stderr.write(f"egs: {sentence}\n")
    sys.exit(1 if sentences else 0)


if __name__ == "__main__":
    main()
