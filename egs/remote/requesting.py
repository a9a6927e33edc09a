"""`egs gpr …` on a server: file, change and end requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.errors import Said, not_allowed, wrong_use
from egs.commands.options import DryRun, Output, Request
from egs.commands.output import Form, Row
from egs.remote import asking
from egs.remote.looking import quote_row, quoted
from egs.remote.server import named

_TRIES = 3
"""How often a release asks again of a request that gets its nodes, or loses them, between two questions."""
FIELDS: Mapping[str, str] = {
    "nodes": "numberOfGPUNodes",
    "gpusPerNode": "numberOfGPUs",
    "memoryPerGpu": "memoryPerGPU",
    "gpuShape": "gpuShape",
    "instanceType": "instanceType",
    "duration": "exitDuration",
    "priority": "priority",
    "displayName": "gprName",
    "clusters": "preferredClusters",
    "template": "templateName",
    "notBefore": "notBefore",
    "start": "start",
    "prefer": "prefer",
    "maxWait": "maxWait",
    "model": "model",
    "model.name": "model",
    "network.rdma": "enableRDMA",
    "network.secondary": "enableSecondaryNetwork",
    "idleTimeout": "idleTimeOutDuration",
    "preemptible": "enableEviction",
    "requeueOnFailure": "requeueOnFailure",
    "extend": "extend",
    "stopped": "stopped",
    "earlyRelease": "earlyRelease",
}
"""What a field of a request's file is called over HTTP."""
_TEXTS = frozenset({"displayName", "instanceType", "model", "model.name"})
"""Fields that hold text alone: whatever is typed is meant as it is."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None}


def register(app: typer.Typer) -> None:
    """Add the group to the app."""
    gpr = typer.Typer(
        help="File, change and end requests for GPU nodes.\n\n\b\nExample:\n"
        "  egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h",
        short_help="File, change and end requests.",
        no_args_is_help=True,
    )
    gpr.command("create", short_help="File a request.")(create)
    gpr.command("edit", short_help="Change fields of a request.")(edit)
    gpr.command("priority", short_help="Change the priority of a waiting request.")(priority)
    gpr.command("rename", short_help="Change the name people see.")(rename)
    gpr.command("extend", short_help="Ask for grace beyond the duration.")(extend)
    gpr.command("stop", short_help="Give the nodes back and keep the time.")(stop)
    gpr.command("start", short_help="Queue a stopped request again.")(start)
    gpr.command("release", short_help="End a request now.")(release)
    gpr.command("cancel", short_help="Take a waiting request back.")(cancel)
    gpr.command("restore", short_help="Write a request's file back as it counts.")(restore)
    app.add_typer(gpr, name="gpr")


def create(  # noqa: PLR0913 - each is an option of the command
    request: Request,
    nodes: options.Nodes = None,
    gpus_per_node: options.GpusPerNode = None,
    shape: options.Shapes = None,
    memory: options.Memory = None,
    instance_type: options.InstanceType = None,
    duration: options.Duration = None,
    priority: options.Priority = None,
    template: options.Template = None,
    display_name: options.DisplayName = None,
    cluster: options.Clusters = None,
    not_before: options.NotBefore = None,
    start: options.Start = None,
    prefer: options.Prefer = None,
    max_wait: options.MaxWait = None,
    rdma: options.Rdma = False,
    model: options.ModelName = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """File a request, and say when it is expected to start.

    \b
    Examples:
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --shape H100-80GB --duration 6h
      egs gpr create vision/train --template finetune-small --dry-run

    The server commits it in your name, or opens a pull request, as the project says. Exit 1 of a --dry-run that finds
    no start; the sentences on stderr say why.
    """
    slice_, _, name = named(request).partition("/")
    size = {"numberOfGPUNodes": nodes, "numberOfGPUs": gpus_per_node, "memoryPerGPU": memory}
    kind = {"gpuShape": shape or None, "instanceType": instance_type, "preferredClusters": cluster or None}
    term = {"exitDuration": duration, "priority": priority, "notBefore": not_before, "start": start}
    more = {"prefer": prefer, "maxWait": max_wait, "enableRDMA": rdma or None, "templateName": template}
    terms = {"sliceName": slice_, **size, **kind, **term, **more, "model": model}
    items, notes = quoted(terms)
    estimate = _estimate(items)
    done = None if dry_run else asking.send("POST", "gpr", {**terms, "name": name, "gprName": display_name})
    _answer_created(request, done, estimate, output)
    if done is None:
        _note_all(notes)
        raise typer.Exit(0 if estimate else 1)


def _estimate(items: Sequence[Row]) -> dict[str, Any] | None:
    """The start that it would get, or the earliest that an admin could give it; None: there is none yet."""
    starts = [row for row in map(quote_row, items) if row["estimatedStartTime"]]
    return next((row for row in starts if not row["needsApproval"]), starts[0] if starts else None)


def _note_all(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        output.note(sentence)


def _answer_created(key: str, done: Row | None, estimate: dict[str, Any] | None, form: Form) -> None:
    slice_, _, name = key.partition("/")
    change = {} if done is None else done["change"]
    if done is not None:
        report(f"Create {key}", change)
    if form is not Form.TABLE:
        path = f"slices/{slice_}/gprs/{name}.yaml"
        facts = {"slice": slice_, "name": name, "path": path, **where_it_is(change)}
        output.data({**facts, "dryRun": done is None, "estimate": estimate}, form)
        return
    if done is None:
        output.note("not filed; as things are:")
    if estimate is None:
        told = (
            "no start, as things are" if done is None else f"no start is known yet; `egs why {key}` says why"
        )
        output.text(f"{key}: {told}")
        return
    needs = [
        *(["it is merged"] if change.get("branch") else []),
        *(["an admin has approved it"] if estimate["needsApproval"] else []),
    ]
    condition = f", once {' and '.join(needs)}" if needs else ""
    when = output.shown(output.time(estimate["estimatedStartTime"]))
    wait = output.shown(output.seconds(estimate["estimatedWaitSeconds"]))
    output.text(f"{key}: starts at {when} ({wait}) in {estimate['cluster']}/{estimate['pool']}{condition}")


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
            output.note(f"{subject}: on the branch {branch}; somebody merges it into main")
        case _:
            output.note(f"{subject}: accepted; {url} says when it is done")


def edit(
    request: Request,
    fields: Annotated[
        list[str],
        typer.Argument(metavar="FIELD=VALUE...", help="Fields of spec; nothing behind = takes one out."),
    ],
) -> None:
    """Change fields of a request's file, and nothing else in it: comments and order stay.

    \b
    Examples:
      egs gpr edit vision/train nodes=4 duration=8h
      egs gpr edit vision/train network.rdma=true "clusters=[east, west]" notBefore=

    Asking for more, or for something else, gives up the place among equals.
    """
    edits = assignments(fields)
    _changed(request, edits, f"Edit {request}: {', '.join(word.partition('=')[0] for word in fields)}")


def assignments(words: Sequence[str]) -> dict[str, Any]:
    """`field=value …` as they go over HTTP. Raises Said."""
    edits: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise wrong_use(f"{word} is not FIELD=VALUE; write for example nodes=4 or network.rdma=true")
        if name not in FIELDS:
            raise not_allowed(
                f"{name} is not changed on a server; there are {', '.join(sorted(FIELDS))}. "
                "With --repo every field is",
                "NotFound",
            )
        edits[FIELDS[name]] = (text or None) if name in _TEXTS else _value(word, text)
    return edits


def _value(word: str, text: str) -> Any:
    import yaml

    try:
        # Texts, lists and mappings alone: nothing is taken for a time or for `on`, and nothing typed makes an object.
        return _plain(yaml.BaseLoader(text).get_single_data()) if text.strip() else None
    except yaml.YAMLError as error:
        raise wrong_use(f"{word}: the value cannot be read as YAML") from error


def _plain(value: Any) -> Any:
    """The text as a manifest has it: null, true, false and numbers are no text there."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return _WORDS.get(value, value)


def priority(
    request: Request,
    value: Annotated[
        int, typer.Argument(metavar="N", min=1, max=300, help="Low 1-100, medium -200, high -300.")
    ],
) -> None:
    """Change the priority of a waiting request.

    \b
    Example:
      egs gpr priority vision/train 180
    """
    _changed(request, {"priority": value}, f"Set priority of {request} to {value}")


def rename(
    request: Request,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Any words.")],
) -> None:
    """Change the name that people see (displayName); the request keeps its place and its file.

    \b
    Example:
      egs gpr rename vision/train "Third try, larger batches"
    """
    _changed(request, {"gprName": name or None}, f"Rename {request}")


def extend(
    request: Request,
    duration: Annotated[str, typer.Argument(metavar="D", help="Total grace beyond the duration.")],
) -> None:
    """Ask for grace beyond the duration, in total; granted within the project's bound if it delays nobody.

    \b
    Example:
      egs gpr extend vision/train 0d0h30m
    """
    _changed(request, {"extend": duration}, f"Extend {request} by {duration}")


def stop(request: Request) -> None:
    """Give a request's nodes back now and keep the time that is left; one that waits gives up its start.

    \b
    Example:
      egs gpr stop vision/train
    """
    _changed(request, {"stopped": True}, f"Stop {request}")


def start(request: Request) -> None:
    """Queue a stopped request again, as if it were filed now, for the time that is left of it.

    \b
    Example:
      egs gpr start vision/train
    """
    _changed(request, {"stopped": False}, f"Start {request} again")


def release(request: Request) -> None:
    """End a request now: its nodes leave it, and whoever waits moves up. Cancels one that waits.

    \b
    Example:
      egs gpr release vision/train
    """
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
    _changed(request, {"earlyRelease": True}, f"Release {request}")


def cancel(request: Request) -> None:
    """Take a waiting request out of the queue; one that holds nodes is refused.

    \b
    Example:
      egs gpr cancel vision/train

    A request that gets its nodes at this moment ends, too.
    """
    done = asking.send("DELETE", "gpr", {"gprId": named(request)})
    report(f"Cancel {request}", done["change"])


def restore(request: Request) -> None:
    """Write a request's file back as it counts: where main has none, or one that is broken or says other terms.

    \b
    Example:
      egs gpr restore vision/train
    """
    done = asking.send("POST", "gpr/restore", {"gprId": named(request)})
    report(f"Restore {request}", done["change"])


def _changed(request: str, fields: Mapping[str, Any], subject: str) -> None:
    done = asking.send_as_is("PUT", "gpr", {"gprId": named(request), **fields})
    report(subject, done["change"])
