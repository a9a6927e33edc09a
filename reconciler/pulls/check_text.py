"""A check as plain text, for a terminal and a job's log. Pure. Held by tests/reconciler/pulls/test_check_comment.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.pulls import check_sentences
from reconciler.pulls.check import NEEDS_APPROVAL, PullCheck
from reconciler.pulls.check_sentences import Tongue
from schemas.reading.units import counted, instant


def safe(text: str) -> str:
    """Untrusted text without anything that controls a terminal or starts a workflow command."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))
    return shown.replace("::", ": :")


_TONGUE = Tongue(safe, safe)


def text(check: PullCheck) -> str:
    """The whole check, the verdict first."""
    blocks = [
        [check_sentences.verdict(check, _TONGUE)],
        [*_problems(check)],
        [*_table(("REQUEST", "CHANGE", "START", "WAIT", "END", "WHERE", "GPUS", "COST"), _requests(check))],
        [f"{safe(need.key)}: {check_sentences.approval(need, _TONGUE)}" for need in check.needs],
        [*_table(("REQUEST", "START WAS", "START NOW", "MOVES", "WHY"), _moved(check))],
        [*_others(check)],
        [*_who(check)],
        check_sentences.against(check, _TONGUE),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _problems(check: PullCheck) -> Iterator[str]:
    for p in check.problems:
        if p.rule == NEEDS_APPROVAL:
            continue  # reported below, with who may approve
        place = safe(f"{p.file}:{p.line}:{p.column}")
        yield f"{place} {p.severity} {p.rule}: {safe(p.message)}; {safe(p.fix)}"
    for denial in check.judged.denials:
        yield f"{safe(denial.path)} error {denial.rule}: {safe(check_sentences.refusal(denial))}"
    for path in check.conflicts:
        yield f"{safe(path)} error Conflict: main changed this file too; merge main into the branch"


def _requests(check: PullCheck) -> list[tuple[str, ...]]:
    return [
        (
            safe(request.key),
            request.change,
            check_sentences.start(request) or safe(request.message or request.reason or ""),
            check_sentences.wait(request, check.now),
            "" if request.end is None else check_sentences.day_time(request.end),
            "" if request.pool is None else f"{'/'.join(request.pool)}, {counted(request.nodes, 'node')}",
            check_sentences.gpus(request, safe),
            check_sentences.cost(request, check.currency),
        )
        for request in check.requests
    ]


def _moved(check: PullCheck) -> list[tuple[str, ...]]:
    return [
        (
            safe(effect.key),
            _time(effect.was),
            _time(effect.now),
            check_sentences.delay(effect),
            check_sentences.cause(effect, _TONGUE),
        )
        for effect in check_sentences.most_moved_first(check.moved)
    ]


def _time(at: int | None) -> str:
    return "" if at is None else check_sentences.day_time(instant(at))


def _others(check: PullCheck) -> Iterator[str]:
    for other in check.others:
        fields = f": {', '.join(other.fields)}" if other.fields else ""
        yield f"{safe(other.path)} {other.change}{fields}"


def _who(check: PullCheck) -> Iterator[str]:
    if check.judged.actor is not None:
        yield f"Judged for the author {safe(check.judged.actor)}."
        return
    for who, paths in check_sentences.grouped(check.judged.may or {}).items():
        yield f"May be changed by {safe(who)}: {', '.join(map(safe, paths))}"
    if check.judged.may:
        yield check_sentences.NOT_JUDGED


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
