"""Changes of a request's file: file, edit, end, restore. Pure; `portal.writes.writer` carries them out.

Held by tests/portal/test_gpr_changes.py and test_endings.py:
  * a request in another state is refused with the state's own key;
  * an edit leaves comments and order of the file as they are;
  * a request ends by `earlyRelease` in its file, never by deleting it: it may have got its nodes since we looked.
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
"""Fields that may still change once a request has its nodes; all others are its terms."""
_SIZE = {"nodes": "numberOfGPUNodes", "duration": "exitDuration"}
"""Fields that say how much, with the vendor's names."""


# -- access ------------------------------------------------------------------------------------------------------------


def seen(view: View, caller: Caller, id_or_key: str) -> Found:
    """The request; ApiError 404 if there is none that the caller may see."""
    found = found_in(view, id_or_key)
    if found is None or not caller.may_see(found.slice):
        raise not_found("request", id_or_key)
    return found


# -- a new request -----------------------------------------------------------------------------------------------------


def filed(view: View, tree: Tree, key: str, nonce: str, wanted: RequestedFields) -> Changes:
    """The file of a new request. ApiError 409 for a name in use, 422 for an unknown cluster or template."""
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
    """Why a name is in use: a finished request keeps it while its file exists, a record until the next cycle."""
    status = view.facts.requests.get(key)
    if status is None or status.phase not in TERMINAL:
        return f"a request {key} exists already; choose another name"
    if _there(tree, key)[1] is None:
        return f"{key} was {status.phase}, and the controller's next cycle removes its record; try again then"
    return f"{key} is {status.phase} and never runs again; choose another name, or free it with `egs prune --apply`"


def with_template(view: View, slice_: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """With the default template of the workspace's binding, if neither the size nor a template is given."""
    binding = view.wanted.bindings.get(slice_)
    if spec.get("template") or all(field in spec for field in _SIZE):
        return dict(spec)
    if binding is None:
        missing = " and ".join(name for field, name in _SIZE.items() if field not in spec)
        raise bad_parameters(f"{missing}: required, unless templateName gives it")
    clusters = spec.get("clusters") or [bound.cluster for bound in binding.clusters]
    offered = {bound.cluster: bound.default for bound in binding.clusters}
    default = next((offered[c] for c in clusters if offered.get(c)), None)
    if default is None:
        raise bad_parameters(f"{slice_} has no default template for {', '.join(clusters)}; set templateName")
    return {**spec, "template": default}


def check_names(view: View, slice_: str, spec: Mapping[str, Any]) -> None:
    """ApiError 422 for a cluster that the workspace does not span, or a template that does not exist."""
    spanned, templates = view.wanted.slices[slice_].clusters, view.wanted.templates
    for name in spec.get("clusters") or ():
        if name not in spanned:
            raise bad_parameters(f"clusterName: {slice_} does not span {name}; it spans {listed(spanned)}")
    template = spec.get("template")
    if template and template not in templates:
        raise bad_parameters(
            f"templateName: there is no template {template}; choose from {listed(templates)}"
        )


def _check_reads(path: str, data: bytes) -> None:
    document = read_document(path, data)
    if not isinstance(document, GPR):
        problems = document if isinstance(document, tuple) else ()
        raise bad_parameters("; ".join(problem.advice for problem in problems[:5]))


# -- an existing request -----------------------------------------------------------------------------------------------


def edited(view: View, tree: Tree, key: str, fields: Mapping[Path, Any]) -> Changes:
    """Its file with these fields; a deleted file is restored. ApiError 409 if its state fixes one of the fields."""
    found = found_in(view, key)
    if found is not None:
        check_edit(found, fields)
    if ("earlyRelease",) in fields:
        return _ended(view, tree, key)
    path, there = _there(tree, key)
    old = there if there is not None or found is None else _restored(view, tree, found)
    if old is None:
        raise conflict(f"{key} was cancelled already: it has no file any more", RELEASED)
    data = old
    for field, value in fields.items():
        try:
            data = with_field(data, ("spec", *field), value)
        except Refused as error:
            raise conflict(
                f"{path}:{error.line}: {error}; first repair the file in the repository, or restore the request"
            ) from error
    if data == there:
        raise conflict(f"{key} has these values already; nothing to change", "Unchanged")
    document = read_document(path, data)
    if isinstance(document, GPR):
        check_names(view, key.partition("/")[0], document.spec.model_dump(by_alias=True))
    _check_reads(path, data)
    return {path: data}


def has_terms(fields: Mapping[Path, Any]) -> bool:
    """Whether any of these fields is a term, which is fixed once a request has its nodes; the display name is not."""
    return bool({path[0] for path in fields} - WHILE_HELD - {"displayName", "notBefore", "start", "maxWait"})


def check_edit(found: Found, fields: Mapping[Path, Any]) -> None:
    """ApiError 409 if the request's state fixes one of these fields."""
    phase = None if found.status is None else found.status.phase
    if _is_over(found):
        raise conflict(f"{found.key} is {phase} and has no nodes any more; file a new request", RELEASED)
    if phase in HOLDING:
        fixed = sorted({path[0] for path in fields} - WHILE_HELD)
        if fixed:
            raise conflict(
                f"{found.key} is {phase} and keeps its terms ({', '.join(fixed)}); release it, or file another",
                PROVISIONED,
            )
    elif ("earlyRelease",) in fields:
        raise conflict(f"{found.key} has no nodes yet; cancel it instead", NOT_PROVISIONED)


def _is_over(found: Found) -> bool:
    """Whether it has ended, or is ending for good; one that makes room comes back and may still be changed."""
    status = found.status
    if status is None:
        return False
    comes_back = status.eviction is not None and status.eviction.reason != "Idle"
    return status.phase in TERMINAL or (status.phase is Phase.RELEASING and not comes_back)


def cancelled(view: View, tree: Tree, key: str) -> Changes:
    """Its file with earlyRelease. ApiError 409 if it has nodes, or is over."""
    found = found_in(view, key)
    if found is not None and found.status is not None:
        phase = found.status.phase
        if _is_over(found):
            raise conflict(f"{key} is {phase} already", RELEASED)
        if phase in HOLDING:
            raise conflict(f"{key} is {phase} and holds nodes; release it instead", PROVISIONED)
    return _ended(view, tree, key)


def restored(view: View, tree: Tree, key: str) -> Changes:
    """Its file with the terms in force. ApiError 409 if it is over, or if main already has them."""
    found, (path, there) = found_in(view, key), _there(tree, key)
    if found is None or found.status is None:
        raise conflict(f"there is no record of {key}, so there is nothing to restore; file it", "NotSeenYet")
    if _is_over(found):
        raise conflict(f"{key} is {found.status.phase} and never runs again; file a new request", RELEASED)
    if there is not None and counts_as_it_is(
        says(readable(path, there), view.wanted.templates), found.status
    ):
        raise conflict(
            f"the file of {key} has the content that counts already; nothing to change", "Unchanged"
        )
    return {path: _restored(view, tree, found)}


def _ended(view: View, tree: Tree, key: str) -> Changes:
    """A deleted or broken file is first restored, so that a lease always has an end."""
    found, (path, there) = found_in(view, key), _there(tree, key)
    is_whole = found is None or readable(path, there) is not None
    data = ending(key, there, None if is_whole or found is None else _restored(view, tree, found))
    if data is None:
        raise conflict(f"{key} was cancelled already: it has no file any more", RELEASED)
    if data != there:
        return {path: data}
    if view.facts.trust is None or _is_heard(view, key):
        raise conflict(f"{key} is being released already", RELEASED)
    # The end on main may be unauthorised and not judged yet; written again by the caller it counts.
    return {path: brought_again(data, None, view.fetched)}


def _is_heard(view: View, key: str) -> bool:
    """Whether the file in force asks for the end."""
    filed = view.wanted.filed.get(key)
    return filed is not None and (filed.ends or (filed.spec is not None and filed.spec.early_release))


def _restored(view: View, tree: Tree, found: Found) -> bytes:
    last = tree.last(gpr_path(*found.key.split("/")))
    return as_it_counts(found.key, last, found.spec, view.wanted.templates)


def _there(tree: Tree, key: str) -> tuple[str, bytes | None]:
    """Path and content of its file; if main's content is held, the content in force."""
    path = gpr_path(*key.split("/"))
    return path, tree.read(path)
