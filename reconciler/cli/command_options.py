"""Forms in which commands of a repository alone answer."""

from __future__ import annotations

from enum import StrEnum


class ValidationForm(StrEnum):
    TABLE = "table"
    JSON = "json"
    GITHUB = "github"


class CheckForm(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    MARKDOWN = "markdown"
