"""`egs job …`: a workload and its request in one change; the deletion of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.changes.change import Change, Means
from reconciler.changes.named_request import taken_by
from reconciler.changes.publish import aimed, publish
from reconciler.changes.requests import check_typed, where_it_is
from reconciler.documents.manifest_text import NotManifests, manifests_of, workload_file
from reconciler.documents.yaml_edit import new_document
from reconciler.queries.arguments import lasting
from reconciler.queries.state import State, split
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from schemas.documents.workload import Manifest
from schemas.rules.view import gpr_path, workload_path


def run(
    means: Means,
    text: str,
    about: Mapping[str, str | None],
    terms: dict[str, Any],
    now: str | None,
    *,
    is_trial: bool,
) -> dict[str, Any]:
    """Files a workload, and its request unless `about` names one; `about`: slice, name, gpr, namespace."""
    manifests, name = _manifests(text), str(about["name"])
    lasting("--duration", terms.get("duration"))
    made: dict[str, Any] = {}

    def build(state: State, base: str) -> Change:
        slice_ = _slice(state, about["slice"])
        gpr, path = about["gpr"] or name, workload_path(slice_, name)
        if source.store.read_path(base, path) is not None:
            raise NotAllowed(f"{path} exists; choose another name with --name, or edit the file")
        files = {path: workload_file(slice_, name, gpr, about["namespace"], manifests)}
        if about["gpr"] is None:
            files[gpr_path(slice_, name)] = _request(source.store.read_path, state, base, slice_, name, terms)
        elif source.store.read_path(base, gpr_path(slice_, gpr)) is None:
            raise NotFound("request", f"{slice_}/{gpr}", state.facts.requests)
        made.update(slice=slice_, gpr=f"{slice_}/{gpr}", workload=f"{slice_}/{name}")
        made["text"] = "---\n".join(data.decode() for _, data in sorted(files.items())).rstrip("\n")
        return Change(files, f"Run {slice_}/{name}", f"{slice_}-{name}")

    with aimed(means) as source:
        done = publish(source, means, build, now, is_trial=is_trial)
    return {**made, **where_it_is(done)}


def delete(means: Means, key: str) -> None:
    """Deletes a workload's file."""
    slice_, name = split(key)
    path = workload_path(slice_, name)

    def build(state: State, base: str) -> Change:
        if source.store.read_path(base, path) is None:
            raise NotFound("workload", key, state.wanted.workloads)
        return Change({path: None}, f"Delete workload {key}", f"{slice_}-{name}")

    with aimed(means) as source:
        publish(source, means, build)


def _request(read: Any, state: State, base: str, slice_: str, name: str, terms: Mapping[str, Any]) -> bytes:
    path, key = gpr_path(slice_, name), f"{slice_}/{name}"
    taken = taken_by(state, key)
    if taken is not None or read(base, path) is not None:
        raise NotAllowed(
            taken or f"{path} exists; use it with --gpr {name}, or choose another name with --name"
        )
    data = new_document("GPR", name, {"slice": slice_, **terms})
    check_typed(path, data, b"")
    return data


def _slice(state: State, given: str | None) -> str:
    """The slice that was named, else the only one."""
    known = state.wanted.slices
    if given is not None and given not in known:
        raise NotFound("slice", given, known)
    if given is None and len(known) != 1:
        raise WrongUse(f"name the slice with --slice: {', '.join(sorted(known)) or 'there is none'}")
    return given or next(iter(known))


def _manifests(text: str) -> list[Manifest]:
    """The objects of a file with one or more YAML documents."""
    try:
        return manifests_of(text)
    except NotManifests as error:
        raise WrongUse(str(error)) from error
