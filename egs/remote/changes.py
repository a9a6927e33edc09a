"""Requests filed, changed and ended over the HTTP API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from egs.commands import output
from egs.commands.backend import Filed
from egs.commands.errors import Said, not_allowed, wrong_use
from egs.commands.output import Row
from egs.remote import asking
from egs.remote.fields import FIELDS, named, quotes, wired

_TRIES = 3
"""How often a release retries while the request gets or loses its nodes between two calls."""
_TEXTS = frozenset({"displayName", "instanceType", "model", "model.name"})
"""Text fields: their values are not read as YAML."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None}


def create(request: str, terms: Mapping[str, Any], *, is_trial: bool) -> Filed:
    """Ask when it would start, then file it."""
    slice_, _, name = named(request).partition("/")
    asked = {field: value for field, value in terms.items() if field != "displayName"}
    rows, notes = quotes(slice_, asked)
    change: Row = {}
    if not is_trial:
        body = {"sliceName": slice_, "name": name, **wired(terms)}
        change = asking.send("POST", "gpr", body)["change"]
        report(f"Create {request}", change)
    data = {
        "slice": slice_,
        "name": name,
        "path": f"slices/{slice_}/gprs/{name}.yaml",
        **where_it_is(change),
        "dryRun": is_trial,
        "estimate": _estimate(rows),
    }
    return Filed(data, notes if is_trial else ())


def _estimate(rows: Sequence[Row]) -> Row | None:
    """The first start that needs no approval, else the first of all; None: there is none."""
    starts = [row for row in rows if row["estimatedStartTime"]]
    return next((row for row in starts if not row["needsApproval"]), starts[0] if starts else None)


def where_it_is(change: Row) -> dict[str, Any]:
    """Commit, branch and pull request of a change, for data; null where there is none."""
    url = change.get("url") if change.get("way") == "pull-request" else None
    number = None if url is None else url.rstrip("/").rpartition("/")[2]
    pull = None if number is None else {"number": int(number) if number.isdigit() else None, "url": url}
    return {"commit": change.get("commit"), "branch": change.get("branch"), "pullRequest": pull}


def report(subject: str, change: Row) -> None:
    """Say on stderr where the change is now, and what is left to do."""
    commit, branch, url = ((change.get(name) or "") for name in ("commit", "branch", "url"))
    match change["way"]:
        case "pushed":
            output.note(f"{subject}: committed to main as {commit[:12]}")
        case "pull-request":
            output.note(f"{subject}: asks to be merged, {url or branch}")
        case "branch":
            output.note(f"{subject}: on the branch {branch}; it counts once it is merged into main")
        case _:
            output.note(f"{subject}: accepted; {url} says when it is done")


def edit(request: str, words: Sequence[str]) -> None:
    """Change fields, as `egs gpr edit` gives them. Raises Said."""
    names = ", ".join(word.partition("=")[0] for word in words)
    changed(request, assignments(words), f"Edit {request}: {names}")


def assignments(words: Sequence[str]) -> dict[str, Any]:
    """`field=value …` as they go over HTTP. Raises Said."""
    edits: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise wrong_use(f"{word} is not FIELD=VALUE; write for example nodes=4 or network.rdma=true")
        if name not in FIELDS:
            raise not_allowed(
                f"{name} cannot be changed on a server; choose from {', '.join(sorted(FIELDS))}, or change any field "
                "with --repo",
                "NotFound",
            )
        edits[FIELDS[name]] = (text or None) if name in _TEXTS else _value(word, text)
    return edits


def _value(word: str, text: str) -> Any:
    import yaml

    try:
        # BaseLoader reads texts, lists and mappings only: no times, no `on`, no objects.
        return _plain(yaml.BaseLoader(text).get_single_data()) if text.strip() else None
    except yaml.YAMLError as error:
        raise wrong_use(f"{word}: the value cannot be read as YAML") from error


def _plain(value: Any) -> Any:
    """As in a manifest, where null, true, false and numbers are not texts."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return _WORDS.get(value, value)


def release(request: str) -> None:
    last: Said | None = None
    for _ in range(_TRIES):
        for door, other_phase in ((_release, "NotProvisioned"), (cancel, "GpuAlreadyProvisioned")):
            try:
                door(request)
            except Said as error:
                if error.reason != other_phase:
                    raise
                last = error
            else:
                return
    assert last is not None
    raise last


def _release(request: str) -> None:
    changed(request, {"earlyRelease": True}, f"Release {request}")


def cancel(request: str) -> None:
    done = asking.send("DELETE", "gpr", {"gprId": named(request)})
    report(f"Cancel {request}", done["change"])


def restore(request: str) -> None:
    done = asking.send("POST", "gpr/restore", {"gprId": named(request)})
    report(f"Restore {request}", done["change"])


def changed(request: str, fields: Mapping[str, Any], subject: str) -> None:
    """Change fields, named as over HTTP; None removes a field."""
    done = asking.send_as_is("PUT", "gpr", {"gprId": named(request), **fields})
    report(subject, done["change"])


_MOVE = ("slice", "name", "change", "was", "now", "cause", "by")
"""Fields of a move, as `egs plan --against` has them."""


def undo(commit: str, *, is_trial: bool) -> Row:
    """Show what taking a commit back does to others, then propose it."""
    found = asking.get("undo", {"commit": commit})
    change: Row = {}
    if not is_trial:
        change = asking.send("POST", "undo", {"commit": found["undoes"], "digest": found["digest"]})["change"]
        report(f"Undo {found['undoes'][:12]}", change)
    told = {name: found[name] for name in ("undoes", "subject", "by", "files", "left")}
    moves = [{name: row[name] for name in _MOVE} for row in found["effect"]["moved"]]
    return {**told, "moves": moves, **where_it_is(change)}
