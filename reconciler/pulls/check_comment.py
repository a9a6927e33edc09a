"""A check as one comment on a forge, and as workflow annotations; `check_text` and `check_json` have the rest.

Pure. The comment is short: the verdict is the first line, and long lists are cut with a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.forges.forge_port import CommitState
from reconciler.pulls import check_sentences
from reconciler.pulls.check import NEEDS_APPROVAL, PullCheck, RequestChange
from reconciler.pulls.check_sentences import Tongue
from reconciler.pulls.markdown import code, plain, table
from scheduler.causes.compare import Effect
from schemas.reading.units import counted, instant
from schemas.rules.check_result import CheckResult
from schemas.rules.check_result import as_annotations as annotated
from schemas.rules.problems import Problem

MARKER = "<!-- egs-check -->"
"""The line that identifies our single comment on a pull request."""
CONTEXT = "egs/check"
"""Name of our commit status."""
MOST = 15
"""Rows of one list in a comment."""
FEW = 5
"""Rows shown without expanding."""

_MARK = {"refused": "❌", "waits": "✋", "clear": "✅"}
_FORGE = Tongue(code, plain)
_SEVERE = {"error": "❌", "warning": "⚠️", "notice": "•"}


def state(check: PullCheck) -> CommitState:
    """Waiting for an admin is not a failure: in some projects merging is the approval."""
    return "failure" if check.verdict == "refused" else "success"


def markdown(check: PullCheck) -> str:
    """The comment, with its marker."""
    parts = [
        MARKER,
        f"### {_MARK[check.verdict]} {check_sentences.verdict(check, _FORGE)}",
        *_problems(check),
        *_requests(check),
        *_needs(check),
        *_moved(check),
        *_others(check),
        *_actor(check),
        f"<sub>{' '.join(check_sentences.against(check, _FORGE))}</sub>",
    ]
    return "\n\n".join(parts) + "\n"


def workflow_commands(check: PullCheck) -> str:
    """Workflow commands that annotate each problem's line; denials and conflicts annotate their files."""
    found = [*check.problems, *_as_problems(check)]
    return annotated(CheckResult(0, tuple(sorted(found))))


def _as_problems(check: PullCheck) -> Iterator[Problem]:
    for denial in check.judged.denials:
        yield Problem(denial.path, 1, 1, denial.rule, "error", denial.message, "ask a person who may")
    for path in check.conflicts:
        yield Problem(
            path, 1, 1, "Conflict", "error", "main changed this file too", "merge main into the branch"
        )


# -- the comment's parts -------------------------------------------------------------------------------------


def _problems(check: PullCheck) -> Iterator[str]:
    rows = [
        f"- {_SEVERE[p.severity]} {code(f'{p.file}:{p.line}')} {plain(p.message)} → {plain(p.fix)}"
        for p in sorted(check.problems, key=_worst_first)
        if p.rule != NEEDS_APPROVAL  # reported below, with who may approve
    ]
    rows += [f"- ❌ {code(d.path)} {plain(check_sentences.refusal(d))}" for d in check.judged.denials]
    rows += [
        f"- ❌ {code(p)} main changed this file too → merge main into the branch" for p in check.conflicts
    ]
    if rows:
        yield _cut(rows)


def _worst_first(problem: Problem) -> tuple[int, Problem]:
    return (("error", "warning", "notice").index(problem.severity), problem)


def _requests(check: PullCheck) -> Iterator[str]:
    if not check.requests:
        return
    head = ("request", "change", "start (UTC)", "wait", "end", "where", "GPUs", "cost")
    rows = [_request(request, check) for request in check.requests[:MOST]]
    more = len(check.requests) - MOST
    yield table(head, rows) + (f"\n\nand {more} more" if more > 0 else "")


def _request(request: RequestChange, check: PullCheck) -> tuple[str, ...]:
    return (
        code(request.key),
        request.change,
        check_sentences.start(request) or plain(request.message or request.reason or ""),
        check_sentences.wait(request, check.now),
        "" if request.end is None else check_sentences.day_time(request.end),
        _where(request),
        check_sentences.gpus(request, code),
        check_sentences.cost(request, check.currency),
    )


def _where(request: RequestChange) -> str:
    if request.pool is None:
        return ""
    observed = " (observed only)" if request.reason == "ClusterObserved" else ""
    return f"{code('/'.join(request.pool))} {counted(request.nodes, 'node')}{observed}"


def _needs(check: PullCheck) -> Iterator[str]:
    if check.needs:
        rows = [f"- {code(need.key)}: {check_sentences.approval(need, _FORGE)}" for need in check.needs]
        yield "**Approval needed**\n" + _cut(rows)


def _moved(check: PullCheck) -> Iterator[str]:
    for what, kinds in (
        ("waits longer", ("later", "refused")),
        ("is gone", ("gone",)),
        ("waits less", ("earlier",)),
    ):
        found = check_sentences.most_moved_first(e for e in check.moved if e.change in kinds)
        if not found:
            continue
        shown = [_effect(effect) for effect in found[:MOST]]
        more = f"\n\nand {len(found) - MOST} more" if len(found) > MOST else ""
        body = table(("request", "start was", "start now", "moves", "why"), shown) + more
        if len(found) <= FEW and what != "waits less":
            yield f"**Who {what}**\n\n{body}"
        else:
            yield f"<details><summary><b>Who {what}</b> ({len(found)})</summary>\n\n{body}\n\n</details>"


def _effect(effect: Effect) -> tuple[str, ...]:
    return (
        code(effect.key),
        "" if effect.was is None else check_sentences.day_time(instant(effect.was)),
        "" if effect.now is None else check_sentences.day_time(instant(effect.now)),
        check_sentences.delay(effect),
        check_sentences.cause(effect, _FORGE),
    )


def _others(check: PullCheck) -> Iterator[str]:
    rows = [
        f"- {code(other.path)} {other.change}{': ' + ', '.join(other.fields) if other.fields else ''}"
        for other in check.others
    ]
    if rows:
        yield "**Also changes**\n" + _cut(rows)


def _actor(check: PullCheck) -> Iterator[str]:
    if check.judged.actor is not None:
        yield f"Judged for the author {code(check.judged.actor)}."
    elif check.judged.may:
        groups = check_sentences.grouped(check.judged.may).items()
        rows = [f"- {plain(who)} ({counted(len(paths), 'file')})" for who, paths in groups]
        yield f"{check_sentences.NOT_JUDGED} The changes can be made by\n{_cut(rows)}"


def _cut(rows: Sequence[str]) -> str:
    more = [f"- and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return "\n".join([*rows[:MOST], *more])
