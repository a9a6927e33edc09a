"""`egs endpoint …`: served models, and how their traffic is shared."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands import kinds, listing, output
from egs.commands.backend import Backend
from egs.commands.declare import CHANGES_AT, READS_THEN, declare, group
from egs.commands.listing import GetForm, ListOptions
from egs.commands.lists import Slice
from egs.commands.options import argument, option
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
