"""`egs gpr …`: file, edit and end requests, always by changing their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from egs.commands import output
from egs.commands.backend import Filed
from reconciler.changes.change import Change, Means, Submitted
from reconciler.changes.named_request import (
    TAKEN,
    check_counts,
    existing,
    is_judged,
    restored,
    said_by,
    taken_by,
)
from reconciler.changes.publish import report, submit
from reconciler.changes.reinstate import FileVersions, brought_again, file_versions
from reconciler.documents.restored_files import counts_as_it_is, ending
from reconciler.documents.yaml_edit import with_field
from reconciler.queries.arguments import lasting, time
from reconciler.queries.quotes import gpr_text, quote_json, quotes, served_by
from reconciler.queries.state import State, as_filed, clock, split
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from schemas.documents.base import Model
from schemas.documents.gpr import GPRSpec
from schemas.reading.reader import read_document, rule_of
from schemas.reading.strict_yaml import Refused, load
from schemas.reading.units import format_duration, wire
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL

Edit = tuple[tuple[str, ...], Any]
"""A field below `spec`, and its new value; None takes it out."""

_KINDS = {"slice": ("Slice", "WorkspaceRequest"), "template": ("GPRTemplate",), "cluster": ("Cluster",)}
_MALFORMED = frozenset({"BadValue", "WrongType"})
WORDS = frozenset({"displayName", "instanceType", "model"})
"""Fields that hold text alone: whatever is typed is meant as it is, `Try 2: larger` too."""


def create(means: Means, key: str, spec: dict[str, Any], now: str | None, *, is_trial: bool) -> Filed:
    """File a request, and say when it would start."""
    slice_, name = split(key)
    lasting("--duration", spec.get("duration"))
    time("--not-before", spec.get("notBefore"))
    data = gpr_text(slice_, name, {field: value for field, value in spec.items() if value is not None})
    check_typed(gpr_path(slice_, name), data, b"")

    def build(state: State, base: str) -> Change:
        path = gpr_path(slice_, name)
        there = file_versions(source, state, base, path)
        if there.data is not None and (there.hold is None or there.counts is not None):
            raise NotAllowed(taken_by(state, key) or TAKEN.format(key=key))
        if (taken := taken_by(state, key)) is not None:
            raise NotAllowed(taken)
        _check_there(source, base, {"slice": [slice_], **_named(spec)})
        return Change(
            {path: data}, f"Create {key}", f"{slice_}-{name}", lambda done: _told(source, done, key)
        )

    with opened(means.repo) as given:
        source = means.aimed(given)
        who = None if source.is_folder or is_trial else source.author(means.author)
        done = submit(source, clock(now, source), who, build, means=means, is_trial=is_trial)
        estimate = _estimate(source, done, key)
        if not is_trial:
            report(done)
    facts = {"slice": slice_, "name": name, "path": gpr_path(slice_, name), **where_it_is(done)}
    return Filed({**facts, "dryRun": is_trial, "estimate": estimate}, text=data.decode().rstrip("\n"))


def _told(source: Source, done: Submitted, key: str) -> str:
    """What a pull request says of a new request: what it asks for, and when it would start as things are."""
    spec = as_filed(source, done.commit, key)
    if spec is None:
        return f"Files the request `{key}`."
    shapes = " or ".join(spec.gpu_shapes) or "any shape"
    return (
        f"Files the request `{key}`: {output.counted(spec.nodes, 'node')} with at least "
        f"{output.counted(spec.gpus_per_node, 'GPU')} ({shapes}) for {format_duration(spec.duration)}, priority "
        f"{spec.priority}.\n\n{_start_told(_estimate(source, done, key), done)}"
    )


def _start_told(estimate: dict[str, Any] | None, done: Submitted) -> str:
    if estimate is None:
        return "No start is known yet; `egs why` tells the reason once it is merged."
    approval = "; it needs an admin's approval" if estimate["needsApproval"] else ""
    return (
        f"Would start at {estimate['estimatedStartTime']} in {estimate['cluster']}/{estimate['pool']}, as seen at "
        f"{wire(done.before.now)} from {done.base[:12]}{approval}. The start is promised once it is merged."
    )


def _named(spec: dict[str, Any]) -> dict[str, Sequence[str]]:
    return {
        "template": [spec["template"]] if spec.get("template") else [],
        "cluster": spec.get("clusters") or [],
    }


def _check_there(source: Source, base: str, wanted: Mapping[str, Sequence[str]]) -> None:
    """Raise NotFound, with what is near, for a name without a file."""
    found = [rule_of(entry.path) for entry in source.store.diff(None, base)]
    for thing, names in wanted.items():
        kinds = _KINDS[thing]
        known = {rule[1]["name"] for rule in found if rule is not None and rule[0].kind in kinds}
        for name in names:
            if name not in known:
                raise NotFound(thing, name, known)


def check_typed(path: str, data: bytes, old: bytes) -> None:
    """Raise WrongUse for values that no file of this kind can hold; what was wrong before is not typed now."""
    before, after = read_document(path, old), read_document(path, data)
    known = {p.message for p in before} if isinstance(before, tuple) else set()
    bad = (
        [p for p in after if p.rule in _MALFORMED and p.message not in known]
        if isinstance(after, tuple)
        else []
    )
    if bad:
        raise WrongUse("; ".join(f"{p.message}; {p.fix}" for p in bad))


def _estimate(source: Source, done: Submitted, key: str) -> dict[str, Any] | None:
    """The start that it would get, or the earliest that an admin could give it; None when there is none yet."""
    spec = as_filed(source, done.commit, key)
    if spec is None:
        return None
    answers = quotes(done.before, spec, split(key)[1])
    found = served_by(done.before, spec, answers) or next((a for a in answers if a.start is not None), None)
    return None if found is None else quote_json(found, done.before)


def where_it_is(done: Submitted) -> dict[str, Any]:
    """Commit, branch and pull request of a change, for data; null where there is none."""
    pull = None if done.pull is None else {"number": done.pull.number, "url": done.pull.url}
    return {"commit": done.shown, "branch": done.branch or None, "pullRequest": pull}


def cancel(means: Means, key: str, now: str | None) -> None:
    """End a waiting request: `earlyRelease` in its file, which is right also where it has got its nodes meanwhile."""

    def build(state: State, base: str) -> Change:
        there, status = existing(source, state, base, key), state.facts.requests.get(key)
        if status is not None and status.phase in HOLDING:
            raise NotAllowed(f"{key} is {status.phase} and holds nodes; `egs gpr release {key}` ends it")
        if status is not None and status.phase in TERMINAL:
            raise NotAllowed(f"{key} is {status.phase} already; `egs prune` removes its file")
        return Change({there.path: _ended(source, state, key, there)}, f"Cancel {key}")

    with opened(means.repo) as given:
        source = means.aimed(given)
        who = None if source.is_folder else source.author(means.author)
        report(submit(source, clock(now, source), who, build, means=means))


def release(means: Means, key: str) -> None:
    """End a request, whatever its phase: `earlyRelease` in its file, which comes back where it is gone or broken."""

    def build(state: State, base: str) -> Change:
        there = existing(source, state, base, key)
        _check_lives(state, key)
        return Change({there.path: _ended(source, state, key, there)}, f"Release {key}")

    with opened(means.repo) as given:
        source = means.aimed(given)
        who = None if source.is_folder else source.author(means.author)
        report(submit(source, clock(None, source), who, build, means=means))


def _ended(source: Source, state: State, key: str, there: FileVersions) -> bytes:
    data = ending(key, there.data, there.restored)
    if data is None:
        raise NotAllowed(f"{there.path} cannot be read, and nothing is known of it; mend the file first")
    if data != there.main or there.hold is not None:
        return data
    if is_judged(source, state, there.path, data):
        raise NotAllowed(f"{key} is being released already; nothing is changed")
    return brought_again(data, None, state.now)  # it may be a stranger's word; the person's own counts


def restore(means: Means, key: str) -> None:
    """Write a request's file back as it counts, where main has none, or one that is broken or says other terms."""

    def build(state: State, base: str) -> Change:
        there = existing(source, state, base, key)
        status = state.request(key)
        _check_lives(state, key)
        if there.hold is None and counts_as_it_is(said_by(there, state), status):
            raise NotAllowed(f"{there.path} says what counts already; nothing is changed")
        data = there.counts if there.hold is not None else restored(source, state, base, key)
        return Change({there.path: data or restored(source, state, base, key)}, f"Restore {key}")

    with opened(means.repo) as given:
        source = means.aimed(given)
        who = None if source.is_folder else source.author(means.author)
        report(submit(source, clock(None, source), who, build, means=means))


def change(means: Means, key: str, edits: Sequence[Edit], subject: str) -> None:
    """Change fields of a request's file and nothing else in it; a file that is gone comes back with the change."""

    def build(state: State, base: str) -> Change:
        there = existing(source, state, base, key)
        _check_lives(state, key)
        _check_name(state, key, edits)
        old = there.restored if there.data is None else there.data
        assert old is not None
        data = old
        for field, value in edits:
            data = edited(there.path, data, ("spec", *field), value)
        if data == there.data and there.hold is None:
            raise NotAllowed(f"{key} says so already; nothing is changed")
        check_typed(there.path, data, old)
        return Change({there.path: data}, subject)

    with opened(means.repo) as given:
        source = means.aimed(given)
        who = None if source.is_folder else source.author(means.author)
        done = submit(source, clock(None, source), who, build, means=means)
        report(done)
        check_counts(source, done, key)


def _check_lives(state: State, key: str) -> None:
    status = state.facts.requests.get(key)
    if status is not None and status.phase in TERMINAL:
        raise NotAllowed(f"{key} is {status.phase} and never runs again; file a new request under a new name")


def _check_name(state: State, key: str, edits: Sequence[Edit]) -> None:
    """As the API and the SDK have it: the name is a part of what a running request keeps."""
    status = state.facts.requests.get(key)
    if (
        status is not None
        and status.phase in HOLDING
        and any(field[0] == "displayName" for field, _ in edits)
    ):
        raise NotAllowed(
            f"{key} is {status.phase} and keeps its terms (displayName); release it, or file another",
            "GpuAlreadyProvisioned",
        )


def edited(path: str, data: bytes, field: tuple[str, ...], value: Any) -> bytes:
    """The file with that field set; raises NotAllowed where nobody can read it as it is."""
    try:
        return with_field(data, field, value)
    except Refused as error:
        text = (
            f"{path}:{error.line}: {error}; mend the file first, or `egs gpr restore` writes it as it counts"
        )
        raise NotAllowed(text, error.reason) from error


def approval_files(source: Source, base: str, key: str) -> list[str]:
    """The approvals of a request; without it they would be errors."""
    return [e.path for e in source.store.diff(None, base) if e.path.startswith(f"approvals/{key}/")]


def assignments(
    words: Sequence[str], spec: type[Model] = GPRSpec, texts: frozenset[str] = WORDS
) -> Sequence[Edit]:
    """`field=value …` as edits: values as in YAML, nested fields with dots, nothing behind `=` takes it out.

    `spec` is what the fields are of, `texts` are those of them that hold text alone.
    """
    edits: list[Edit] = []
    for word in words:
        name, equals, text = word.partition("=")
        field = tuple(name.split("."))
        if not equals or not name:
            raise WrongUse(f"{word} is not FIELD=VALUE; write for example nodes=4 or network.rdma=true")
        _check_field(field, spec)
        is_text = field[0] in texts and not (_holds_mapping(field, spec) and text.startswith("{"))
        edits.append((field, (text or None) if is_text else _value(word, text)))
    return edits


def _holds_mapping(field: tuple[str, ...], spec: type[Model]) -> bool:
    """Whether the field is a part of a document and no text of it: `model`, `model.parameters`."""
    kind: Any = spec
    for step in field:
        fields = getattr(kind, "model_fields", {})
        info = next((info for name, info in fields.items() if (info.alias or name) == step), None)
        if info is None:
            return False
        kinds = [one for one in get_args(info.annotation) or (info.annotation,) if one is not NoneType]
        kind = info.annotation if get_origin(info.annotation) is dict else kinds[0]
    return get_origin(kind) is dict or hasattr(kind, "model_fields")


def _check_field(field: tuple[str, ...], spec: type[Model]) -> None:
    known = {info.alias or name for name, info in spec.model_fields.items()} - {"slice"}
    if field[0] in ("slice", "apiVersion", "kind", "metadata"):
        raise NotAllowed(
            f"{'.'.join(field)} cannot be edited: the file's place says it; "
            "take it away and file it anew where it belongs"
        )
    if field[0] not in known:
        raise NotFound("field", field[0], known)


def _value(word: str, text: str) -> Any:
    if not text.strip():
        return None
    try:
        return load(text.encode())
    except Refused as error:
        raise WrongUse(f"{word}: {error.message}; {error.fix}") from error
