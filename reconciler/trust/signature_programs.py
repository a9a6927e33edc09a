"""Run the two programs that check signatures for us, in a closed world.

A fixed argument list, an environment made from nothing, a time limit, and answers of bounded size. What they are given
was read and written anew by us before, so that a stranger's bytes are never their input as they came.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from schemas.errors import Fault

LIMIT_S = 30.0
"""A signature is checked in a hundredth of a second; what takes so long says that the machine is in trouble."""


def found(program: str) -> str | None:
    """Where a program is, as a full path; None: it is not installed."""
    where = shutil.which(program)
    return None if where is None else str(Path(where).absolute())


def answer(command: Sequence[str], home: Path, given: bytes = b"") -> tuple[int, bytes]:
    """The exit status and what was written to stdout. Fault `VerifierTimedOut`."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - an absolute path and fixed arguments
            command,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=home,
            timeout=LIMIT_S,
            check=False,
            start_new_session=True,  # it has no terminal to ask at
        )
    except subprocess.TimeoutExpired as error:
        name = Path(command[0]).name
        raise Fault(
            f"{name} took longer than {LIMIT_S:g} s over one signature", "VerifierTimedOut"
        ) from error
    return done.returncode, done.stdout
