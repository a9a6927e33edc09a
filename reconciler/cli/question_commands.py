"""Commands that ask and change nothing: validate, plan, wait, why, diff. Only their words; the work is imported late.

`egs --help` has to be there at once, so nothing heavy is imported before a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.command_options import (
    CheckForm,
    Fairness,
    Now,
    Output,
    PlanForm,
    Pools,
    Repo,
    Request,
    ValidationForm,
)
from reconciler.cli.node_options import Prefer
from reconciler.cli.output import Form

Shapes = Annotated[
    list[str] | None,
    typer.Option(metavar="X", help="GPU shape; may be repeated, in order of preference.", show_default="any"),
]
Kubeconfigs = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="EGS_KUBECONFIGS",
        help="Folder with the kubeconfigs that Cluster manifests name.",
        show_default=False,
        exists=True,
        file_okay=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("validate", short_help="Find every problem of a repository.")(validate)
    app.command("plan", short_help="Show the schedule.")(plan)
    app.command("check-pr", short_help="Say what a pull request would do.")(check_pr)
    app.command("wait", short_help="Quote a start before filing.")(wait)
    app.command("why", short_help="Say what a request waits for.")(why)
    app.command("diff", short_help="Show what would change in clusters.")(diff)


def validate(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]", help="Folder, bare repository or URL; default as --repo.", show_default=False
        ),
    ] = None,
    repo: Repo = None,
    ref: Annotated[
        str | None, typer.Option(metavar="REF", help="Check this branch or commit.", show_default=False)
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="Also refuse edits of requests that hold nodes.", show_default=False
        ),
    ] = None,
    output: Annotated[
        ValidationForm, typer.Option("--output", "-o", help="github: annotations for a workflow.")
    ] = ValidationForm.TABLE,
) -> None:
    """Find every problem of a repository in one run: where it is, what is wrong, what to do.

    \b
    Examples:
      egs validate
      egs validate path/to/repo -o json
      egs validate --against origin/main -o github

    Exit 1 when anything is an error. Needing approval is a notice.
    """
    from reconciler.cli.answers.validation import show_validation

    raise typer.Exit(show_validation(repo, path, (ref, against), output))


def plan(  # noqa: PLR0913 - each is an option of the command
    repo: Repo = None,
    ref: Annotated[
        str | None, typer.Option(metavar="REF", help="Plan this branch or commit.", show_default=False)
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="Show what the change from there does to everyone.", show_default=False
        ),
    ] = None,
    now: Now = None,
    output: Annotated[
        PlanForm | None,
        typer.Option("--output", "-o", help="Default: table; csv with --instance.", show_default=False),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Plan the rows of a CSV instead of a repository.", show_default=False
        ),
    ] = None,
    pool: Pools = None,
    fairness: Annotated[
        Fairness, typer.Option(help="With --instance: whether what slices used counts in the rank.")
    ] = Fairness.ON,
) -> None:
    """Show the schedule: who holds which nodes, who starts when, who is refused and why.

    \b
    Examples:
      egs plan
      egs plan --repo ~/gpus.git --ref more-nodes --against main
      egs plan --instance rows.csv --pool a=100 --pool b=20 --now 0 -o csv

    With --instance, exit 1 when a row cannot be placed, 2 when a row is bad; --now is whole seconds.
    """
    from reconciler.queries.plans import show_instance, show_plan
    from reconciler.sources.command_errors import WrongUse
    from schemas.documents.scheduling import Fairness as Counted

    if instance is not None:
        if output is PlanForm.YAML or ref is not None or against is not None:
            raise WrongUse("--instance goes with --pool, --now, --fairness and -o csv|json|table only")
        counted = None if fairness is Fairness.OFF else Counted()
        raise typer.Exit(show_instance(instance, pool or [], now, output or PlanForm.CSV, counted))
    if pool or output is PlanForm.CSV or fairness is Fairness.OFF:
        raise WrongUse("--pool, --fairness and -o csv belong to --instance FILE")
    show_plan(repo, now, (ref, against), Form(output or PlanForm.TABLE))


def check_pr(
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Main. Default: as CI says, else origin/main.", show_default=False),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The branch. Default: as CI says, else HEAD.", show_default=False),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option(
            metavar="'NAME <MAIL>'",
            help="Judge it as this person's change. Default: the account that CI names.",
            show_default=False,
        ),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    output: Annotated[
        CheckForm, typer.Option("--output", "-o", help="github: annotations; markdown: the comment.")
    ] = CheckForm.TEXT,
) -> None:
    """Say what a pull request would do: is it valid, who approves, who starts when, who waits longer.

    \b
    Examples:
      egs check-pr
      egs check-pr --base origin/main --head more-nodes --author 'Bo <bo@example.com>'
      egs check-pr -o markdown

    Reads a clone as it stands; `git fetch origin` first. Exit 1 when it cannot be merged as it is.
    """
    from reconciler.cli.answers.check_pr import Refs, show_check

    raise typer.Exit(show_check(repo, now, Refs(base, head), author, output))


def wait(  # noqa: PLR0913 - each is an option of the command
    slice_: Annotated[str, typer.Option("--slice", metavar="S", help="The slice that asks.")],
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="Whole GPU nodes.")],
    duration: Annotated[str, typer.Option(metavar="D", help="How long: 6h, 90m, 0d6h0m.")],
    gpus_per_node: Annotated[
        int, typer.Option("--gpus-per-node", min=1, metavar="G", help="GPUs each node has at least.")
    ] = 1,
    shape: Shapes = None,
    memory: Annotated[
        int | None, typer.Option(min=1, metavar="GB", help="Memory each GPU has at least.")
    ] = None,
    cluster: Annotated[
        list[str] | None, typer.Option(metavar="C", help="Cluster; may be repeated. Default: the slice's.")
    ] = None,
    priority: Annotated[int, typer.Option(min=1, max=300, metavar="P", help="1 to 300.")] = 101,
    rdma: Annotated[bool, typer.Option("--rdma", help="Only nodes with RDMA.")] = False,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Earliest wanted start (RFC 3339).")
    ] = None,
    prefer: Prefer = None,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Quote when a request would start, in each pool it could use, without filing it.

    \b
    Example:
      egs wait --slice vision --nodes 2 --gpus-per-node 8 --duration 6h
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h --shape H100-80GB

    With --prefer, stderr also names the pool that it would get. Exit 1 when there is no start anywhere; the sentence on
    stderr says what would fit.
    """
    from reconciler.queries.quotes import QuoteRequest, show_quotes

    question = QuoteRequest(
        slice=slice_,
        nodes=nodes,
        duration=duration,
        gpus_per_node=gpus_per_node,
        shapes=tuple(shape or ()),
        memory=memory,
        clusters=tuple(cluster or ()),
        priority=priority,
        rdma=rdma,
        not_before=not_before,
        prefer=prefer,
    )
    raise typer.Exit(show_quotes(repo, now, question, output))


def why(request: Request, repo: Repo = None, now: Now = None, output: Output = Form.TABLE) -> None:
    """Say in sentences what a request waits for, and why its start moved.

    \b
    Example:
      egs why vision/llama-finetune
    """
    from reconciler.queries.why import show_reasons

    show_reasons(repo, now, request, output)


def diff(  # noqa: PLR0913 - each is an option of the command
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="C", help="Only this cluster; may be repeated.", show_default=False),
    ] = None,
    kubeconfigs: Kubeconfigs = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own kubeconfig of the one cluster.", show_default=False),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context of that kubeconfig.", show_default=False)
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A controller's folder, for simulated clusters.", show_default=False
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="P", help="The controller's --project. Default: default.", show_default=False),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="The controller's --namespace. Default: egs-system.", show_default=False
        ),
    ] = None,
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Show what a controller would change in the clusters right now, and why. Nothing is written anywhere.

    \b
    Examples:
      egs diff --kubeconfigs ~/.kube/fleet
      egs diff --cluster east --kubeconfig ~/.kube/east -o json

    Exit 0: nothing differs; 1: something does; 3: a cluster could not be looked at.
    """
    from reconciler.cli.answers.cluster_diff import show_differences
    from reconciler.cli.answers.reachable_clusters import Ways, home_of

    ways = Ways(kubeconfigs, kubeconfig, context, state, home_of(project, namespace))
    raise typer.Exit(show_differences(repo, now, cluster or (), ways, output))
