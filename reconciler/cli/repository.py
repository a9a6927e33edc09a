"""The backend of the commands for a repository. Each method imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from egs.commands.backend import Where
from egs.commands.output import Row


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, and how a change reaches its main branch."""

    where: Where

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        from reconciler.cli.lists import rows

        return list(rows(self.where.repo, self.where.now, kind, filters))

    def whole(self, kind: str, name: str) -> Row:
        from reconciler.cli.lists import described

        return described(self.where.repo, self.where.now, kind, name)
