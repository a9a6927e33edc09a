"""What may become of a request's file: filed, edited, ended, restored. Pure; `portal.writes.writer` carries it out.

Held by tests/portal/test_gpr_changes.py and test_endings.py:
  * a request in another state is refused with the state's own key;
  * an edit leaves comments and order of the file as they are;
  * what ends a request is `earlyRelease` in its file, which is right in every phase: the request may have got its
    nodes since we looked. No file is deleted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.http.errors import bad_parameters, conflict, not_found
from portal.http.names import listed
from portal.identity.callers import Caller
from portal.vendor.gpr_answers import Found, found_in
from portal.vendor.gpr_filing import Path, RequestedFields, gpr_file
from portal.views.view import View
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes, Tree
from reconciler.changes.reinstate import brought_again
from reconciler.documents.restored_files import as_it_counts, counts_as_it_is, ending, readable, says
from reconciler.documents.yaml_edit import with_field
from schemas.documents.gpr import GPR
from schemas.reading.strict_yaml import Refused
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL, Phase

RELEASED, PROVISIONED, NOT_PROVISIONED = "GpuAlreadyReleased", "GpuAlreadyProvisioned", "NotProvisioned"
WHILE_HELD = frozenset({"earlyRelease", "extend", "stopped", "model", "idleTimeout"})
"""Fields of a request that has its nodes which may still change; all others are its terms."""
_SIZE = {"nodes": "numberOfGPUNodes", "duration": "exitDuration"}


# -- who may -----------------------------------------------------------------------------------------------------------


def seen(view: View, caller: Caller, id_or_key: str) -> Found:
    """The request, if the caller may see it; ApiError 404."""
    found = found_in(view, id_or_key)
    if found is None or not caller.may_see(found.slice):
        raise not_found("request", id_or_key)
    return found


# -- a new one ---------------------------------------------------------------------------------------------------------


def filed(view: View, tree: Tree, key: str, nonce: str, wanted: RequestedFields) -> Changes:
    """The file of a new request. ApiError 409 for a name that is taken, 422 for names that are nothing here."""
    slice_, _, name = key.partition("/")
    path = gpr_path(slice_, name)
    if tree.read(path) is not None or key in view.facts.requests:
        raise conflict(_taken(view, tree, key), "GprAlreadyExists")
    spec = with_template(view, slice_, wanted.spec)
    check_names(view, slice_, spec)
    data = gpr_file(slice_, name, nonce, spec)
    _check_reads(path, data)
    return {path: data}


def _taken(view: View, tree: Tree, key: str) -> str:
    """Why a name is not free: a request that is over keeps it as long as its file, and a record as long as a cycle."""
    status, there = view.facts.requests.get(key), tree.read(gpr_path(*key.split("/")))
    text = f"there is a request {key} already; a new one needs a new name"
    if status is None or status.phase not in TERMINAL:
        return text
    if there is None:
        return (
            f"{key} was {status.phase}, and its record goes with the controller's next cycle; ask again then"
        )
    return f"{key} is {status.phase} and never runs again; take a new name, or have `egs prune --apply` free this one"


def with_template(view: View, slice_: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """With the template that the workspace is bound to, for whoever says neither how much nor by which template."""
    binding = view.wanted.bindings.get(slice_)
    if spec.get("template") or all(field in spec for field in _SIZE):
        return dict(spec)
    if binding is None:
        missing = " and ".join(
            {"nodes": "numberOfGPUNodes", "duration": "exitDuration"}[f] for f in _SIZE if f not in spec
        )
        raise bad_parameters(f"{missing}: needed, unless templateName gives it")
    clusters = spec.get("clusters") or [bound.cluster for bound in binding.clusters]
    offered = {bound.cluster: bound.default for bound in binding.clusters}
    default = next((offered[c] for c in clusters if offered.get(c)), None)
    if default is None:
        raise bad_parameters(
            f"{slice_} is bound to templates and has no default one for {', '.join(clusters)}; name templateName"
        )
    return {**spec, "template": default}


def check_names(view: View, slice_: str, spec: Mapping[str, Any]) -> None:
    """ApiError 422 for a cluster that the workspace does not span, and for a template that is not there."""
    spanned, templates = view.wanted.slices[slice_].clusters, view.wanted.templates
    for name in spec.get("clusters") or ():
        if name not in spanned:
            raise bad_parameters(f"clusterName: {slice_} does not span {name}; it spans {listed(spanned)}")
    template = spec.get("template")
    if template and template not in templates:
        raise bad_parameters(f"templateName: there is no template {template}; there are {listed(templates)}")


def _check_reads(path: str, data: bytes) -> None:
    document = read_document(path, data)
    if not isinstance(document, GPR):
        problems = document if isinstance(document, tuple) else ()
        raise bad_parameters("; ".join(f"{problem.message}; {problem.fix}" for problem in problems[:5]))


# -- one that is there -------------------------------------------------------------------------------------------------


def edited(view: View, tree: Tree, key: str, fields: Mapping[Path, Any]) -> Changes:
    """Its file with these fields; one that is gone comes back. ApiError 409 in a state in which they are fixed."""
    found = found_in(view, key)
    if found is not None:
        check_edit(found, fields)
    if ("earlyRelease",) in fields:
        return _ended(view, tree, key)
    path, there = _there(tree, key)
    old = there if there is not None or found is None else _restored(view, tree, found)
    if old is None:
        raise conflict(f"{key} has no file any more: it was taken back already", RELEASED)
    data = old
    for field, value in fields.items():
        try:
            data = with_field(data, ("spec", *field), value)
        except Refused as error:
            raise conflict(
                f"{path}:{error.line}: {error}; mend the file in the repository, or restore the request, first"
            ) from error
    if data == there:
        raise conflict(f"{key} says so already; nothing is changed", "Unchanged")
    document = read_document(path, data)
    if isinstance(document, GPR):
        check_names(view, key.partition("/")[0], document.spec.model_dump(by_alias=True))
    _check_reads(path, data)
    return {path: data}


def has_terms(fields: Mapping[Path, Any]) -> bool:
    """Whether these fields are terms, which a request keeps once it has its nodes; its shown name is none."""
    return bool({path[0] for path in fields} - WHILE_HELD - {"displayName", "notBefore", "start", "maxWait"})


def check_edit(found: Found, fields: Mapping[Path, Any]) -> None:
    """ApiError 409 where the request's state does not let these fields change."""
    phase = None if found.status is None else found.status.phase
    releases = ("earlyRelease",) in fields
    if _is_over(found):
        raise conflict(f"{found.key} is {phase} and has no nodes any more; file a new request", RELEASED)
    if phase in HOLDING:
        fixed = sorted({path[0] for path in fields} - WHILE_HELD)
        if fixed:
            raise conflict(
                f"{found.key} is {phase} and keeps its terms ({', '.join(fixed)}); release it, or file another",
                PROVISIONED,
            )
    elif releases:
        raise conflict(f"{found.key} has no nodes yet; cancel it instead", NOT_PROVISIONED)


def _is_over(found: Found) -> bool:
    """Ended for good, or ending: but whoever only makes room comes back, and may still be changed."""
    status = found.status
    if status is None:
        return False
    comes_back = status.eviction is not None and status.eviction.reason != "Idle"
    return status.phase in TERMINAL or (status.phase is Phase.RELEASING and not comes_back)


def cancelled(view: View, tree: Tree, key: str) -> Changes:
    """Its file with earlyRelease. ApiError 409 for one with nodes, and for one that is over."""
    found = found_in(view, key)
    if found is not None and found.status is not None:
        phase = found.status.phase
        if _is_over(found):
            raise conflict(f"{key} is {phase} already", RELEASED)
        if phase in HOLDING:
            raise conflict(f"{key} is {phase} and holds nodes; release it instead", PROVISIONED)
    return _ended(view, tree, key)


def restored(view: View, tree: Tree, key: str) -> Changes:
    """Its file as it counts. ApiError 409 for one that is over, and where main says the same already."""
    found, (path, there) = found_in(view, key), _there(tree, key)
    if found is None or found.status is None:
        raise conflict(f"{key} is not on record, so nothing is known to restore; file it", "NotSeenYet")
    if _is_over(found):
        raise conflict(f"{key} is {found.status.phase} and never runs again; file a new request", RELEASED)
    if there is not None and counts_as_it_is(
        says(readable(path, there), view.wanted.templates), found.status
    ):
        raise conflict(f"the file of {key} says what counts already; nothing is changed", "Unchanged")
    return {path: _restored(view, tree, found)}


def _ended(view: View, tree: Tree, key: str) -> Changes:
    """Where the file is gone or broken it is written as it counts: a lease is never without an end."""
    found, (path, there) = found_in(view, key), _there(tree, key)
    is_whole = found is None or readable(path, there) is not None
    data = ending(key, there, None if is_whole or found is None else _restored(view, tree, found))
    if data is None:
        raise conflict(f"{key} has no file any more: it was taken back already", RELEASED)
    if data != there:
        return {path: data}
    if view.facts.trust is None or _is_heard(view, key):
        raise conflict(f"{key} is being released already", RELEASED)
    # It may be a stranger's word, which no controller has judged yet; with the caller's own it counts.
    return {path: brought_again(data, None, view.fetched)}


def _is_heard(view: View, key: str) -> bool:
    """Whether the file that counts asks for the end."""
    filed = view.wanted.filed.get(key)
    return filed is not None and (filed.ends or (filed.spec is not None and filed.spec.early_release))


def _restored(view: View, tree: Tree, found: Found) -> bytes:
    last = tree.last(gpr_path(*found.key.split("/")))
    return as_it_counts(found.key, last, found.spec, view.wanted.templates)


def _there(tree: Tree, key: str) -> tuple[str, bytes | None]:
    """Path and content of its file: what counts of it, where main's own is held."""
    path = gpr_path(*key.split("/"))
    return path, tree.read(path)
