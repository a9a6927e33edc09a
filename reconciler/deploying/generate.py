"""Writes the generated files of deploy/chart: its schema of values, permission rules, custom resources,
rules about GPUs, dashboards.

`python -m reconciler.deploying.generate`, with --check only compares. Templates read these files; so a new
rule in the code is in the chart as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.clusters.kubernetes.rbac import (
    ADMISSION_RULES,
    DOOR_RULES,
    DRAIN_RULES,
    EXPORT_RULES,
    QUEUE_RULES,
    RULES,
    Rule,
)
from reconciler.deploying import part_rights
from reconciler.deploying.install_values import Values
from reconciler.deploying.monitoring import gpu_rules
from reconciler.deploying.monitoring.dashboards import DASHBOARDS
from reconciler.deploying.monitoring.grafana import text_of
from schemas.export.crds import gpr_crd
from schemas.export.generated_files import GeneratedFiles
from schemas.reading.yaml_text import dump

FOLDER = Path(__file__).parents[2] / "deploy" / "chart"

ROWS: Mapping[str, tuple[Rule, ...]] = {
    "driver": RULES,
    "drains": DRAIN_RULES,
    "queues": QUEUE_RULES,
    "exports": EXPORT_RULES,
    "door": DOOR_RULES,
    "admission": ADMISSION_RULES,
}

HEADER = (
    "# Generated from reconciler/deploying/monitoring/gpu_rules.py. "
    "docs/reference/gpu-alerts.md says what each alert means.\n"
)


def texts() -> dict[str, str]:
    """The text of every generated file, by its path in the chart."""
    crd, schema = gpr_crd(), Values.model_json_schema(by_alias=True)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return {
        "values.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        "files/rights.yaml": dump({name: _split(rows) for name, rows in ROWS.items()}),
        f"files/crds/{crd['metadata']['name']}.yaml": dump(crd),
        "files/gpu_alerts.yaml": HEADER + dump(gpu_rules.rules()),
        **{f"files/dashboards/{board.uid}.json": text_of(board) for board in DASHBOARDS},
    }


def _split(rows: tuple[Rule, ...]) -> dict[str, Any]:
    """The rules for everywhere, and for the installation's own namespace."""
    return {
        "cluster": part_rights.written(row for row in rows if not row.system),
        "system": part_rights.written(row for row in rows if row.system),
    }


FILES = GeneratedFiles("reconciler.deploying.generate", FOLDER, texts)


if __name__ == "__main__":
    raise SystemExit(FILES.command(sys.argv[1:]))
