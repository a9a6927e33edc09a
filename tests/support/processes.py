"""Processes that tests start."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Text = TypeVar("Text", str, bytes)


@contextmanager
def awaited(process: subprocess.Popen[Text]) -> Iterator[subprocess.Popen[Text]]:
    """The end of the block waits for the process, which the block has told to end; a block that fails kills it.

    `with Popen(...)` alone waits for ever where an assertion failed before the process was told.
    """
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
