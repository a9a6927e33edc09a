"""Whether a caller may push a change, may propose it, or may not make it. Pure.

`reconciler.trust.policy` decides, as it does for commits of people, so the API allows no more than Git.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from portal.http.errors import bad_parameters, forbidden
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes, WriteRequest
from reconciler.changes.main_documents import sentence
from reconciler.changes.will_it_count import denials
from reconciler.model.evidence import Actor, Denial
from schemas.documents.project import ProjectSpec
from schemas.reading.reader import rule_of
from schemas.rules.problems import Problem

Read = Callable[[str], bytes | None]
MOST_PROBLEMS = 20
"""Most problems listed for one change."""


def goes(
    write: WriteRequest, changes: Changes, read: Read, project: ProjectSpec | None
) -> Literal["push", "propose"]:
    """Straight to main, or as a proposal. Raises ApiError 403."""
    stray = next((path for path in sorted(changes) if rule_of(path) is None), None)
    if stray is not None:
        raise bad_parameters(f"nothing is changed, because {stray} is not the path of a document")
    ask = partial(denials, changes=changes, before=read, read=read_document)
    denied = ask(write.caller.actor)
    for found in denied:
        if not _is_an_admins_to_merge(write.caller.actor, found):
            raise forbidden(found.message)
    # A verified main would hold a change that only a group allows, so an admin merges it.
    if write.asks or denied or ask(write.caller.judged):
        return "propose"
    asks = project is not None and project.changes == "pull-request"
    return "propose" if asks and not write.must_push else "push"


def _is_an_admins_to_merge(actor: Actor, found: Denial) -> bool:
    """Anyone may request a slice, and a slice's owners may propose changes of its other fields."""
    rule = rule_of(found.path)
    kind, names = (rule[0].kind, rule[1]) if rule is not None else ("", {})
    if kind == "WorkspaceRequest":
        return found.rule == "NeedsAdmin"
    return kind == "Slice" and names["name"] in actor.owns


def refuse(found: Sequence[Problem]) -> None:
    """ApiError 422 with every problem, if there is one."""
    if not found:
        return
    shown = found[:MOST_PROBLEMS]
    text = "; ".join(map(sentence, shown))
    data = {"problems": [{"file": p.file, "rule": p.rule, "message": p.message, "fix": p.fix} for p in shown]}
    raise bad_parameters(f"nothing is changed, because it would be invalid: {text}", data)
