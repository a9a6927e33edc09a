"""The logs of a workload's pods, beside its events: by the caller's own kubeconfig, where this program can use one.

Logs are help, so a cluster that cannot be read is a sentence and never the end of the command.

Held by tests/egs/test_job_logs.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from egs.commands import output
from egs.commands.errors import Said
from egs.commands.output import Row

Read = Callable[[], list[Row]]
"""The lines since the last call: `at`, `pod`, `container`, `text`. Raises Said where they cannot be read."""
Opened = Callable[[Mapping[str, Any], str | None, str | None], Read]
"""From the row of a workload that runs, a kubeconfig and its context. Raises Said."""
LOGS: ContextVar[Opened | None] = ContextVar("logs", default=None)
"""How logs are read; None: only the client is installed. Set by the package that can reach clusters."""
EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Own:
    """The caller's way into the cluster, as typed."""

    kubeconfig: str | None = None
    context: str | None = None


@dataclass(slots=True)
class Tail:
    """Prints new lines, and why there are none once for each reason."""

    read: Read
    _said: str = ""

    def look(self) -> None:
        try:
            lines = self.read()
        except Said as error:  # the workload goes on, and so does its state
            self._say(f"the logs of its pods cannot be read: {error}")
            return
        for line in lines:
            output.text(f"{line['pod']}/{line['container']}  {line['text']}")
        if lines:
            self._said = ""
            output.flush()

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            output.note(sentence)
            self._said = sentence


def tail_of(job: Row, driver: str, own: Own) -> Tail | None:
    """For a workload that runs; None, with a sentence, where its logs cannot be had."""
    if driver != "kubernetes":
        output.note(f"cluster {job['cluster']} is simulated, so that the pods of {job['name']} write no logs")
        return None
    opened = LOGS.get()
    if opened is None:
        output.note(
            "the logs of its pods are not shown: this is the client alone; install egs-gitops for them"
        )
        return None
    try:
        return Tail(opened(job, own.kubeconfig, own.context))
    except Said as error:
        slice_, cluster = job["slice"], job["cluster"]
        output.note(
            f"the logs of its pods are not shown: {error} (`egs kubeconfig {slice_} --cluster {cluster}` makes one)"
        )
        return None


@contextmanager
def beside(tail: Tail | None, every_s: float = EVERY_S) -> Iterator[None]:
    """Looks again and again until the end, and once more then."""
    if tail is None:
        yield
        return
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            tail.look()
            ended.wait(every_s)

    thread = threading.Thread(target=run, daemon=True, name="logs")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(EVERY_S)
        if not thread.is_alive():  # else a cluster keeps it waiting, and the caller should not wait too
            tail.look()
