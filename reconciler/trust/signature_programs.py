"""Runs the two programs that check signatures, isolated.

A fixed argument list, an empty environment plus what is needed, a time limit, and bounded output. Their input
was parsed and written again by us, so that untrusted bytes never reach them unchanged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from schemas.errors import Fault

LIMIT_S = 30.0
"""A check takes a hundredth of a second; beyond this limit the machine is in trouble."""


def found(program: str) -> str | None:
    """A program's full path; None: it is not installed."""
    where = shutil.which(program)
    return None if where is None else str(Path(where).absolute())


def answer(command: Sequence[str], home: Path, given: bytes = b"") -> tuple[int, bytes]:
    """Exit status and stdout. Fault `VerifierTimedOut`."""
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
            start_new_session=True,  # no terminal to prompt on
        )
    except subprocess.TimeoutExpired as error:
        name = Path(command[0]).name
        raise Fault(
            f"{name} took longer than {LIMIT_S:g} s to check one signature", "VerifierTimedOut"
        ) from error
    return done.returncode, done.stdout
