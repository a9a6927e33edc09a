"""Write the JSON Schema of every kind to schemas/json: `python -m schemas.export.generate`; --check only compares.

The models are the source; the files are for editors (`# yaml-language-server: $schema=…`) and other tools.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schemas.documents.base import Document
from schemas.export.generated_files import GeneratedFiles
from schemas.export.json_schemas import schema_of
from schemas.reading.reader import PATHS
from schemas.status.cards import CardsRecord
from schemas.status.gpr_status import ControllerRecord, GPRRecord, WorkspaceRecord
from schemas.status.gpu_alerts import AlertsRecord
from schemas.status.insights import EndedRecord, Insights
from schemas.status.inventory import Inventory, PoolNodes, Schedule
from schemas.status.judgements import SpentRecord, TrustRecord
from schemas.status.node_status import AgentReport, NodeRecord
from schemas.status.promises import PromisesRecord
from schemas.status.remedies import RemediesRecord
from schemas.status.usage import UsageRecord

FOLDER = Path(__file__).parents[1] / "json"
USER_KINDS: tuple[type[Document], ...] = tuple(rule.model for rule in PATHS)
MACHINE_KINDS: tuple[type[Document], ...] = (
    CardsRecord,
    AlertsRecord,
    RemediesRecord,
    GPRRecord,
    AgentReport,
    NodeRecord,
    Inventory,
    PoolNodes,
    Schedule,
    UsageRecord,
    Insights,
    EndedRecord,
    PromisesRecord,
    TrustRecord,
    SpentRecord,
    WorkspaceRecord,
    ControllerRecord,
)


def schema_texts() -> dict[str, str]:
    """The text of every schema file, by file name."""
    return {
        f"{model.__name__.lower()}.schema.json": json.dumps(schema_of(model), indent=2, ensure_ascii=False)
        + "\n"
        for model in (*USER_KINDS, *MACHINE_KINDS)
    }


FILES = GeneratedFiles("schemas.export.generate", FOLDER, schema_texts, ours="*.json")


if __name__ == "__main__":
    raise SystemExit(FILES.command(sys.argv[1:]))
