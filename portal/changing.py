"""What may become of a request's file: filed, edited, taken back. Decisions alone; `portal.writer` carries them.

Held by tests/portal/test_gpr_changes.py: a request in another state is refused with the state's own key, and an edit
leaves comments and order of the file as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.callers import Caller
from portal.errors import ApiError, bad_parameters, conflict, not_found
from portal.filing import Asked, Path, gpr_file
from portal.gprs import Found, found_in
from portal.naming import listed
from portal.parsing import read_document
from portal.view import View
from portal.writing import Changes, Tree
from reconciler.commands.editing import with_field
from schemas.gpr import GPR
from schemas.status import HOLDING, TERMINAL, Phase
from schemas.strictyaml import Refused
from schemas.view import gpr_path

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


def filed(view: View, tree: Tree, key: str, nonce: str, wanted: Asked) -> Changes:
    """The file of a new request. ApiError 409 for a name that is taken, 422 for names that are nothing here."""
    slice_, _, name = key.partition("/")
    path = gpr_path(slice_, name)
    if tree.read(path) is not None or key in view.facts.requests:
        raise conflict(f"there is a request {key} already; a new one needs a new name", "GprAlreadyExists")
    spec = with_template(view, slice_, wanted.spec)
    check_names(view, slice_, spec)
    data = gpr_file(slice_, name, nonce, spec)
    _check_reads(path, data)
    return {path: data}


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
    """Its file with these fields. ApiError 409 in a state in which they are fixed."""
    found = found_in(view, key)
    if found is not None:
        check_edit(found, fields)
    path, old = _file(view, tree, key)
    data = old
    for field, value in fields.items():
        try:
            data = with_field(data, ("spec", *field), value)
        except Refused as error:
            raise conflict(f"{path}:{error.line}: {error}; mend the file in the repository first") from error
    if data == old:
        raise _says_so_already(key, fields)
    document = read_document(path, data)
    if isinstance(document, GPR):
        check_names(view, key.partition("/")[0], document.spec.model_dump(by_alias=True))
    _check_reads(path, data)
    return {path: data}


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


def _says_so_already(key: str, fields: Mapping[Path, Any]) -> ApiError:
    if ("earlyRelease",) in fields:
        return conflict(f"{key} is being released already", RELEASED)
    return conflict(f"{key} says so already; nothing is changed", "Unchanged")


def cancelled(view: View, tree: Tree, key: str) -> Changes:
    """Its file gone, and the approvals of it: without it they would be errors. ApiError 409 for one with nodes."""
    found = found_in(view, key)
    if found is not None and found.status is not None:
        phase = found.status.phase
        if _is_over(found):
            raise conflict(f"{key} is {phase} already", RELEASED)
        if phase in HOLDING:
            raise conflict(f"{key} is {phase} and holds nodes; release it instead", PROVISIONED)
    path, _ = _file(view, tree, key)
    handles = {approval.metadata.name for approval in view.wanted.approvals.get(key, ())}
    handles |= {admin.handle for admin in view.wanted.project.admins}
    words = [f"approvals/{key}/{handle}.yaml" for handle in sorted(handles)]
    return dict.fromkeys((path, *(word for word in words if tree.read(word) is not None)))


def _file(view: View, tree: Tree, key: str) -> tuple[str, bytes]:
    """Path and content of its file. ApiError 409 where it is gone, or held."""
    path = gpr_path(*key.split("/"))
    held = () if view.facts.trust is None else view.facts.trust.held
    if any(change.path == path for change in held):
        raise conflict(
            f"a change of {path} is held because nobody with a right to it stands behind it; "
            f"`egs resubmit {key}` brings it in again, then change it",
            "Held",
        )
    data = tree.read(path)
    if data is None:
        raise conflict(f"{key} has no file any more: it was taken back already", RELEASED)
    return path, data
