"""Write the JSON Schema of every kind to schemas/json: `python -m schemas.generate`, with --check only compare.

The models are the truth; the files exist for editors (`# yaml-language-server: $schema=…`) and other tools.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schemas.base import Document
from schemas.jsonschemas import schema_of
from schemas.reading import PATHS
from schemas.status import (
    AgentReport,
    ControllerRecord,
    GPRRecord,
    Inventory,
    NodeRecord,
    PoolNodes,
    Schedule,
    UsageRecord,
)

FOLDER = Path(__file__).parent / "json"
USER_KINDS: tuple[type[Document], ...] = tuple(rule.model for rule in PATHS)
MACHINE_KINDS: tuple[type[Document], ...] = (
    GPRRecord,
    AgentReport,
    NodeRecord,
    Inventory,
    PoolNodes,
    Schedule,
    UsageRecord,
    ControllerRecord,
)


def schema_texts() -> dict[str, str]:
    """The text of every schema file, by file name."""
    return {
        f"{model.__name__.lower()}.schema.json": json.dumps(schema_of(model), indent=2, ensure_ascii=False)
        + "\n"
        for model in (*USER_KINDS, *MACHINE_KINDS)
    }


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of files that differ from what the models give, are missing, or belong to no kind."""
    texts = schema_texts()
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in texts.keys() | there.keys() if texts.get(name) != there.get(name))


def write(folder: Path = FOLDER) -> None:
    """Make the folder hold exactly the schemas of the models."""
    folder.mkdir(exist_ok=True)
    for name in stale(folder):
        (folder / name).unlink(missing_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Exit 0 done or fresh, 1 stale, 2 wrong use."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m schemas.generate [--check]\n")
        return 2
    if not arguments:
        write()
    names = stale()
    for name in names:
        sys.stderr.write(f"schemas/json/{name} is stale; run: make schemas\n")
    return 1 if names else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
