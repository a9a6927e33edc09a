"""Diagnosis of workloads (H18): each case of tests/cases/diagnosis/ is an episode, with what must be said about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.pod_port import Container, Pod, PodTrouble
from reconciler.telemetry.telemetry_port import GpuKey, Metric, Point, Series
from reconciler.workloads.diagnosis.diagnose import diagnose, row
from reconciler.workloads.diagnosis.episode import Cause, Episode, Replaced
from reconciler.workloads.gpu_rows import Gpu, gpus_of
from schemas.status.gpr_status import Check, Eviction
from tests.reconciler.workloads.gpus import HELD, NOW, SHORT, device, fleet, sample

FOLDER = Path(__file__).parents[2] / "cases" / "diagnosis"
CASES = [case for file in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(file.read_text())]
MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    """An instant of the day of `NOW`."""
    hour, minute = map(int, text.split(":"))
    return NOW.replace(hour=hour, minute=minute)


def indices(text: int | str) -> range:
    first, _, last = str(text).partition("-")
    return range(int(first), int(last or first) + 1)


def gpus_and_series(case: dict[str, Any]) -> tuple[tuple[Gpu, ...], tuple[Series, ...]]:
    samples, devices, series = [], [], []
    for given in case.get("gpus") or ():
        said = {name: value for name, value in given.items() if name in SHORT}
        for index in indices(given["index"]):
            if "reasons" in given:
                devices.append((given["node"], device(given["node"], index, *given["reasons"])))
            if said:
                when = at(given["at"]) if "at" in given else NOW
                samples.append(sample(given["node"], index, at=when, **said))
                key = samples[-1].gpu
                series += [hour(key, SHORT[name], value, given, name) for name, value in said.items()]
    nodes = {("east", name): "h100" for name in (case["lease"] or {"nodes": []})["nodes"]}
    found: dict[tuple[str, str], list[Any]] = {}
    for node, one in devices:
        found.setdefault(("east", node), []).append(one)
    known = fleet(
        *samples,
        nodes=nodes,
        held=dict.fromkeys(nodes, HELD),
        devices={key: tuple(ones) for key, ones in found.items()},
    )
    return gpus_of(known), tuple(series)


def hour(gpu: GpuKey, metric: Metric, value: float, given: dict[str, Any], name: str) -> Series:
    """A value a minute of the last hour; `since` has the present one, the time before it `before`."""
    earlier = given.get("before", {}).get(name, value)
    since = at(given["since"]) if "since" in given else NOW - timedelta(hours=2)
    times = [NOW - number * MINUTE for number in range(59, -1, -1)]
    points = tuple(Point(time, float(value if time >= since else earlier)) for time in times)
    return Series(gpu, metric, MINUTE, points)


def pods(case: dict[str, Any]) -> tuple[Pod, ...]:
    found = []
    for given in case.get("pods") or ():
        container = Container(
            "main",
            given.get("image", "registry.example.com/train:v1"),
            gpus=given["gpus"],
            restarts=given.get("restarts", 0),
            waiting=given.get("waiting", ""),
            ended=given.get("ended", ""),
            exit_code=given.get("code"),
            ended_at=at(given["ended_at"]) if "ended_at" in given else None,
        )
        names = (
            [given["name"]]
            if "count" not in given
            else [f"{given['name']}-{i}" for i in range(given["count"])]
        )
        found += [
            Pod(
                "east",
                "vision-train",
                name,
                phase=given.get("phase", "Running"),
                node=given.get("node"),
                gpus=given["gpus"],
                containers=(container,),
                started=at(given["started"]) if "started" in given else None,
                unplaced=given.get("unplaced", ""),
                gates=tuple(given.get("gates", ())),
            )
            for name in names
        ]
    return tuple(found)


def episode(case: dict[str, Any]) -> Episode:
    lease = case["lease"]
    gpus, series = gpus_and_series(case)
    return Episode(
        now=NOW,
        request="vision/train" if lease else "",
        waiting=case.get("waiting", ""),
        since=at(lease.get("since", "12:30")) if lease else None,
        next_start=at(case["next"]) if "next" in case else None,
        eviction=Eviction(reason=case["eviction"]["reason"], at=at(case["eviction"]["at"]))
        if "eviction" in case
        else None,
        gpus=gpus,
        allocated=8 * len(lease["nodes"]) if lease else 0,
        per_node=8,
        series=series,
        pods=pods(case),
        troubles=tuple(PodTrouble("vision-train", **one) for one in case.get("troubles") or ()),
        checks=tuple(
            Check(**{**one, "at": at(one["at"]), "stage": "run", "passed": False})
            for one in case.get("checks") or ()
        ),
        replaced=tuple(
            Replaced(one["node"], one["message"], at(one["at"])) for one in case.get("replaced") or ()
        ),
        silences=tuple(case.get("silences") or ()),
        pods_silence=case.get("pods_silence", ""),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_episode_is_explained(case: dict[str, Any]) -> None:
    found = diagnose(episode(case))
    assert [str(finding.cause) for finding in found] == case["want"]
    first = found[0]
    assert case.get("says", "") in first.sentence
    assert case.get("advice", "") in first.advice
    assert case.get("evidence", "") in " | ".join(line for finding in found for line in finding.evidence)
    assert str(first.severity) == case.get("severity", first.severity)
    for finding in found:
        shown = row(finding)
        assert shown["sentence"]
        assert shown["advice"], "every finding says what to do"
        assert "None" not in finding.sentence + " ".join(finding.evidence)


def test_there_are_twenty_episodes_and_every_cause_has_one() -> None:
    assert len(CASES) >= 20
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert {cause for case in CASES for cause in case["want"]} == set(Cause)


def test_what_is_unknown_is_never_called_well() -> None:
    """No GPU is measured, no pod is seen: nothing is said but that."""
    blind = Episode(NOW, "vision/train", allocated=8, pods_silence="no access")
    assert [str(finding.cause) for finding in diagnose(blind)] == ["NoTelemetry", "NoPodsSeen"]


def test_a_single_workload_is_not_blamed_for_the_rest_of_the_request() -> None:
    case = next(case for case in CASES if case["name"] == "the pods ask for less than there is")
    part = replace(episode(case), is_whole=False)
    assert all("asks for fewer" not in finding.advice for finding in diagnose(part))
