"""Builds the compiled planner where the installation has none: in a checkout, or of a wheel made without a compiler.

It takes some seconds, once per machine and state of its sources. Plans are identical with and without it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scheduler.kernel import library

log = logging.getLogger(__name__)

MANY = 1000
"""Waiting requests from which a command waits for it: it makes more than a plan."""
PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG")
BUILD_S = 120
_FAILED = "planner not compiled error=%s; large queues take longer"


def make_ready() -> None:
    """Builds the library into the user's cache, if there is none yet. Safe in any thread and process."""
    if library.load() is not None:
        return
    folder = library.cache_folder()
    compilers = [path for path in map(shutil.which, library.COMPILERS) if path is not None]
    if folder is None or not compilers:
        log.warning(_FAILED, "no C compiler" if folder else "no cache")
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _build(compilers, folder)
    except (OSError, subprocess.SubprocessError) as error:
        log.warning(_FAILED, type(error).__name__)
        return
    if library.load() is None:
        log.warning(_FAILED, "cannot be loaded")
        return
    log.info("planner compiled")


def _build(compilers: Sequence[str], folder: Path) -> None:
    """With the first compiler that can. Others may build at the same time: each moves its own into place."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        target = Path(own) / library.name()
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}  # no secrets
        for number, compiler in enumerate(compilers, start=1):
            done = subprocess.run(  # noqa: S603 - the sources are ours
                library.command(compiler, target),
                check=number == len(compilers),
                capture_output=True,
                timeout=BUILD_S,
                env=environment,
            )
            if done.returncode == 0:
                break
        target.chmod(0o700)
        target.replace(folder / target.name)
