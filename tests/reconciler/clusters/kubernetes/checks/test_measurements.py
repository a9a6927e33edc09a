"""What an image printed, read and judged: the contract of docs/reference/checks.md, and whatever else one may print."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.kubernetes.checks.measurements import (
    LOG_LINES,
    LONGEST_LOG,
    Measured,
    judged,
    limits_of,
    parsed,
    plain,
)
from schemas.documents.cluster import Checks

NCCL = Measured(True, {"latency_us": 21.3, "bandwidth_gb_s": 471.0}, "8 GPUs")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('{"check": "A", "ok": true}', {"A": Measured(True, {}, "")}, id="the least"),
        pytest.param(
            'hello\n{"check": "A", "ok": false, "latency_us": 3, "log": "why"}\nbye',
            {"A": Measured(False, {"latency_us": 3.0}, "why")},
            id="among other lines",
        ),
        pytest.param(
            '{"check": "A", "ok": false}\n{"check": "A", "ok": true}',
            {"A": Measured(True, {}, "")},
            id="the last word counts",
        ),
        pytest.param('{"check": "A"}', {"A": Measured(None, {}, "")}, id="no verdict: not measured"),
        pytest.param('{"check": "A", "ok": "yes"}', {}, id="a verdict that is none"),
        pytest.param('{"check": ["A"], "ok": true}', {}, id="a name that is none"),
        pytest.param("[1]\n{", {}, id="no object"),
        pytest.param(
            '{"check": "A", "ok": true, "a": NaN, "b": 1e999, "c": true, "d": "4", "e": ' + "9" * 400 + "}",
            {"A": Measured(True, {}, "")},
            id="figures that are none",
        ),
        pytest.param("{" * 50_000, {}, id="endlessly deep"),
        pytest.param('{"check":' + "[" * 50_000, {}, id="endlessly deep lists"),
        pytest.param(
            '{"check": "A", "ok": true, "log": 5}', {"A": Measured(True, {}, "")}, id="a log that is none"
        ),
    ],
)
def test_only_what_the_contract_says_is_read(text, found):
    assert parsed(text) == found


@given(st.text())
def test_whatever_an_image_prints_is_survived(text):
    for name, said in parsed(text + "\n" + json.dumps({"check": "A", "ok": True, "log": text})).items():
        result = judged(name, said, {}, "silent")
        assert len(result.log) <= max(LONGEST_LOG, 60)


@given(st.text())
def test_logs_are_a_few_printable_lines(text):
    """They end up in Git, in terminals and in web pages."""
    kept = plain(text)
    assert len(kept) <= LONGEST_LOG
    assert len(kept.splitlines()) <= LOG_LINES
    assert all(line.isprintable() for line in kept.split("\n"))


@pytest.mark.parametrize(
    ("said", "limits", "passed", "value", "log"),
    [
        pytest.param(NCCL, {}, True, "21.3 us", "8 GPUs", id="measured, and nothing bounds it"),
        pytest.param(NCCL, {"max_nccl_latency": 21.3}, True, "21.3 us", "8 GPUs", id="as much as is allowed"),
        pytest.param(
            NCCL,
            {"max_nccl_latency": 21},
            False,
            "21.3 us",
            "21.3 us is above 21; 8 GPUs",
            id="more than allowed",
        ),
        pytest.param(
            NCCL,
            {"min_nccl_bandwidth": 480},
            False,
            "21.3 us",
            "471.0 GB/s is below 480; 8 GPUs",
            id="less than needed",
        ),
        pytest.param(
            Measured(False, {"latency_us": 21.3}, "wrong sums"),
            {},
            False,
            "21.3 us",
            "wrong sums",
            id="failed itself",
        ),
        pytest.param(
            Measured(None, {}, "no tool"), {}, True, "not measured", "no tool", id="not measured, not bounded"
        ),
        pytest.param(
            Measured(True, {"latency_us": 20.0}, ""),
            {"min_nccl_bandwidth": 480},
            False,
            "20 us",
            "the manifest limits bandwidth_gb_s to 480 but it was not measured",
            id="bounded, not measured",
        ),
        pytest.param(None, {}, False, "", "its pod says why", id="nothing said"),
    ],
)
def test_the_manifest_judges(said, limits, passed, value, log):
    """F4: thresholds per shape."""
    result = judged("NcclLatency", said, limits, "its pod says why")
    assert (result.passed, result.value, result.log) == (passed, value, log)


def test_bounds_are_those_of_the_nodes_shape():
    checks = Checks.model_validate_json(
        json.dumps(
            {
                "thresholds": [
                    {"gpuShape": "A100-80GB", "minNcclBandwidth": 228},
                    {"gpuShape": "H100-80GB", "minNcclBandwidth": 460, "maxNcclLatency": 30},
                ],
                "maxLatency": 80,
            }
        )
    )
    assert limits_of(checks, "H100-80GB") == {
        "min_nccl_bandwidth": 460,
        "max_nccl_latency": 30,
        "max_latency": 80,
    }
    assert limits_of(checks, "L4-24GB") == {"max_latency": 80}
