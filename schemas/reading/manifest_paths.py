"""The path of a document in a repository, from its own text: kind, name, and for some kinds its slice. Pure."""

from __future__ import annotations

import re
from typing import Any

from schemas.reading.reader import PATHS, rule_of
from schemas.reading.strict_yaml import load

_GROUP = re.compile("<([a-z]+)>")


def path_of(data: bytes) -> str | None:
    """Where a repository has the document; None: its kind or a name that makes the path is missing.

    Raises `schemas.reading.strict_yaml.Refused` for what is not one YAML document.
    """
    document = load(data)
    content: dict[str, Any] = document if isinstance(document, dict) else {}
    rule = next((rule for rule in PATHS if rule.kind == content.get("kind")), None)
    spec, metadata = content.get("spec"), content.get("metadata")
    known = {**(spec if isinstance(spec, dict) else {}), **(metadata if isinstance(metadata, dict) else {})}
    path = "" if rule is None else _GROUP.sub(lambda group: str(known.get(group[1], "")), rule.path)
    return path if rule_of(path) is not None else None
