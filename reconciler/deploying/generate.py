"""Write what deploy/chart has of the models: its schema of values, the rows of rights, the custom resources.

`python -m reconciler.deploying.generate`, with --check only compare. Templates read these files; so a row that the
code comes to need is in the chart as soon as it is in the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.clusters.kubernetes.rbac import ADMISSION_RULES, DOOR_RULES, RULES, Rule
from reconciler.deploying import rights
from reconciler.deploying.values import Values
from schemas.crds import gpr_crd
from schemas.yamltext import dump

FOLDER = Path(__file__).parents[2] / "deploy" / "chart"

ROWS: Mapping[str, tuple[Rule, ...]] = {
    "driver": RULES,
    "door": DOOR_RULES,
    "admission": ADMISSION_RULES,
}


def texts() -> dict[str, str]:
    """The text of every file that is made, by its path in the chart."""
    crd = gpr_crd()
    return {
        "values.schema.json": json.dumps(_schema(), indent=2, ensure_ascii=False) + "\n",
        "files/rights.yaml": dump({name: _split(rows) for name, rows in ROWS.items()}),
        f"files/crds/{crd['metadata']['name']}.yaml": dump(crd),
    }


def _schema() -> dict[str, Any]:
    schema = Values.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _split(rows: tuple[Rule, ...]) -> dict[str, Any]:
    """Everywhere, and in the installation's own namespace."""
    return {
        "cluster": rights.written(row for row in rows if not row.system),
        "system": rights.written(row for row in rows if row.system),
    }


def stale(folder: Path = FOLDER) -> list[str]:
    """Paths of files that differ from what the models give, or are missing."""
    return sorted(name for name, text in texts().items() if _read(folder / name) != text)


def write(folder: Path = FOLDER) -> None:
    """Make the chart hold them."""
    for name in stale(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(texts()[name], "utf-8")


def _read(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    """Exit 0 done or fresh, 1 stale, 2 wrong use."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m reconciler.deploying.generate [--check]\n")
        return 2
    if not arguments:
        write()
    for name in stale():
        sys.stderr.write(f"deploy/chart/{name} is stale; run: make schemas\n")
    return 1 if stale() else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
