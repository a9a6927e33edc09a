"""`egs endpoint …`: served models, and how their traffic is shared."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs.commands import kinds, listing, output
from egs.commands.backend import Backend
from egs.commands.declare import CHANGES_AT, READS_THEN, declare, group
from egs.commands.listing import GetForm, ListOptions
from egs.commands.lists import Slice
from egs.commands.options import DryRun, argument, option
from egs.commands.output import Form

Endpoint = Annotated[str, argument(metavar="SLICE/NAME", help="The endpoint.")]


def register(app: typer.Typer) -> None:
    endpoint = group(
        app,
        "endpoint",
        "Served models, and how their traffic is shared.",
        "Served models, and how their traffic is shared.\n\n\b\nExample:\n  egs endpoint promote vision/captions v2",
    )
    declare(endpoint, "list", "Endpoints, with their versions.", list_, READS_THEN)
    declare(endpoint, "describe", "An endpoint: versions, weights, objects.", describe, READS_THEN)
    declare(endpoint, "create", "Serve a model on the nodes of a request.", create, CHANGES_AT)
    declare(endpoint, "promote", "Give a version more of the traffic.", promote, CHANGES_AT)
    declare(endpoint, "rollback", "Bring back the weights from before.", rollback, CHANGES_AT)


def list_(
    backend: Backend,
    slice_: Slice = None,
    form: Annotated[GetForm, typer.Option("--output", "-o", help="Output format.")] = GetForm.TABLE,
) -> None:
    """List endpoints, as `egs get endpoints` does.

    \b
    Example:
      egs endpoint list --slice vision
    """
    listing.answer(kinds.ENDPOINTS, lambda: backend.rows("endpoints", {"slice": slice_}), ListOptions(form))


def describe(
    backend: Backend,
    endpoint: Endpoint,
    form: Annotated[Form, typer.Option("--output", "-o", help="Output format.")] = Form.TABLE,
) -> None:
    """Show an endpoint, as `egs describe endpoint` does.

    \b
    Example:
      egs endpoint describe vision/captions
    """
    output.page(backend.whole("endpoint", endpoint), form)


def create(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    endpoint: Endpoint,
    gpr: Annotated[str, option(metavar="GPR", help="The request of its slice on whose nodes it runs.")],
    model: Annotated[str, option(metavar="MODEL", help="Name on the model hub, or a path in the container.")],
    image: Annotated[str, option(metavar="IMAGE", help="Container image of the server.")],
    version: Annotated[str, option(metavar="NAME", help="Name of this version.")] = "v1",
    arg: Annotated[
        list[str] | None, option("--arg", metavar="A", help="One more argument of the server; may repeat.")
    ] = None,
    gpus_per_replica: Annotated[
        int, option("--gpus-per-replica", metavar="G", help="GPUs of one replica.", min=1)
    ] = 1,
    replicas: Annotated[int, option(metavar="N", help="How many replicas run.", min=1)] = 1,
    secret: Annotated[
        str | None, option(metavar="NAME", help="Secret whose keys are environment variables: HF_TOKEN.")
    ] = None,
    cache: Annotated[
        str | None, option(metavar="PVC", help="PersistentVolumeClaim for downloaded weights.")
    ] = None,
    hostname: Annotated[
        list[str] | None,
        option("--hostname", metavar="H", help="A name that its route answers to; may repeat."),
    ] = None,
    namespace: Annotated[
        str | None, option(metavar="N", help="One of the slice's namespaces. Default: the first.")
    ] = None,
    server: Annotated[
        str | None, option("--backend", metavar="B", help="vllm (the default) or kserve.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """File an endpoint with one version that gets all the traffic. What else an endpoint may have, its file says.

    \b
    Examples:
      egs endpoint create vision/captions --gpr serves --model Qwen/Qwen2.5-7B-Instruct --image vllm/vllm-openai:v0.11.0
      egs endpoint create vision/chat --gpr serves --model acme/big --image acme/vllm:1 --gpus-per-replica 8 --dry-run

    Without --hostname no requests reach it from outside. --dry-run shows the file and writes nothing.
    """
    served = {
        "name": version,
        "image": image,
        "model": model,
        "args": arg or None,
        "gpusPerReplica": gpus_per_replica if gpus_per_replica > 1 else None,
        "replicas": {"min": replicas, "max": replicas} if replicas > 1 else None,
        "secret": secret,
        "cache": cache,
    }
    spec = {
        "namespace": namespace,
        "backend": server,
        "versions": [_given(served)],
        "weights": {version: 100},
        "route": {"hostnames": hostname} if hostname else None,
    }
    text = backend.create_endpoint(endpoint, gpr, _given(spec), is_trial=dry_run)
    if dry_run:
        output.note("not filed; the file would be:")
        output.text(text)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def promote(
    backend: Backend,
    endpoint: Endpoint,
    version: Annotated[str, argument(metavar="VERSION", help="The version.")],
    weight: Annotated[
        int,
        option(metavar="PERCENT", help="Its share; the others keep theirs in proportion.", min=1, max=100),
    ] = 100,
) -> None:
    """Give a version that share of the traffic, in the endpoint's file.

    \b
    Examples:
      egs endpoint promote vision/captions v2 --weight 10
      egs endpoint promote vision/captions v2
    """
    backend.promote_endpoint(endpoint, version, weight)


def rollback(backend: Backend, endpoint: Endpoint) -> None:
    """Write the weights that stood before the present ones into the endpoint's file.

    \b
    Example:
      egs endpoint rollback vision/captions
    """
    backend.roll_back_endpoint(endpoint)
