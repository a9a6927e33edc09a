"""Options and arguments that several commands share, so that each means the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Pools = Annotated[
    list[str] | None,
    typer.Option(
        "--pool", metavar="NAME=NODES", help="A pool of the CSV; may be repeated.", show_default=False
    ),
]


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
