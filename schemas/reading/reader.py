"""From a file's bytes to a document, or to everything that is wrong with it.

A document is a regular file at a path of its kind, passes the strict loader and its model, and has the name of its
file or folder. `read_document` checks all of that. Caches keep the result of `parse_to_json`, the slow half, by the
content's hash, and continue with `from_json`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json as value_of_json
from pydantic_core import to_json

from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.binding import GPRTemplateBinding
from schemas.documents.cluster import Cluster
from schemas.documents.endpoint import Endpoint
from schemas.documents.gpr import GPR, GPRTemplate
from schemas.documents.notifications import Profile
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.documents.workload import Workload
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.strict_yaml import Positions, Refused, load, locate
from schemas.rules.findings import Finding
from schemas.rules.problems import Problem, quoted
from schemas.rules.rule_list import severity_of

REGULAR = 0o100644
READER_VERSION = "4"
"""Part of every cache key for parsed files; raised whenever the same bytes are read differently."""

Reading = Document | tuple[Problem, ...]
"""The result of reading one file."""

_NAME = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_FOLDERS = ("clusters/", "slices/", "templates/", "bindings/", "keys/", "people/", "requests/", "approvals/")
_HEAD = (("api_version", "apiVersion"), ("kind", "kind"))
_WELCOME = ("README.md", ".gitkeep")
"""Files that may be anywhere without a warning."""
_ODD = {0o120000: "a symbolic link", 0o160000: "a submodule"}
"""Modes of what hides the files below it."""


@dataclass(frozen=True, slots=True)
class PathRule:
    """The path of the files of one kind. The pattern's groups are the document's `name` and its folders."""

    kind: str
    path: str
    model: type[Document]

    @property
    def pattern(self) -> str:
        return re.sub("<([a-z]+)>", rf"(?P<\1>{_NAME})", self.path.replace(".", "[.]"))


PATHS = (
    PathRule("GPR", "slices/<slice>/gprs/<name>.yaml", GPR),
    PathRule("Workload", "slices/<slice>/workloads/<name>.yaml", Workload),
    PathRule("Endpoint", "slices/<slice>/endpoints/<name>.yaml", Endpoint),
    PathRule("Slice", "slices/<name>/slice.yaml", Slice),
    PathRule("Approval", "approvals/<slice>/<gpr>/<name>.yaml", Approval),
    PathRule("Cluster", "clusters/<name>.yaml", Cluster),
    PathRule("GPRTemplate", "templates/<name>.yaml", GPRTemplate),
    PathRule("GPRTemplateBinding", "bindings/<name>.yaml", GPRTemplateBinding),
    PathRule("ApiKey", "keys/<name>.yaml", ApiKey),
    PathRule("Profile", "people/<name>.yaml", Profile),
    PathRule("WorkspaceRequest", "requests/<name>.yaml", WorkspaceRequest),
    PathRule("Project", "project.yaml", Project),
)
_MATCHERS = tuple((rule, re.compile(rule.pattern)) for rule in PATHS)


def rule_of(path: str) -> tuple[PathRule, dict[str, str]] | None:
    """The kind of document at `path` and the names in it; None if it is not the path of a document."""
    for rule, pattern in _MATCHERS:
        found = pattern.fullmatch(path)
        if found:
            return rule, found.groupdict()
    return None


def read_document(path: str, data: bytes, mode: int = REGULAR) -> Reading:
    """The document, or all its problems; `()` for a file that is not ours. Raises nothing."""
    return read_with_text(path, data, mode)[0]


def read_with_text(path: str, data: bytes, mode: int = REGULAR) -> tuple[Reading, bytes | None]:
    """As `read_document`, plus the JSON text for a cache if the bytes are one YAML document."""
    found = rule_of(path)
    if found is None:
        return _no_document(path, mode), None
    if mode != REGULAR:
        return (Finding(path, "NotAFile", f"the file's mode is {mode:06o}").problem(None),), None
    try:
        text = parse_to_json(data)
    except Refused as error:
        severity = severity_of(error.rule)
        message = quoted(error.message)
        problem = Problem(path, error.line, error.column, error.rule, severity, message, error.fix)
        return (problem,), None
    outcome = _validated(path, *found, text)
    return outcome if isinstance(outcome, Document) else _located(outcome, locate(data)), text


def parse_to_json(data: bytes) -> bytes:
    """The content as JSON text for `from_json`; raises `Refused`. For a cache."""
    return to_json(load(data))


def from_json(path: str, text: bytes) -> Reading:
    """As `read_document`, from the result of `parse_to_json`; its problems have no line numbers."""
    found = rule_of(path)
    if found is None:
        return _no_document(path, REGULAR)
    outcome = _validated(path, *found, text)
    return outcome if isinstance(outcome, Document) else _located(outcome, None)


def _located(findings: tuple[Finding, ...], positions: Positions | None) -> tuple[Problem, ...]:
    return tuple(sorted({finding.problem(positions) for finding in findings}))


def _validated(
    path: str, rule: PathRule, names: dict[str, str], text: bytes
) -> Document | tuple[Finding, ...]:
    try:
        # Python's names of fields are for code; files use the alias only.
        document = rule.model.model_validate_json(text, by_alias=True, by_name=False)
    except ValidationError as error:
        # Only refused documents need the explainer, which takes longer to import than everything else.
        from schemas.reading.explain import explain

        return explain(path, rule.model, value_of_json(text), error)
    return tuple(_misplaced(path, document, names)) or document


def _misplaced(path: str, document: Any, names: dict[str, str]) -> list[Finding]:
    """Contradictions between the document and its path, and missing head fields, for which models have defaults."""
    found = [
        Finding(path, "MissingField", f"the field {alias} is missing", fix=f"add {alias}")
        for field, alias in _HEAD
        if field not in document.model_fields_set
    ]
    name = document.metadata.name
    if names.get("name", name) != name:
        message = f"metadata.name is {name}, but the path says {names['name']}"
        found.append(Finding(path, "NameMismatch", message, ("metadata", "name")))
    for folder in ("slice", "gpr"):
        if folder not in names:
            continue
        said = getattr(document.spec, folder)
        if said != names[folder]:
            message = f"spec.{folder} is {said}, but the folder says {names[folder]}"
            found.append(Finding(path, "FolderMismatch", message, ("spec", folder)))
    return found


def _no_document(path: str, mode: int) -> tuple[Problem, ...]:
    if not f"{path}/".startswith(_FOLDERS) or path.rpartition("/")[2] in _WELCOME:
        return ()
    what = _ODD.get(mode)
    message = (
        f"{path} is {what}: nothing behind it is read" if what else f"{path} is not the path of a document"
    )
    fix = "name it .yaml" if path.endswith(".yml") else None
    return (Finding(path, "StrayFile", message, fix=fix).problem(None),)
