"""Forms in which commands of a repository alone answer."""

from __future__ import annotations

from enum import StrEnum


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
