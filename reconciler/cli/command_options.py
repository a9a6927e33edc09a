"""Options and arguments that several commands share, so that each means the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from reconciler.sources.output import Form

Repo = Annotated[
    str | None,
    typer.Option(
        "--repo",
        metavar="PATH|URL",
        help="Folder, bare repository or URL. Default: EGS_REPO, else the folder you stand in.",
        show_default=False,
    ),
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now", metavar="TIME", help="Decide as if it were this time (RFC 3339).", show_default=False
    ),
]
Output = Annotated[Form, typer.Option("--output", "-o", help="How to answer.")]
Author = Annotated[
    str | None,
    typer.Option(
        "--author",
        metavar="'NAME <MAIL>'",
        help="Who changes it. Default: as git is configured.",
        show_default=False,
    ),
]
Request = Annotated[str, typer.Argument(metavar="SLICE/GPR", help="The request.", show_default=False)]
Fields = Annotated[
    list[str],
    typer.Argument(metavar="FIELD=VALUE...", help="Fields of spec; nothing behind = takes one out."),
]
AsPull = Annotated[
    bool | None,
    typer.Option(
        "--pull-request/--push",
        help="Open a pull request, or push to main. Default: as the project says.",
        show_default=False,
    ),
]
AsksFirst = Annotated[
    bool | None,
    typer.Option(
        "--pull-request/--push",
        help="Open a pull request (the default here), or push to main.",
        show_default=False,
    ),
]
StraightOn = Annotated[
    bool | None,
    typer.Option(
        "--pull-request/--push",
        help="Open a pull request, or push to main (the default here).",
        show_default=False,
    ),
]
Pools = Annotated[
    list[str] | None,
    typer.Option(
        "--pool", metavar="NAME=NODES", help="A pool of the CSV; may be repeated.", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and write nothing.")]


class ValidationForm(StrEnum):
    """What `-o` of validate takes."""

    TABLE = "table"
    JSON = "json"
    GITHUB = "github"


class CheckForm(StrEnum):
    """What `-o` of check-pr takes."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    MARKDOWN = "markdown"


class PlanForm(StrEnum):
    """What `-o` of plan takes; csv belongs to --instance."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class Fairness(StrEnum):
    """Whether what slices used counts in the rank."""

    ON = "on"
    OFF = "off"
