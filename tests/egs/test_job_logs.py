"""Logs beside the events of a workload (A9): new lines once, a sentence where there are none, never the end of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from egs.commands.errors import Said
from egs.commands.running.job_logs import LOGS, Own, Read, Tail, beside, tail_of

JOB = {"slice": "vision", "name": "train", "cluster": "east", "namespace": "vision", "objects": []}


def line(text: str) -> dict[str, Any]:
    return {"at": "2026-11-21T08:00:00Z", "pod": "train-0", "container": "main", "text": text}


def test_lines_are_printed_until_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    rows, is_read = [[line("one"), line("two")], [line("last")]], threading.Event()

    def read() -> list[dict[str, Any]]:
        is_read.set()
        return rows.pop(0) if rows else []

    with beside(Tail(read), every_s=60):
        assert is_read.wait(30)
    assert capsys.readouterr().out.splitlines() == [
        f"train-0/main  {text}" for text in ("one", "two", "last")
    ]


def test_a_silence_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    def read() -> list[dict[str, Any]]:
        raise Said("cluster east did not answer", "ClusterUnreachable", 1)

    tail = Tail(read)
    tail.look()
    tail.look()
    assert (
        capsys.readouterr().err == "egs: the logs of its pods cannot be read: cluster east did not answer\n"
    )


def test_where_there_are_none_a_sentence_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    def opened(job: Mapping[str, Any], kubeconfig: str | None, context: str | None) -> Read:
        if kubeconfig is None:
            raise Said("config cannot be read", "KubeconfigMissing", 1)
        return lambda: [line(f"{job['name']} {context}")]

    assert tail_of(JOB, "embedded", Own()) is None
    token = LOGS.set(None)
    try:
        assert tail_of(JOB, "kubernetes", Own()) is None
        LOGS.set(opened)
        assert tail_of(JOB, "kubernetes", Own()) is None
        found = tail_of(JOB, "kubernetes", Own("mine", "here"))
        assert found is not None
        found.look()
    finally:
        LOGS.reset(token)
    told = capsys.readouterr()
    simulated, alone, missing = told.err.splitlines()
    assert "is simulated" in simulated
    assert "install egs-gitops" in alone
    assert "cannot be read (`egs kubeconfig vision --cluster east` makes one)" in missing
    assert told.out == "train-0/main  train here\n"
