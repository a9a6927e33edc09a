"""`egs gpr …`: creates, edits and ends requests, always by changing their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from reconciler.changes.publish import aimed, publish
from reconciler.changes.reinstate import FileVersions, brought_again, file_versions
from reconciler.documents.restored_files import counts_as_it_is, ending
from reconciler.documents.yaml_edit import new_document, with_field
from reconciler.queries.arguments import lasting, time
from reconciler.queries.quotes import quote_json, quotes, served_by
from reconciler.queries.state import State, as_filed, split
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.source import Source
from schemas.documents.base import Model
from schemas.documents.gpr import GPRSpec
from schemas.reading.reader import read_document, rule_of
from schemas.reading.strict_yaml import Refused, load
from schemas.reading.units import format_duration, wire
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL

Edit = tuple[tuple[str, ...], Any]
"""A field below `spec`, and its new value; None removes it."""

_KINDS = {"slice": ("Slice", "WorkspaceRequest"), "template": ("GPRTemplate",), "cluster": ("Cluster",)}
_MALFORMED = frozenset({"BadValue", "WrongType"})
WORDS = frozenset({"displayName", "instanceType", "model"})
"""Text fields: the value is taken literally, even `Try 2: larger`."""


def create(means: Means, key: str, spec: dict[str, Any], now: str | None, *, is_trial: bool) -> Filed:
    """Files a request, and says when it would start."""
    slice_, name = split(key)
    lasting("--duration", spec.get("duration"))
    time("--not-before", spec.get("notBefore"))
    data = new_document("GPR", name, {"slice": slice_, **spec})
    check_typed(gpr_path(slice_, name), data, b"")

    def build(state: State, base: str) -> Change:
        path = gpr_path(slice_, name)
        there = file_versions(source, state, base, path)
        if there.data is not None and (there.hold is None or there.counts is not None):
            raise NotAllowed(taken_by(state, key) or TAKEN.format(key=key))
        if (taken := taken_by(state, key)) is not None:
            raise NotAllowed(taken)
        templates, clusters = filter(None, [spec.get("template")]), spec.get("clusters") or ()
        _check_there(source, base, {"slice": [slice_], "template": templates, "cluster": clusters})
        return Change(
            {path: data}, f"Create {key}", f"{slice_}-{name}", lambda done: _told(source, done, key)
        )

    with aimed(means) as source:
        done = publish(source, means, build, now, is_trial=is_trial)
        estimate = _estimate(source, done, key)
    facts = {"slice": slice_, "name": name, "path": gpr_path(slice_, name), **where_it_is(done)}
    return Filed({**facts, "dryRun": is_trial, "estimate": estimate}, text=data.decode().rstrip("\n"))


def _told(source: Source, done: Submitted, key: str) -> str:
    """The pull request's text for a new request: what it asks for, and its current estimated start."""
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
        return "No start is known yet; `egs why` shows the reason once it is merged."
    approval = ", if an admin approves it" if estimate["needsApproval"] else ""
    return (
        f"Would start at {estimate['estimatedStartTime']} in {estimate['cluster']}/{estimate['pool']}, as seen at "
        f"{wire(done.before.now)} from {done.base[:12]}{approval}. The start is promised once it is merged."
    )


def _check_there(source: Source, base: str, wanted: Mapping[str, Iterable[str]]) -> None:
    """Raises NotFound, with similar names, for a name without a file."""
    found = [rule_of(entry.path) for entry in source.store.diff(None, base)]
    for thing, names in wanted.items():
        kinds = _KINDS[thing]
        known = {rule[1]["name"] for rule in found if rule is not None and rule[0].kind in kinds}
        for name in names:
            if name not in known:
                raise NotFound(thing, name, known)


def check_typed(path: str, data: bytes, old: bytes) -> None:
    """Raises WrongUse for invalid values; problems that the file had before do not count."""
    before, after = read_document(path, old), read_document(path, data)
    known = {p.message for p in before} if isinstance(before, tuple) else set()
    problems = after if isinstance(after, tuple) else ()
    bad = [p for p in problems if p.rule in _MALFORMED and p.message not in known]
    if bad:
        raise WrongUse("; ".join(p.advice for p in bad))


def _estimate(source: Source, done: Submitted, key: str) -> dict[str, Any] | None:
    """Its estimated start, or the earliest start with an approval; None if there is none yet."""
    spec = as_filed(source, done.commit, key)
    if spec is None:
        return None
    answers = quotes(done.before, spec, split(key)[1])
    found = served_by(done.before, spec, answers) or next((a for a in answers if a.start is not None), None)
    return None if found is None else quote_json(found, done.before)


def where_it_is(done: Submitted) -> dict[str, Any]:
    """Commit, branch and pull request of a change, as data; null if there is none."""
    pull = None if done.pull is None else {"number": done.pull.number, "url": done.pull.url}
    return {"commit": done.shown, "branch": done.branch or None, "pullRequest": pull}


def cancel(means: Means, key: str, now: str | None) -> None:
    """Ends a waiting request with `earlyRelease` in its file, which is right even if it gets nodes meanwhile."""

    def build(state: State, base: str) -> Change:
        there, status = existing(source, state, base, key), state.facts.requests.get(key)
        if status is not None and status.phase in HOLDING:
            raise NotAllowed(f"{key} is {status.phase} and holds nodes; end it with `egs gpr release {key}`")
        if status is not None and status.phase in TERMINAL:
            raise NotAllowed(f"{key} is {status.phase} already; `egs prune` removes its file")
        return Change({there.path: _ended(source, state, key, there)}, f"Cancel {key}")

    with aimed(means) as source:
        publish(source, means, build, now)


def release(means: Means, key: str) -> None:
    """Ends a request in any phase with `earlyRelease` in its file, which is restored if it is missing or broken."""

    def build(state: State, base: str) -> Change:
        there = existing(source, state, base, key)
        _check_lives(state, key)
        return Change({there.path: _ended(source, state, key, there)}, f"Release {key}")

    with aimed(means) as source:
        publish(source, means, build)


def _ended(source: Source, state: State, key: str, there: FileVersions) -> bytes:
    data = ending(key, there.data, there.restored)
    if data is None:
        raise NotAllowed(f"{there.path} cannot be read, and the request has no status; fix the file first")
    if data != there.main or there.hold is not None:
        return data
    if is_judged(source, state, there.path, data):
        raise NotAllowed(f"{key} is being released already; nothing to change")
    # Another author's change may not count; the caller's own does.
    return brought_again(data, None, state.now)


def restore(means: Means, key: str) -> None:
    """Restores a request's file as it counts, if main's is missing, broken, or has other terms."""

    def build(state: State, base: str) -> Change:
        there = existing(source, state, base, key)
        status = state.request(key)
        _check_lives(state, key)
        if there.hold is None and counts_as_it_is(said_by(there, state), status):
            raise NotAllowed(f"{there.path} has the content that counts already; nothing to change")
        data = there.counts if there.hold is not None else restored(source, state, base, key)
        return Change({there.path: data or restored(source, state, base, key)}, f"Restore {key}")

    with aimed(means) as source:
        publish(source, means, build)


def change(means: Means, key: str, edits: Sequence[Edit], subject: str) -> None:
    """Changes some fields of a request's file and nothing else; a missing file is restored with the change."""

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
            raise NotAllowed(f"{key} has these values already; nothing to change")
        check_typed(there.path, data, old)
        return Change({there.path: data}, subject)

    with aimed(means) as source:
        check_counts(source, publish(source, means, build), key)


def _check_lives(state: State, key: str) -> None:
    status = state.facts.requests.get(key)
    if status is not None and status.phase in TERMINAL:
        raise NotAllowed(f"{key} is {status.phase} and never runs again; file a new request under a new name")


def _check_name(state: State, key: str, edits: Sequence[Edit]) -> None:
    """As in the API and the SDK: a running request keeps its name."""
    status, renames = state.facts.requests.get(key), any(field[0] == "displayName" for field, _ in edits)
    if status is not None and status.phase in HOLDING and renames:
        raise NotAllowed(
            f"{key} is {status.phase} and keeps its terms (displayName); release it, or file a new request",
            "GpuAlreadyProvisioned",
        )


def edited(path: str, data: bytes, field: tuple[str, ...], value: Any) -> bytes:
    """The file with that field set; raises NotAllowed if the file is unreadable."""
    try:
        return with_field(data, field, value)
    except Refused as error:
        text = f"{path}:{error.line}: {error}; fix the file first, or restore it with `egs gpr restore`"
        raise NotAllowed(text, error.reason) from error


def approval_files(source: Source, base: str, key: str) -> list[str]:
    """A request's approval files; without the request they would be errors."""
    return [e.path for e in source.store.diff(None, base) if e.path.startswith(f"approvals/{key}/")]


def assignments(
    words: Sequence[str], spec: type[Model] = GPRSpec, texts: frozenset[str] = WORDS
) -> Sequence[Edit]:
    """`field=value …` as edits: values as in YAML, nested fields with dots, an empty value removes the field.

    `spec` is the model of the fields, `texts` are its text fields.
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
    """True if the field is a mapping, not a scalar: `model`, `model.parameters`."""
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
            f"{'.'.join(field)} cannot be edited: it follows from the file's path; "
            "delete the file and create it at the right path"
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
