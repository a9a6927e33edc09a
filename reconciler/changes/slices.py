"""`egs slice request|create|edit|delete`: requests, creates, changes and deletes slices by changing their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from egs.commands import output
from reconciler.changes.change import Change, Means, Submitted
from reconciler.changes.people import Entry, Newcomer, own_key, people_of
from reconciler.changes.publish import aimed, publish
from reconciler.changes.reinstate import FileVersions, file_versions
from reconciler.changes.requests import assignments, check_typed, edited
from reconciler.documents.yaml_edit import new_document
from reconciler.queries.arguments import lasting
from reconciler.queries.state import State, bad_name, clock, is_name, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.source import Source
from schemas.documents.slice import SliceSpec
from schemas.documents.workspace import WorkspaceRequestSpec
from schemas.rules.view import binding_path, slice_path, workspace_path
from schemas.status.gpr_status import TERMINAL

WORDS = frozenset({"description", "reason"})
"""Text fields."""


@dataclass(frozen=True, slots=True)
class NewSlice:
    name: str
    clusters: tuple[str, ...]
    namespaces: tuple[str, ...]
    members: tuple[str, ...]
    owners: tuple[str, ...]
    quota: int | None
    limits: Mapping[str, Any]
    text: str
    """What it is for, or its description."""
    keys: tuple[Path, ...]
    forge: str | None

    def person(self, mail: str, known: Entry | None, own: str | None) -> Entry:
        """The owner's entry, with what identifies them; `own` is the key to use if none was given."""
        entry = Newcomer(mail, keys=self.keys, forge=self.forge).entry(known)
        return entry if own is None or "keys" in entry else {**entry, "keys": [own]}

    def fields(self, state: State) -> dict[str, Any]:
        """The same as fields of a document; options not given are None."""
        limits = {name: value for name, value in self.limits.items() if value is not None}
        return {
            "members": [{"email": mail} for mail in self.members] or None,
            "clusters": list(self.clusters) or [_only_cluster(state)],
            "namespaces": list(self.namespaces) or [self.name],
            "quota": None if self.quota is None else {"gpus": self.quota},
            "limits": limits or None,
        }


def _only_cluster(state: State) -> str:
    names = sorted(state.wanted.clusters)
    if len(names) != 1:
        raise WrongUse(f"choose a cluster with --cluster C: {', '.join(names) or 'there is no cluster yet'}")
    return names[0]


def request(means: Means, asked: NewSlice, *, is_trial: bool) -> None:
    """Asks for a slice; its owner is the first of `owners`, else the person who asks."""
    path = workspace_path(asked.name)

    def build(state: State, base: str) -> Change:
        _check_free(source, state, base, asked.name)
        if source.store.read_path(base, path) is not None:
            raise NotAllowed(
                f"slice {asked.name} is requested already in {path}; `egs get requests` shows its state"
            )
        owner = asked.owners[0] if asked.owners else source.author(means.author).email
        person = asked.person(owner, None, _own_key(source, means, owner))
        spec = {"requester": person, **asked.fields(state), "reason": asked.text or None}
        data = new_document("WorkspaceRequest", asked.name, spec)
        check_typed(path, data, b"")
        text = _told(owner, asked.name, spec)
        return Change({path: data}, f"Ask for slice {asked.name}", f"slice-{asked.name}", lambda _: text)

    _check_name(asked)
    with aimed(means) as source:
        done = publish(source, means, build, is_trial=is_trial)
    _shown(done, path, is_trial=is_trial)


def create(means: Means, asked: NewSlice, *, is_trial: bool) -> None:
    path = slice_path(asked.name)

    def build(state: State, base: str) -> Change:
        wish = source.store.read_path(base, workspace_path(asked.name))
        if wish is None:
            _check_free(source, state, base, asked.name)
        if source.store.read_path(base, path) is not None:
            raise NotAllowed(f"slice {asked.name} exists already; change it with `egs slice edit`")
        if not asked.members and not asked.owners:
            raise WrongUse("name the members with --member MAIL")
        people = _people(source, means, asked, wish)
        spec = {"description": asked.text or None, **asked.fields(state), **people}
        data = new_document("Slice", asked.name, spec)
        check_typed(path, data, b"")
        # The slice's own file replaces the request for it, which would only confuse readers.
        gone = {} if wish is None else {workspace_path(asked.name): None}
        return Change({path: data, **gone}, f"Create slice {asked.name}", f"slice-{asked.name}")

    _check_name(asked)
    with aimed(means) as source:
        done = publish(source, means, build, is_trial=is_trial)
    _shown(done, path, is_trial=is_trial)


def _people(
    source: Source, means: Means, asked: NewSlice, wish: bytes | None
) -> dict[str, list[Entry] | None]:
    """Owners and members with keys and accounts: from the slice request, and from the options for one person."""
    named, known = asked.owners or asked.members, people_of(wish)
    if (asked.keys or asked.forge) and len(named) != 1:
        raise WrongUse(
            "--key and --forge apply to a single owner, or to a single member if there is no owner; for other "
            f"people run `egs slice members add {asked.name} MAIL --key FILE` afterwards"
        )

    def entry(mail: str) -> Entry:
        if mail == named[0]:
            return asked.person(mail, known.get(mail.lower()), _own_key(source, means, mail))
        return known.get(mail.lower(), {"email": mail})

    return {
        "owners": [entry(mail) for mail in asked.owners] or None,
        "members": [entry(mail) for mail in asked.members or asked.owners],
    }


def _own_key(source: Source, means: Means, mail: str) -> str | None:
    """The key that Git signs with, if the address is the caller's own."""
    try:
        mine = source.author(means.author).email.lower()
    except WrongUse:
        return None
    return own_key(means.repo) if mine == mail.lower() else None


def _check_name(asked: NewSlice) -> None:
    if not is_name(asked.name):
        raise bad_name(asked.name)
    lasting("--max-duration", asked.limits.get("maxDuration"))


def _check_free(source: Source, state: State, base: str, name: str) -> None:
    spec = state.wanted.slices.get(name)
    if spec is None or source.store.read_path(base, workspace_path(name)) is not None:
        return
    who = ", ".join(person.email for person in spec.owners or state.wanted.project.admins)
    raise NotAllowed(
        f"slice {name} exists already; to join, ask {who} to run `egs slice members add {name} MAIL`"
    )


def _told(owner: str, name: str, spec: Mapping[str, Any]) -> str:
    """The pull request's text for the admins."""
    quota = f"{spec['quota']['gpus']} GPUs per request without approval" if spec["quota"] else "no quota"
    where = f"namespace {', '.join(spec['namespaces'])} of {', '.join(spec['clusters'])}"
    why = f"\n\n> {spec['reason']}" if spec["reason"] else ""
    return f"{owner} asks for the slice `{name}`: {where}, {quota}.{why}\n\nIt is created when an admin merges this."


def _shown(done: Submitted, path: str, *, is_trial: bool) -> None:
    if is_trial:
        output.note(f"dry run: {path} would be:")
        output.text((done.change.changes[path] or b"").decode().rstrip("\n"))


def file_of(source: Source, state: State, base: str, name: str) -> FileVersions:
    """The file that defines the slice: its own, else the request for it; preferably one that counts."""
    found = [file_versions(source, state, base, path) for path in (slice_path(name), workspace_path(name))]
    for there in (*(f for f in found if f.counts is not None), *found):
        if there.data is not None:
            return there
    raise NotFound("slice", name, state.wanted.slices)


def edit(means: Means, name: str, words: Sequence[str]) -> None:

    def build(state: State, base: str) -> Change:
        there = file_of(source, state, base, name)
        path, old = there.path, there.data or b""
        spec = SliceSpec if path == slice_path(name) else WorkspaceRequestSpec
        data = old
        edits = assignments(words, spec, WORDS)
        for field, value in edits:
            data = edited(path, data, ("spec", *field), value)
        if data == old and there.hold is None:
            raise NotAllowed(f"slice {name} has these values already; nothing to change")
        check_typed(path, data, old)
        names = ", ".join(".".join(field) for field, _ in edits)
        return Change({path: data}, f"Edit slice {name}: {names}")

    with aimed(means) as source:
        publish(source, means, build)


def parts(means: Means, name: str) -> dict[str, Any]:
    """What belongs to a slice. Raises NotAllowed while one of its requests is unfinished."""
    with aimed(means) as source:
        state = read_state(source, clock(None, source))
        files = _files(source, state, source.commit_of(None), name)
    spec = state.wanted.slices[name]
    return {
        "slice": name,
        "files": files,
        "clusters": list(spec.clusters),
        "namespaces": list(spec.namespaces),
    }


def delete(means: Means, name: str) -> None:

    def build(state: State, base: str) -> Change:
        return Change(dict.fromkeys(_files(source, state, base, name)), f"Delete slice {name}")

    with aimed(means) as source:
        publish(source, means, build)


def _files(source: Source, state: State, base: str, name: str) -> list[str]:
    """All files of the slice; raises NotAllowed while one of its requests is not finished."""
    if name not in state.wanted.slices:
        raise NotFound("slice", name, state.wanted.slices)
    requests = state.facts.requests.items()
    live = sorted(k for k, s in requests if k.startswith(f"{name}/") and s.phase not in TERMINAL)
    if live:
        named = f"{', '.join(live[:8])}{', …' if len(live) > 8 else ''}"
        raise NotAllowed(
            f"slice {name} is in use by {output.counted(len(live), 'unfinished request')}: {named}; end each with "
            "`egs gpr release` or `egs gpr cancel` first"
        )
    folders = (f"slices/{name}/", f"approvals/{name}/")
    paths = [entry.path for entry in source.store.diff(None, base)]
    single = (workspace_path(name), binding_path(name))
    return [path for path in paths if path.startswith(folders) or path in single]
