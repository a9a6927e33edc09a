"""Episodes in the life of a node's GPUs, as YAML: what each GPU reads from when on, and who must be taken out.

An episode has steps, each in force until the next one. A step gives values of `GpuReading` for `all` GPUs or for some
(`3: {…}`, `0-3: {…}`); a value `{per minute: 50}` grows from the step on. Values stay until another step changes them;
`xids` are errors at that instant. A step may also say about the node: `calm` (announced maintenance), `away` (the
driver is not there), `reboot` (the agent starts anew from its report), `restart` (the same without a reboot), and
`gone: [3]`.

The expectation names every GPU that must be taken out: `within` so many seconds of the step with `fault: true`, with a
reason, and the action at the end. A GPU that is not named must never be taken out. `watch` names reasons that are only
shown. The agent reads every ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agent.judge import Memory, Verdict, after_reboot, judge, judge_away, remembered
from agent.port import GpuReading, XidEvent
from agent.report import Identity, report_of
from schemas.documents.cluster import Health

BEGIN = datetime(2026, 11, 21, 8, tzinfo=UTC)
WHO = Identity("east", "h100-1", "h100-1", "w")
NODE_WORDS = ("calm", "away", "reboot", "restart", "gone", "fault", "at")

H100 = GpuReading(
    "GPU",
    0,
    "NVIDIA H100 80GB HBM3",
    81559,
    temp_c=58,
    slowdown_temp_c=89,
    shutdown_temp_c=92,
    memory_temp_c=66,
    max_memory_temp_c=95,
    power_w=610.0,
    power_limit_w=700.0,
    max_power_w=700.0,
    throttle=0,
    sm_clock_mhz=1980,
    max_sm_clock_mhz=1980,
    memory_clock_mhz=2619,
    utilisation_percent=97,
    ecc_corrected=0,
    ecc_uncorrectable=0,
    sram_threshold_exceeded=False,
    remapped_correctable=0,
    remapped_uncorrectable=0,
    remap_failure=False,
    remap_pending=False,
    pcie_generation=5,
    max_pcie_generation=5,
    pcie_width=16,
    max_pcie_width=16,
    pcie_replays=0,
    nvlinks=(True,) * 18,
    nvlink_crc_errors=0,
    fabric_state=3,
    fabric_status=0,
    mig_enabled=False,
    recovery_action=0,
)
"""A busy GPU that is well."""


@dataclass(frozen=True)
class Episode:
    """One episode as written."""

    name: str
    kind: str
    steps: Sequence[Mapping[str, Any]]
    expect: Mapping[int | str, Mapping[str, Any]] = field(default_factory=dict)
    watch: Mapping[int, Sequence[str]] = field(default_factory=dict)
    gpus: int = 8
    seconds: int = 1200
    health: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What the judge said: when each GPU was first taken out, and its last action."""

    out_at: dict[int, float] = field(default_factory=dict)
    reasons: dict[int, set[str]] = field(default_factory=dict)
    watched: dict[int, set[str]] = field(default_factory=dict)
    actions: dict[int, str | None] = field(default_factory=dict)
    node: set[str] = field(default_factory=set)


def episodes(folder: Path) -> Iterator[Episode]:
    """All episodes of a folder, by file."""
    for path in sorted(folder.glob("*.yaml")):
        for data in yaml.safe_load(path.read_text()):
            words = {key: value for key, value in data.items() if key not in ("episode", "kind")}
            yield Episode(data["episode"], data["kind"], **words)


def play(episode: Episode, every_s: int = 10) -> Outcome:
    """Judge every reading of the episode."""
    health = Health.model_validate(episode.health)
    memory, found = Memory(expected=episode.gpus), Outcome()
    was_away = False
    attached_at = BEGIN
    for second in range(0, episode.seconds, every_s):
        now = BEGIN + timedelta(seconds=second)
        past = [s for s in episode.steps if s["at"] <= second]
        new = [s for s in past if s["at"] > second - every_s]
        node: dict[str, Any] = {}
        for step in past:
            node |= {word: step[word] for word in ("calm", "away", "gone") if word in step}
        for step in new:
            if "reboot" in step or "restart" in step:
                report = report_of(judge_away(memory, health, now, calm=True)[1], WHO, now)
                memory = replace(remembered(report), expected=episode.gpus)
                memory = after_reboot(memory, now) if "reboot" in step else memory
                attached_at = now
        calm = bool(node.get("calm"))
        if node.get("away"):
            was_away = True
            memory, verdict = judge_away(memory, health, now, calm=calm)
        else:
            attached_at = now if was_away else attached_at
            was_away = False
            gone = node.get("gone", [])
            readings = tuple(
                _reading(i, past, new, second, now, attached_at) for i in range(episode.gpus) if i not in gone
            )
            memory, verdict = judge(memory, readings, health, now, calm=calm)
        _note(found, verdict, second)
    return found


def _reading(
    index: int,
    past: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    second: int,
    now: datetime,
    attached_at: datetime,
) -> GpuReading:
    values: dict[str, Any] = {}
    for step in past:
        for name, value in _about(step, index).items():
            if isinstance(value, dict):
                grown = int(value["per minute"] * (second - step["at"]) / 60)
                value = (values.get(name) or value.get("from", 0)) + grown
            values[name] = value
    xids = [xid for step in new for xid in _about(step, index).get("xids", [])]
    values["xids"] = tuple(XidEvent(xid, now) for xid in xids)
    if "nvlinks_up" in values:
        up = values.pop("nvlinks_up")
        values["nvlinks"] = None if up is None else tuple(i < up for i in range(18))
    return replace(H100, uuid=f"GPU-{index}", index=index, attached_at=attached_at, **values)


def _about(step: Mapping[str, Any], index: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for who, values in step.items():
        if who not in NODE_WORDS and (who == "all" or index in _range(who)):
            found |= values
    return found


def _range(who: object) -> range:
    first, _, last = str(who).partition("-")
    return range(int(first), int(last or first) + 1)


def _note(found: Outcome, verdict: Verdict, second: int) -> None:
    for g in verdict.gpus:
        if g.reasons:
            found.out_at.setdefault(g.gpu.index, second)
            found.reasons.setdefault(g.gpu.index, set()).update(g.reasons)
        found.watched.setdefault(g.gpu.index, set()).update(g.watched)
        found.actions[g.gpu.index] = g.action
    found.node |= set(verdict.node_reasons)


def fault_at(episode: Episode) -> int:
    """When the fault of the episode begins: the step that says so, else the first one."""
    return next((step["at"] for step in episode.steps if step.get("fault")), episode.steps[0]["at"])


def wanted(episode: Episode) -> dict[int, Mapping[str, Any]]:
    """The expectation by GPU, with ranges written out."""
    found: dict[int, Mapping[str, Any]] = {}
    for who, what in episode.expect.items():
        first, _, last = str(who).partition("-")
        found |= dict.fromkeys(range(int(first), int(last or first) + 1), what)
    return found
