"""Carry a change to the repository: built on what is there, checked as a whole, and pushed if nobody was faster.

In a repository the change is one commit on main by the person; when others pushed in between it is built again on
what they left. In a folder it is files, and the person is told what to do with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.commands import output
from reconciler.commands.errors import NotAllowed
from reconciler.commands.source import Changes, Source
from reconciler.commands.state import State, as_filed, read_state
from reconciler.desired import Desired
from reconciler.store.port import Draft, Outcome, Person
from schemas.edits import edit_problems
from schemas.errors import Fault
from schemas.problems import Problem
from schemas.reading import rule_of
from schemas.status import HOLDING

TRIES = 10
"""Lost races after which somebody should look why so many push at once."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of some files, and the commit's subject."""

    changes: Changes
    subject: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """A change that is made: the state it was built on, and its commit in `source.store`."""

    change: Change
    before: State
    commit: str
    is_pushed: bool  # False: it is files of a folder, or was only tried
    is_worktree: bool = False  # True: the folder has a history that the files can become part of

    @property
    def shown(self) -> str | None:
        """The commit's id for people; None when nobody else can see it."""
        return self.commit if self.is_pushed else None


Build = Callable[[State, str], Change]
"""From the state and the commit of main it was read from (a name for `source.store`) to the change."""


def submit(
    source: Source, now: datetime, author: Person | None, build: Build, *, is_trial: bool = False
) -> Submitted:
    """Make the change; a trial stops before anything is written. Raises NotAllowed when it would be invalid."""
    who = author or Person("egs", "egs@egs.dev")
    for _ in range(TRIES):
        state, base = read_state(source, now), source.commit_of(None)
        change = build(state, base)
        _check_paths(change.changes)
        commit = source.store.write(Draft(change.changes, change.subject, who, now, base, base))
        _check(source, state, (base, commit), change.changes)
        if is_trial:
            return Submitted(change, state, commit, is_pushed=False)
        outcome = source.publish(change.changes, commit, base, change.subject)
        if outcome is Outcome.UNKNOWN and _has_landed(source, commit):
            outcome = Outcome.COMMITTED
        if outcome is Outcome.COMMITTED:
            return Submitted(change, state, commit, not source.is_folder, source.is_worktree)
        if outcome is not Outcome.CONFLICT:
            raise _not_pushed(outcome)
    raise Fault(f"others pushed to main {TRIES} times in a row; try again", "Conflict")


def _has_landed(source: Source, commit: str) -> bool:
    """A server that did not answer may have done it all the same."""
    try:
        return source.store.is_ancestor(commit, source.commit_of(None))
    except Fault:
        return False


def _not_pushed(outcome: Outcome) -> Exception:
    if outcome is Outcome.REFUSED:
        return NotAllowed(
            "the server refused the push to main, which may be protected; make the change in a work tree "
            "and open a pull request",
            "PushFailed",
        )
    return Fault("the server did not answer whether the change arrived; look at main before trying again")


def _check_paths(changes: Changes) -> None:
    """A file where no document lives would be a warning to its reader, and do nothing for its writer."""
    for path, data in sorted(changes.items()):
        if data is not None and rule_of(path) is None:
            raise NotAllowed(f"nothing is changed, because {path} is no document's path", "StrayFile")


def _check(source: Source, state: State, commits: tuple[str, str], changes: Changes) -> None:
    """Refuse what would leave an error in a changed file, or a new one anywhere else."""
    desired = Desired(source.store, source.cache)
    desired.update(commits[0])
    before = set(desired.problems)
    desired.update(commits[1])
    found = [
        problem
        for problem in desired.problems
        if problem.severity == "error" and (problem.file in changes or problem not in before)
    ]
    found += _forbidden_edits(source, state, commits[1], changes)
    if found:
        raise NotAllowed(
            f"nothing is changed, because it would be invalid: {'; '.join(map(_sentence, found))}"
        )


def _forbidden_edits(source: Source, state: State, commit: str, changes: Changes) -> list[Problem]:
    found: list[Problem] = []
    for path, data in changes.items():
        names = _request_of(path)
        status = None if names is None else state.facts.requests.get("/".join(names))
        if names is None or data is None or status is None or status.phase not in HOLDING:
            continue
        new = as_filed(source, commit, "/".join(names))
        if new is not None:
            findings = edit_problems(path, status.accepted_spec, new, status.phase)
            found += [finding.problem(None) for finding in findings]
    return found


def _request_of(path: str) -> tuple[str, str] | None:
    found = rule_of(path)
    if found is None or found[0].kind != "GPR":
        return None
    names: Mapping[str, str] = found[1]
    return names["slice"], names["name"]


def _sentence(problem: Problem) -> str:
    return f"{problem.file}: {problem.message} ({problem.rule}; {problem.fix})"


def report(done: Submitted) -> None:
    """Say on stderr where the change is now, and in a folder what is left to do."""
    subject = done.change.subject
    if done.is_pushed:
        output.note(f"{subject}: committed to main as {done.commit[:12]}")
        return
    for path, data in sorted(done.change.changes.items()):
        output.note(f"{'removed' if data is None else 'wrote'} {path}")
    if done.is_worktree:
        output.note(f'next: git add -A && git commit -m "{subject}" && git push, or open a pull request')
