"""`egs validate`: every problem of a repository in one run, as people, programs and forges read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from egs.commands import output
from reconciler.documents.finished_files import standing
from reconciler.queries.state import clock
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from schemas.errors import EgsError
from schemas.reading.reader import read_document, rule_of
from schemas.rules.check import CheckResult, File, as_annotations, as_json, check_files
from schemas.rules.problems import Problem
from schemas.rules.repository import Repository
from schemas.status.gpr_status import Phase

_LONG = 2000
"""From this many files on, a progress bar is shown."""


def checked(source: Source, ref: str | None, against: str | None) -> CheckResult:
    """Every problem at `ref`; with `against` also the edits that a request's phase forbids."""
    files = source.files(ref)
    base = None if against is None else _repository(source.files(against))
    known = None if against is None else phases(source)
    recorded = cache(partial(phases, source))

    def is_recorded(path: str) -> bool:
        found = rule_of(path)
        return found is not None and (found[1].get("slice", ""), found[1].get("name", "")) in recorded()

    found = check_files(_shown(files), base, known, clock(None, source), is_recorded)
    return replace(found, problems=_standing(source, found.problems))


def _standing(source: Source, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Without those of finished requests; an unreadable status filters none."""
    try:
        loaded = source.loaded(clock(None, source)) if problems else None
    except EgsError:
        return problems
    return problems if loaded is None else standing(problems, loaded.facts.requests)


def phases(source: Source) -> dict[tuple[str, str], Phase]:
    """The phase of each request, as last written; empty without a status."""
    loaded = source.loaded(clock(None, source))
    if loaded is None:
        return {}
    found = {}
    for key, status in loaded.facts.requests.items():
        slice_, _, name = key.partition("/")
        found[slice_, name] = status.phase
    return found


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


def show_validation(
    repo: str | None, path: str | None, refs: tuple[str | None, str | None], form: str
) -> int:
    """Returns the exit code: 1 if there is an error."""
    with opened(path or repo) as source:
        result = checked(source, *refs)
    if form == "json":
        output.text(as_json(result))
    elif form == "github":
        sys.stdout.write(as_annotations(result))
    else:
        _print(result)
    return 0 if result.ok else 1


def _print(result: CheckResult) -> None:
    for p in result.problems:
        output.text(f"{p.file}:{p.line}:{p.column}: {p.severity} {p.rule}: {p.message}; {p.fix}")
    counts = {
        kind: sum(p.severity == kind for p in result.problems) for kind in ("error", "warning", "notice")
    }
    found = ", ".join(output.counted(n, kind) for kind, n in counts.items() if n)
    output.note(f"{output.counted(result.documents, 'document')}, {found or 'nothing wrong'}")
