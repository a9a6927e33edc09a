"""Restores the file of a request as it counts if it is missing or unreadable on main.

It is main's last version if that says exactly what counts (this keeps comments), else it is made from the
accepted spec and labels, without an admin's `move`: a member may not write that, and a lease has no position.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents.yaml_edit import new_document, with_field
from reconciler.store.store_port import Store
from schemas.documents.gpr import GPR, RequestSpec, Wish, resolve
from schemas.reading.reader import read_document
from schemas.rules.edits import changed_terms
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, GPRStatus

EARLY_RELEASE = ("spec", "earlyRelease")
MOST_STEPS = 20
"""Changes of one file that are searched for its last readable content."""
_BLANKS: tuple[object, ...] = (None, {}, [])


def readable(path: str, data: bytes | None) -> GPR | None:
    """The request in a file; None if it is unreadable or missing."""
    found = None if data is None else read_document(path, data)
    return found if isinstance(found, GPR) else None


def says(document: GPR | None, templates: Mapping[str, Wish]) -> RequestSpec | None:
    """What a file asks for, template included; None: unusable."""
    if document is None:
        return None
    named = document.spec.template
    if named and named not in templates:
        return None
    found = resolve(document.spec, templates[named] if named else None)
    return found if isinstance(found, RequestSpec) else None


def counts_as_it_is(said: RequestSpec | None, status: GPRStatus) -> bool:
    """True if a file with this spec says what counts; for a lease, all of its terms."""
    if said is None:
        return False
    if status.phase in HOLDING:
        return not changed_terms(status.accepted_spec, said)
    return said == status.accepted_spec


def as_it_counts(key: str, last: bytes | None, accepted: RequestSpec, templates: Mapping[str, Wish]) -> bytes:
    """The file of `slice/name`; `last` is main's last readable content (None: unknown)."""
    document = readable(gpr_path(*key.split("/")), last)
    if last is not None and says(document, templates) == accepted:
        return with_field(last, ("spec", "move"), None) if accepted.move else last
    return _written(key, accepted, {} if document is None else document.metadata.labels)


def _written(key: str, accepted: RequestSpec, labels: Mapping[str, str]) -> bytes:
    fields = accepted.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"move"})
    shapes = fields.pop("gpuShapes", None)
    if shapes:
        fields["gpuShape"] = shapes[0] if len(shapes) == 1 else list(shapes)
    spec = {name: value for name, value in fields.items() if value not in _BLANKS}
    return new_document("GPR", key.partition("/")[2], spec, labels)


def ending(key: str, there: bytes | None, counts: bytes | None) -> bytes | None:
    """The file with earlyRelease: based on `there` if readable, else on `counts`; None: neither is usable."""
    base = there if readable(gpr_path(*key.split("/")), there) is not None else counts
    return None if base is None else with_field(base, EARLY_RELEASE, True)


def ends(path: str, data: bytes | None) -> bool:
    """True if a file ends its request: then nothing else in it matters."""
    document = readable(path, data)
    return document is not None and document.spec.early_release


def last_read(store: Store, commit: str, path: str) -> bytes | None:
    """The last content of a file that is a readable request, at that commit or before; None: none found."""
    at: str | None = commit
    for _ in range(MOST_STEPS):
        at = None if at is None else store.last_change(at, path)
        if at is None:
            return None
        data = store.read_path(at, path)
        if readable(path, data) is not None:
            return data
        at = store.parent(at)
    return None
