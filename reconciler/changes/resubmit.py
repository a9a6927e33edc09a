"""`egs resubmit`: a person with the right to a held file submits its content again."""

from __future__ import annotations

from reconciler.changes.change import Change, Means
from reconciler.changes.publish import aimed, publish
from reconciler.changes.reinstate import file_versions
from reconciler.queries.state import State, split
from reconciler.sources.command_errors import NotAllowed
from schemas.reading.reader import rule_of
from schemas.rules.view import gpr_path


def resubmit(means: Means, what: str) -> None:
    """Submits the file of a path or request again; a deleted one is restored as it counts."""
    path = what if rule_of(what) is not None else gpr_path(*split(what))

    def build(state: State, base: str) -> Change:
        found = file_versions(source, state, base, path)
        if found.hold is None:
            raise NotAllowed(f"{path} is not held with this content; nothing to change")
        data = found.counts if found.main is None else found.main
        if data is None:
            raise NotAllowed(
                f"the content of {path} that counts is not available here; fetch main, or restore the file "
                "from its history"
            )
        return Change({path: data}, f"Bring in {path} again")

    with aimed(means) as source:
        publish(source, means, build)
