"""Generate the tables of the docs from the code, so that no page says less than its model.

`python docs/generate.py` rewrites the text between `<!-- fields: Kind -->` (or settings, policy, rules, phases,
faults, commands, sentences) and `<!-- end -->` in docs/; `--check` lists stale pages and exits 1.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent import settings as agent_settings
from demo import command as demo_command
from egs import cli
from portal import settings as portal_settings
from reconciler import cli as repository_commands
from reconciler import settings as reconciler_settings
from reconciler.gpr_objects import door as reconciler_door
from reconciler.trust.policy import TABLE
from scheduler.lifecycle import diagram
from schemas.documents import (
    apikey,
    approval,
    binding,
    cluster,
    endpoint,
    gpr,
    notifications,
    project,
    slice,
    workload,
    workspace,
)
from schemas.documents.base import Model
from schemas.export.json_schemas import AsWritten
from schemas.rules.rule_list import RULES
from schemas.status import (
    cards,
    endpoint_status,
    gpr_status,
    inventory,
    judgements,
    node_status,
    outbox,
    remedies,
    usage,
    workload_status,
)
from schemas.status.gpu_faults import FAULT_KINDS, NODE_FAULT_KINDS

MODELS: dict[str, type[Model]] = {
    "Project": project.ProjectSpec,
    "Cluster": cluster.ClusterSpec,
    "Slice": slice.SliceSpec,
    "GPR": gpr.GPRSpec,
    "GPRTemplate": gpr.Wish,
    "Approval": approval.ApprovalSpec,
    "GPRStatus": gpr_status.GPRStatus,
    "NodeRecord": node_status.NodeRecord,
    "Inventory": inventory.Inventory,
    "PoolNodes": inventory.PoolNodes,
    "Schedule": inventory.Schedule,
    "Usage": usage.UsageRecord,
    "Controller": gpr_status.ControllerRecord,
    "Trust": judgements.TrustRecord,
    "SpentApprovals": judgements.SpentRecord,
    "Workload": workload.WorkloadSpec,
    "WorkloadStatus": workload_status.WorkloadStatus,
    "Endpoint": endpoint.EndpointSpec,
    "EndpointStatus": endpoint_status.EndpointStatus,
    "WorkspaceRequest": workspace.WorkspaceRequestSpec,
    "ApiKey": apikey.ApiKeySpec,
    "GPRTemplateBinding": binding.GPRTemplateBindingSpec,
    "Profile": notifications.ProfileSpec,
    "Route": notifications.Route,
    "Outbox": outbox.OutboxRecord,
    "Cards": cards.CardsRecord,
    "Remedies": remedies.RemediesRecord,
    "WorkspaceRecord": gpr_status.WorkspaceRecord,
    "AgentReport": node_status.AgentReport,
}
SETTINGS: dict[str, type[object]] = {
    "controller": reconciler_settings.Settings,
    "trust": reconciler_settings.Trust,
    "forge": reconciler_settings.ForgeAddress,
    "door": reconciler_door.DoorSettings,
    "agent": agent_settings.Settings,
    "portal": portal_settings.PortalSettings,
}
_MARKED = re.compile(
    r"(<!-- (fields: \w+|settings: \w+|policy|rules|phases|faults|commands|sentences) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
COMMANDS = Path(__file__).parent / "reference" / "commands"
PROCESSES = {
    "egs-reconciler": "The controller, and the processes beside it.",
    "egs-agent": "Read the GPUs of one node and report on them.",
}
"""Programs of their own; all other commands are read from `egs`."""
_BOUNDS = (
    ("minimum", "≥ {}"),
    ("exclusiveMinimum", "> {}"),
    ("maximum", "≤ {}"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("maxLength", "at most {} characters"),
    ("maxProperties", "at most {} entries"),
)


def field_table(model: type[Model]) -> str:
    """Every field of a document's spec, nested ones by their path: type, default, bounds, meaning."""
    schema = model.model_json_schema(by_alias=True, schema_generator=AsWritten)
    rows = ["| field | type | default | bounds | meaning |", "| --- | --- | --- | --- | --- |"]
    rows += [" | ".join(("| `" + path + "`", *cells)) + " |" for path, *cells in _rows(schema, schema, "")]
    return "\n".join(rows) + "\n"


def rule_table() -> str:
    """Every rule that a document can break."""
    rows = ["| rule | severity | meaning | what to do |", "| --- | --- | --- | --- |"]
    rows += [f"| `{rule.id}` | {rule.severity} | {rule.meaning} | {rule.fix} |" for rule in RULES]
    return "\n".join(rows) + "\n"


def policy_table() -> str:
    """Who may change what: the rows that the policy is held to."""
    rows = ["| kind | file | what | who |", "| --- | --- | --- | --- |"]
    for row in TABLE:
        path = f"`{row.path}`" if "/" in row.path or row.path.endswith(".yaml") else row.path
        rows.append(f"| {row.kind} | {path} | {row.what} | {row.who} |")
    return "\n".join(rows) + "\n"


def fault_table() -> str:
    """Every kind of GPU fault: the rules of the agent's judge."""
    rows = [
        "| fault | evidence | for | over when | action | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind in (*FAULT_KINDS, *NODE_FAULT_KINDS):
        seconds = int(kind.patience.total_seconds())
        patience = "-" if not seconds else f"{seconds} s"
        cells = (f"`{kind.name}`", kind.evidence, patience, kind.clears, kind.action, kind.source)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def phases() -> str:
    """The table of phases as a diagram."""
    return f"```mermaid\n{diagram()}```\n"


def settings_table(settings: type[object]) -> str:
    """Every setting with its default and the sentence that follows it in the code."""
    tree = ast.parse(inspect.getsource(settings)).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            default = "required" if field.value is None else f"`{ast.unparse(field.value)}`"
            meaning = _one_line(ast.literal_eval(text.value))
            rows.append(f"| `{ast.unparse(field.target)}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def command_table() -> str:
    """All commands on one screen: a row for each page."""
    rows = ["| for | commands |", "| --- | --- |"]
    for page, title, commands in _command_pages():
        names = [f"[`{name.removeprefix('egs ')}`]({page}#{name.replace(' ', '-')})" for name in commands]
        rows.append(f"| [{title}]({page}) | {', '.join(names)} |")
    return "\n".join(rows) + "\n"


def command_sentences() -> str:
    """Every command with the first sentence of its help."""
    app = cli.commands([repository_commands.register, demo_command.register], None)
    rows = ["| command | what it does |", "| --- | --- |"]
    for page, _, commands in _command_pages():
        for name in commands:
            found: Any = app
            for word in name.split()[1:]:
                found = found.commands[word]
            says = PROCESSES.get(name) or _one_line(found.help.split("\n\n")[0])
            rows.append(f"| [`{name}`]({page}#{name.replace(' ', '-')}) | {says} |")
    return "\n".join(rows) + "\n"


def _command_pages() -> Iterator[tuple[str, str, list[str]]]:
    """Each page of commands: its name, what it is for, its commands in their order."""
    for page in sorted(COMMANDS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        commands = re.findall(r"^## (egs.*)$", text, re.MULTILINE)
        if commands:
            yield (
                page.name,
                text.partition("\n")[0]
                .removeprefix("# Commands ")
                .removeprefix("that ")
                .removeprefix("for "),
                commands,
            )


def _rows(schema: dict[str, Any], root: dict[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if not prefix and name in {"apiVersion", "kind", "metadata"}:
            continue
        options = [_resolved(option, root) for option in _options(field, root)]
        meaning = field.get("description") or next(
            (o["description"] for o in options if "description" in o), ""
        )
        default = "required" if name in required else _shown(field.get("default"))
        yield f"{prefix}{name}", _type(options), default, _bounds(options), _one_line(meaning)
        for option in options:
            inner = _resolved(option.get("items", {}), root) if option.get("type") == "array" else option
            mark = "[]" if option.get("type") == "array" else ""
            if "properties" in inner:
                yield from _rows(inner, root, f"{prefix}{name}{mark}.")


def _options(field: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    found = field.get("anyOf", [field])
    return [option for option in found if _resolved(option, root).get("type") != "null"]


def _resolved(part: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found: dict[str, Any] = root["$defs"][part["$ref"].rpartition("/")[2]]
    return found | {key: value for key, value in part.items() if key != "$ref"}


def _type(options: list[dict[str, Any]]) -> str:
    return " or ".join(dict.fromkeys(_type_name(option) for option in options))


def _type_name(option: dict[str, Any]) -> str:
    if "enum" in option:
        return ", ".join(f"`{value}`" for value in option["enum"])
    if "const" in option:
        return f"`{option['const']}`"
    examples = option.get("examples", [])
    if examples and str(examples[0]).startswith("0d"):
        return "duration"
    if examples and "T" in str(examples[0]) and str(examples[0]).endswith("Z"):
        return "time"
    kind = str(option.get("type", "any"))
    return {"array": "list", "object": "map", "integer": "number"}.get(kind, kind)


def _bounds(options: list[dict[str, Any]]) -> str:
    found = [text.format(option[key]) for option in options for key, text in _BOUNDS if key in option]
    return ", ".join(dict.fromkeys(found))


def _shown(default: object) -> str:
    if default is None or default in ("", [], {}):
        return "-"
    return (
        f"`{str(default).lower() if isinstance(default, bool) else default}`"
        if not isinstance(default, dict)
        else "-"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


TABLES: dict[str, Callable[[str], str]] = {
    "fields": lambda kind: field_table(MODELS[kind]),
    "settings": lambda name: settings_table(SETTINGS[name]),
    "policy": lambda _: policy_table(),
    "rules": lambda _: rule_table(),
    "phases": lambda _: phases(),
    "faults": lambda _: fault_table(),
    "commands": lambda _: command_table(),
    "sentences": lambda _: command_sentences(),
}


def refreshed(text: str) -> str:
    """The page with its marked tables regenerated."""

    def table(found: re.Match[str]) -> str:
        what, _, which = found[2].partition(": ")
        return found[1] + TABLES[what](which) + found[3]

    return _MARKED.sub(table, text)


def main() -> None:
    """Rewrite docs/; with --check only list stale pages."""
    stale = []
    for page in sorted(Path(__file__).parent.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if refreshed(text) != text:
            stale.append(page.stem)
            if "--check" not in sys.argv:
                page.write_text(refreshed(text), encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(stale)}; run `make schemas`")


if __name__ == "__main__":
    main()
