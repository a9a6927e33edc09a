"""Brings a change into the repository: built on the current state, checked as a whole, pushed unless main moved.

In a repository the change is one commit on main by the person, or a branch proposed for merging; if main moved
in between, it is built again on the new state. In a folder it is files, and the person is told the next step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from egs.commands import output
from reconciler.changes.change import AS_USUAL, Build, Means, Submitted
from reconciler.changes.main_documents import MainDocuments, sentence
from reconciler.changes.propose import propose, report_branch
from reconciler.changes.push import TRIES, overrun, refused_push, unanswered
from reconciler.changes.reinstate import file_versions, settled
from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.queries.state import State, clock, read_state
from reconciler.sources.command_errors import NotAllowed
from reconciler.sources.open_source import opened
from reconciler.sources.source import MAIN, Changes, Remote, Source
from reconciler.store.store_port import Draft, Outcome, Person
from schemas.errors import Fault
from schemas.reading.reader import rule_of


@contextmanager
def aimed(means: Means) -> Iterator[Source]:
    """The repository or folder in which the person makes a change."""
    with opened(means.repo) as given:
        yield means.aimed(given)


def publish(
    source: Source, means: Means, build: Build, now: str | None = None, *, is_trial: bool = False
) -> Submitted:
    """Makes the change as the person and prints where it is; a trial makes and prints nothing. See `submit`."""
    who = None if source.is_folder or is_trial else source.author(means.author)
    done = submit(source, clock(now, source), who, build, means=means, is_trial=is_trial)
    if not is_trial:
        report(done)
    return done


def submit(
    source: Source,
    now: datetime,
    author: Person | None,
    build: Build,
    *,
    means: Means = AS_USUAL,
    is_trial: bool = False,
) -> Submitted:
    """Makes the change; a trial stops before writing. Raises NotAllowed if it would be invalid."""
    who = author or Person("egs", "egs@egs.dev")
    told: set[str] = set()
    for _ in range(TRIES):
        state, base = read_state(source, now), source.commit_of(None)
        change = build(state, base)
        versions = partial(file_versions, source, state, base)
        changes, notes = settled(change.changes, versions, author, now)
        change = replace(change, changes=changes)
        _check_paths(changes)
        commit = source.store.write(Draft(change.changes, change.subject, who, now, base, base))
        _check(source, state, base, change.changes)
        tried = Submitted(change, state, base, commit)
        _tell((*notes, *_doubts(source, tried, author, means)), told)
        done = tried if is_trial else _carried(source, tried, means)
        if done is not None:
            return done
    raise Fault(overrun(TRIES, "try again"), "Conflict")


def _doubts(source: Source, tried: Submitted, author: Person | None, means: Means) -> tuple[str, ...]:
    """Why main would hold it; empty for a proposal. NotAllowed if only this command checks rights."""
    from reconciler.changes.will_it_count import doubts, is_verified

    if author is None or means.asks(tried.before.wanted.project):
        return ()
    found = doubts(source, tried.before, tried.base, tried.change.changes, author)
    if found and not is_verified(tried.before):
        why = "; ".join(refused.message for refused in found)
        raise NotAllowed(
            f"nothing is changed, because {why}; with --pull-request you can propose it instead",
            found[0].rule,
        )
    return tuple(f"main will hold this change, {refused.rule}: {refused.message}" for refused in found)


def _tell(sentences: tuple[str, ...], told: set[str]) -> None:
    for said in sentences:
        if said not in told:
            output.note(said)
            told.add(said)


def _carried(source: Source, tried: Submitted, means: Means) -> Submitted | None:
    """The change pushed or written as files; None if another push came first."""
    remote = None if source.is_folder else source.upstream()
    if remote is None:
        source.publish(tried.change.changes, tried.commit, tried.base)
        asks = means.asks(tried.before.wanted.project)
        return replace(tried, is_worktree=source.is_worktree, asks=asks)
    signed = replace(tried, commit=remote.signed(tried.commit))
    if means.asks(tried.before.wanted.project):
        return propose(remote, signed)
    outcome = remote.publish(signed.change.changes, signed.commit, signed.base)
    if outcome is Outcome.REFUSED:
        return _refused(remote, signed, means)
    if outcome is Outcome.COMMITTED or _has_landed(source, signed.commit):
        return replace(signed, is_pushed=True)
    if outcome is Outcome.CONFLICT:
        return None
    raise Fault(unanswered("the change", "check main before trying again"))


def _refused(remote: Remote, signed: Submitted, means: Means) -> Submitted:
    """Main is protected: on a forge the change becomes a pull request, unless --push was given."""
    from reconciler.sources.forge_choice import forge_address

    if means.as_pull is None and forge_address(remote.address) is not None:
        output.note(refused_push(MAIN, "a branch is pushed for a pull request", remote.refusal()))
        return propose(remote, signed)
    to_do = "use --pull-request to push a branch for a pull request"
    raise NotAllowed(refused_push(MAIN, to_do, remote.refusal()), "PushFailed")


def _has_landed(source: Source, commit: str) -> bool:
    """A push whose answer was lost may have landed, and others may have pushed on top of it since."""
    try:
        return source.store.is_ancestor(commit, source.commit_of(None))
    except Fault:
        return False


def _check_paths(changes: Changes) -> None:
    """A file where no document belongs would be ignored with a warning, which does not help its author."""
    for path, data in sorted(changes.items()):
        if data is not None and rule_of(path) is None and not path.endswith("CODEOWNERS"):
            raise NotAllowed(f"nothing is changed, because {path} is not the path of a document", "StrayFile")


def _check(source: Source, state: State, base: str, changes: Changes) -> None:
    """Refuses a change that leaves an error in a changed file, or adds one elsewhere."""
    desired = Desired(source.store, source.cache)
    committed = state.committed
    desired.repository.is_recorded = recorded(() if committed is None else committed.requests)
    desired.update(base)
    found, _ = MainDocuments(desired.repository).judged(changes, state.facts.requests)
    if found:
        raise NotAllowed(
            f"nothing is changed, because the result would be invalid: {'; '.join(map(sentence, found))}"
        )


def report(done: Submitted) -> None:
    """Prints on stderr where the change is now, and the next step."""
    subject = done.change.subject
    if done.is_pushed:
        output.note(f"{subject}: committed to main as {done.commit[:12]}")
        return
    if done.branch:
        report_branch(done)
        return
    for path, data in sorted(done.change.changes.items()):
        output.note(f"{'removed' if data is None else 'wrote'} {path}")
    if not done.is_worktree:
        return
    if done.asks:
        output.note(
            "next: commit it on a branch, push it and open a pull request; --pull-request does all of this"
        )
    else:
        output.note(f'next: git add -A && git commit -m "{subject}" && git push, or open a pull request')
