"""`egs validate`, as people, programs and forges read it. Checks nothing while a clone is as it was."""

from __future__ import annotations

import sys

from egs.commands import output
from reconciler.cli.answers.kept_validation import Refs, clone_of, recalled
from schemas.rules.check_result import CheckResult, as_annotations, as_json


def show_validation(repo: str | None, path: str | None, refs: Refs, form: str) -> int:
    """Returns the exit code: 1 if there is an error."""
    result = _result(path or repo, refs)
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


def _result(given: str | None, refs: Refs) -> CheckResult:
    clone = clone_of(given) if refs == (None, None) else None
    known = None if clone is None else recalled(clone)
    if known is not None and not known.is_asked:
        return known.result
    from reconciler.cli.answers.validation import found_in  # models and rules: two thirds of a second

    return found_in(given, refs, clone, known)
