"""`egs validate`: every problem of a repository in one run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from reconciler.cli.answers.kept_validation import Known, Refs, keep, state_of
from reconciler.clock import wall
from reconciler.documents.finished_files import standing
from reconciler.queries.state import clock
from reconciler.sources.folder import TOP
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from schemas.errors import EgsError
from schemas.reading.reader import read_document, rule_of
from schemas.rules.check import File, check_files
from schemas.rules.check_result import CheckResult
from schemas.rules.problems import Problem
from schemas.rules.repository import Repository
from schemas.status.gpr_status import Phase

_LONG = 2000
"""From this many files on, a progress bar is shown."""


def found_in(given: str | None, refs: Refs, clone: Path | None, known: Known | None) -> CheckResult:
    """Every problem of what `given` names. In a `clone` the result is kept, and `known` is what was: used if it still
    holds."""
    with opened(given) as source:
        if known is not None and known.head == _head(source):
            return known.result
        state = None if clone is None else state_of(clone, TOP, wall())  # before any file is read
        status = Status(source)
        result = checked(source, refs, status)
        if clone is not None and state is not None:
            keep(clone, Known(state, result, status.now, status.is_asked, _head(source), TOP))
    return result


def _head(source: Source) -> str | None:
    """The commit of the status; None without one."""
    status = source.status()
    return None if status is None else status[1]


def checked(source: Source, refs: Refs, status: Status) -> CheckResult:
    """Every problem at the first ref; with the second also the edits that a request's phase forbids."""
    ref, against = refs
    files = source.files(ref)
    base = None if against is None else _repository(source.files(against))
    known = None if against is None else status.phases()

    def is_recorded(path: str) -> bool:
        found = rule_of(path)
        return found is not None and (found[1].get("slice", ""), found[1].get("name", "")) in status.phases()

    found = check_files(_shown(files), base, known, status.now, is_recorded)
    return replace(found, problems=status.standing(found.problems))


class Status:
    """The status as last written, read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.is_asked = False
        self._phases: dict[tuple[str, str], Phase] | None = None

    @cached_property
    def now(self) -> datetime:
        return clock(None, self._source)

    def phases(self) -> dict[tuple[str, str], Phase]:
        """The phase of each request; empty without a status."""
        self.is_asked = True
        if self._phases is None:
            loaded = self._source.loaded(self.now)
            requests = {} if loaded is None else loaded.facts.requests
            named = ((*key.partition("/")[::2], status.phase) for key, status in requests.items())
            self._phases = {(slice_, name): phase for slice_, name, phase in named}
        return self._phases

    def standing(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Without those of finished requests; an unreadable status filters none."""
        if not problems:
            return problems
        self.is_asked = True
        try:
            loaded = self._source.loaded(self.now)
        except EgsError:
            return problems
        return problems if loaded is None else standing(problems, loaded.facts.requests)


def _repository(files: Sequence[File]) -> Repository:
    repository = Repository()
    repository.update({path: read_document(path, data, mode) for path, mode, data in files})
    return repository


def _shown(files: Sequence[File]) -> Iterator[File]:
    """The files, with a progress bar on stderr when they are many and it is a terminal."""
    if len(files) < _LONG or not sys.stderr.isatty():
        yield from files
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(files, "Reading documents", console=Console(stderr=True), transient=True)
