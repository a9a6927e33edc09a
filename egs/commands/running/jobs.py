"""`egs job …`: run Kubernetes objects on the nodes of a request, and look at them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.commands import kinds, listing, options, output
from egs.commands.backend import Backend
from egs.commands.declare import CHANGES, CHANGES_AT, READS_THEN, declare, group
from egs.commands.errors import wrong_use
from egs.commands.listing import GetForm, ListOptions
from egs.commands.lists import Slice
from egs.commands.options import DryRun, argument, option
from egs.commands.output import Row
from egs.commands.running.job_logs import Own, Tail, beside, tail_of
from egs.commands.watch import as_text

MANIFESTS = "The YAML file with the Kubernetes objects."
_OVER = {"Succeeded": 0, "Failed": 1, "Removed": 1}
"""Phases that end `--watch`, with its exit code."""
_EARLIER_LOOKS = 12
"""Looks at an end that was there at the first one until it counts: it is of an earlier workload of that name, whose
file was deleted so recently that the controller has not seen it."""
EVERY_S = 5

Workload = Annotated[str, argument(metavar="SLICE/NAME", help="The workload.")]


def register(app: typer.Typer) -> None:
    job = group(
        app,
        "job",
        "Run Kubernetes objects on the nodes of a request.",
        "Run Kubernetes objects on the nodes of a request, in whichever cluster these come from.\n\n\b\nExample:\n"
        "  egs job run train.yaml --nodes 2 --gpus-per-node 8 --duration 6h",
    )
    declare(job, "run", "File a request and what runs on it.", run, CHANGES_AT)
    declare(job, "list", "Workloads, with their objects.", list_, READS_THEN)
    declare(job, "delete", "Remove a workload and its objects.", delete, CHANGES)


def run(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MANIFESTS, exists=True, dir_okay=False)],
    slice_: Annotated[
        str | None, option("--slice", metavar="S", help="Its slice. Default: the only one.")
    ] = None,
    name: Annotated[str | None, option(metavar="NAME", help="Its name. Default: the file's.")] = None,
    gpr: Annotated[
        str | None, option(metavar="GPR", help="A request that exists. Default: a new one of the same name.")
    ] = None,
    namespace: Annotated[
        str | None, option(metavar="N", help="One of the slice's namespaces. Default: the first.")
    ] = None,
    nodes: options.Nodes = None,
    gpus_per_node: options.GpusPerNode = None,
    shape: options.Shapes = None,
    duration: options.Duration = None,
    priority: options.Priority = None,
    template: options.Template = None,
    cluster: options.Clusters = None,
    watch: Annotated[
        bool, typer.Option("--watch", "--follow", "-w", help="Follow it and its logs until it is over.")
    ] = False,
    kubeconfig: Annotated[
        str | None,
        option(metavar="FILE", help="Your own, for logs. Default: KUBECONFIG, else ~/.kube/config."),
    ] = None,
    context: Annotated[
        str | None, option(metavar="NAME", help="Context of that kubeconfig. Default: the namespace's own.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """File a request for nodes, and the objects that run on them, in one change.

    \b
    Examples:
      egs job run train.yaml --nodes 2 --gpus-per-node 8 --duration 6h --slice vision --watch
      egs job run evaluate.yaml --slice vision --gpr train

    The objects are applied when the request starts, and removed when its lease ends. --watch also shows what the pods
    write, and exits 1 if the workload fails, is removed before it has succeeded, or cannot start any more.
    """
    terms: dict[str, Any] = {
        "nodes": nodes,
        "gpusPerNode": gpus_per_node,
        "gpuShape": shape or None,
        "duration": duration,
        "priority": priority,
        "template": template,
        "clusters": cluster or None,
    }
    given = {name: value for name, value in terms.items() if value is not None}
    if (kubeconfig or context) and not watch:
        raise wrong_use("--kubeconfig and --context are for the logs of --watch; add it, or leave them out")
    if gpr is not None and given:
        raise wrong_use("--gpr names a request that exists; leave the options for a new one out")
    about = {"slice": slice_, "name": name or file.stem, "gpr": gpr, "namespace": namespace}
    done = backend.run_job(file.read_text(encoding="utf-8"), about, given, is_trial=dry_run)
    if dry_run:
        output.note("not filed; the files would be:")
        output.text(done["text"])
    elif watch:
        raise typer.Exit(_followed(backend, done, Own(kubeconfig, context)))


def _followed(backend: Backend, done: Row, way: Own) -> int:
    """Prints each change of its request, and its logs, until the workload is over; returns the exit code."""
    course = _Course(done["workload"])
    with contextlib.ExitStack() as logs:
        for line in backend.watch(done["slice"], done["gpr"], EVERY_S):
            if line is not None:
                output.text(as_text(line))
                if not course.is_told_by(line):
                    continue
            code = course.look(_jobs(backend, done["slice"]))
            if course.has_begun:
                logs.close()
                logs.enter_context(beside(_tail(backend, done["workload"], way)))
            if code is not None:
                return code
    return 0


class _Course:
    """One workload, look by look. Its state counts, not its events: a stream may begin with those of an earlier one."""

    def __init__(self, workload: str) -> None:
        self._workload = workload
        self._first: Row | None = None
        self._last: Row | None = None
        self._looks = 0
        self.has_begun = False
        """True if it runs since the last look."""

    def is_told_by(self, line: Row) -> bool:
        """True if the line says that something became of the workload."""
        return line["kind"] == "event" and str(line["message"]).startswith(f"workload {self._workload} is ")

    def look(self, rows: list[Row] | None) -> int | None:
        """The exit code if it is over; None: it goes on. Without rows nothing is known."""
        self.has_begun = False
        if rows is None:
            return None
        was = self._last
        job = next((row for row in rows if f"{row['slice']}/{row['name']}" == self._workload), None)
        self._last, self._looks = job, self._looks + 1
        if job is None:
            if was is not None:
                output.note(f"the file of workload {self._workload} is gone")
            return None if was is None else 1
        if self._looks == 1:
            self._first = job
        if job == self._first and job["phase"] in _OVER and self._looks <= _EARLIER_LOOKS:
            return None
        self.has_begun = job["phase"] == "Running" and (
            was is None or (was["phase"], was["since"]) != ("Running", job["since"])
        )
        if (job["phase"], job["reason"]) == ("Pending", "RequestOver"):
            output.note(f"workload {self._workload} cannot start: {job['message']}")
            return 1
        return _OVER.get(job["phase"])


def _jobs(backend: Backend, slice_: str) -> list[Row] | None:
    """The slice's workloads; None while they cannot be read: what is watched says why, and the next look may do."""
    try:
        return backend.rows("jobs", {"slice": slice_})
    except Exception as error:
        if not hasattr(error, "reason"):  # refusals and faults of both backends have one
            raise
        return None


def _tail(backend: Backend, workload: str, way: Own) -> Tail | None:
    """Of the cluster in which it runs now; None, with a sentence, where that cannot be read."""
    try:
        job = backend.whole("job", workload)
        driver = backend.whole("cluster", job["cluster"])["driver"] if job["cluster"] else ""
    except Exception as error:
        if not hasattr(error, "reason"):  # refusals and faults of both backends have one
            raise
        output.note(f"the logs of its pods are not shown: {error}")
        return None
    return tail_of(job, driver, way) if driver else None


def list_(
    backend: Backend,
    slice_: Slice = None,
    form: Annotated[GetForm, typer.Option("--output", "-o", help="Output format.")] = GetForm.TABLE,
) -> None:
    """List workloads, as `egs get jobs` does.

    \b
    Example:
      egs job list --slice vision
    """
    listing.answer(kinds.JOBS, lambda: backend.rows("jobs", {"slice": slice_}), ListOptions(form))


def delete(backend: Backend, workload: Workload) -> None:
    """Delete a workload's file: its objects are removed, except PersistentVolumeClaims. Its request stays.

    \b
    Example:
      egs job delete vision/train
    """
    backend.delete_job(workload)
