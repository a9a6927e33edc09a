"""`egs init` and `egs prune`: the first files of a repository, and the removal of finished requests' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from egs.commands import output
from egs.commands.output import Form
from reconciler.changes.change import Change
from reconciler.changes.publish import report, submit
from reconciler.changes.requests import approval_files
from reconciler.queries.state import State, clock, read_state, split
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.here import is_bare
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.sources.work_tree import initialise, person
from schemas.reading.reader import read_document
from schemas.rules.view import PROJECT, gpr_path
from schemas.status.gpr_status import TERMINAL

FOLDERS = ("approvals", "clusters", "requests", "slices", "templates")

_PROJECT = """\
# Who administers the fleet, and the rules for everyone. `egs validate` checks every file here.
apiVersion: egs.dev/v1alpha1
kind: Project
metadata:
  name: default
spec:
  admins:
    - email: {admin}
  limits:
    nodesPerRequest: 16     # a request for more nodes waits for an admin
  maxExtension: 0d1h0m      # extension that a running request may ask for
"""
_README = """\
# GPU nodes, shared through pull requests

- `project.yaml`: admins, limits, rules
- `clusters/<cluster>.yaml`: GPU nodes, and whether they may be touched (`mode: observe` is the default)
- `slices/<slice>/slice.yaml`: a team, its clusters, quota and limits
- `slices/<slice>/gprs/<name>.yaml`: requests for nodes
- `requests/<slice>.yaml`: slices that users request
- `templates/<name>.yaml`: defaults that requests can use
- `approvals/<slice>/<request>/<admin>.yaml`: an admin's approval of a request beyond its quota

Check a change with `egs validate`, see its effects with `egs plan --against origin/main`. The controller writes
the queue, with every request's start, to the branch `egs/status`; only it pushes there.
"""


def init(path: str, admin: str | None) -> None:
    """Writes the first files; raises if the folder has any of them already."""
    folder = Path(path).expanduser()
    if folder.exists() and (not folder.is_dir() or is_bare(folder)):
        raise WrongUse(f"{path} is a {'bare repository' if folder.is_dir() else 'file'}; choose a folder")
    there = [name for name in (PROJECT, *FOLDERS) if (folder / name).exists()]
    if there:
        raise NotAllowed(f"{path} has {', '.join(there)} already; nothing is overwritten")
    mail = admin or _own_address(folder)
    text = _PROJECT.format(admin=mail).encode()
    if "\n" in mail or isinstance(read_document(PROJECT, text), tuple):
        raise WrongUse(f"{mail} is not an e-mail address; give --admin NAME@HOST")
    folder.mkdir(parents=True, exist_ok=True)
    initialise(folder)
    (folder / PROJECT).write_bytes(text)
    if not (folder / "README.md").exists():
        (folder / "README.md").write_text(_README)
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / ".gitkeep").touch()
    output.text(f"{folder} is a repository for project default with the admin {mail}")
    output.note(
        'next: add clusters/<name>.yaml and slices/<name>/slice.yaml, then git add -A && git commit -m "Begin"'
    )


def _own_address(folder: Path) -> str:
    try:
        return person(None, folder).email
    except WrongUse as error:
        raise WrongUse("the first admin is missing; give --admin NAME@HOST") from error


def prune(repo: str | None, author: str | None, form: Form, *, is_applied: bool) -> None:
    """Lists the files of finished requests; with `is_applied` removes them in one change."""
    with opened(repo) as source:
        state, base = read_state(source, clock(None, source)), source.commit_of(None)
        rows = finished(source, state, base)
        if form is not Form.TABLE:
            output.data(rows, form)
        else:
            cells = [(f"{row['slice']}/{row['name']}", row["phase"], row["files"]) for row in rows]
            output.table(("REQUEST", "PHASE", "FILES"), cells, "no request with a file has finished")
        if not rows or not is_applied:
            if rows:
                output.note("nothing is removed yet; run `egs prune --apply`")
            return
        who = None if source.is_folder else source.author(author)
        report(submit(source, state.now, who, lambda state, base: _removal(source, state, base)))


def finished(source: Source, state: State, base: str) -> list[dict[str, Any]]:
    """Finished requests whose file is still there, with all related files."""
    rows = []
    for key in sorted(state.wanted.filed):
        status = state.facts.requests.get(key)
        if status is not None and status.phase in TERMINAL:
            slice_, name = split(key)
            files = [gpr_path(slice_, name), *approval_files(source, base, key)]
            rows.append({"slice": slice_, "name": name, "phase": str(status.phase), "files": files})
    return rows


def _removal(source: Source, state: State, base: str) -> Change:
    rows = finished(source, state, base)
    files = [file for row in rows for file in row["files"]]
    return Change(dict.fromkeys(files), f"Prune {output.counted(len(rows), 'finished request')}")
