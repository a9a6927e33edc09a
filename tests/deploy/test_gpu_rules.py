"""Rules about GPUs, by `promtool test rules`: when each alert is raised, when not, and what it tells (H6, H7)."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.deploying.monitoring.gpu_rules import ALERTS
from tests.deploy.helm import CHART, ROOT
from tests.support.prometheus import needs_prometheus

RULES = CHART / "files" / "gpu_alerts.yaml"
DOCS = (ROOT / "docs/reference/gpu-alerts.md").read_text("utf-8")
BLANK = 9223372036854775794
H100, A100, V100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"
USED = 'exported_namespace="nlp", exported_pod="chat-0", pod="exporter-7", container="exporter"'
FREE = 'namespace="gpu-operator", pod="exporter-7", container="nvidia-dcgm-exporter"'
HONOURED = 'namespace="nlp", pod="chat-0", container="server"'


@dataclass(frozen=True)
class Given:
    """One GPU: what of it is measured each minute, in promtool's notation, and what its labels say beside."""

    metric: str
    values: str
    model: str = H100
    labels: str = ""
    minute: int = 40

    def series(self, labels: str | None = None) -> dict[str, str]:
        more = self.labels if labels is None else labels
        own = f'gpu="3", UUID="GPU-3", modelName="{self.model}", Hostname="h100-1", cluster="east"'
        text = f"DCGM_FI_DEV_{self.metric}{{{own}{', ' + more if more else ''}}}"
        return {"series": text, "values": self.values}


TOLD = [
    pytest.param(Given("GPU_TEMP", "87x40"), "EgsGpuHot", 87, id="hot"),
    pytest.param(Given("GPU_TEMP", "82x40", V100), "EgsGpuHot", 82, id="an older product is hot earlier"),
    pytest.param(Given("GPU_TEMP", "70x10 88x4", minute=14), "EgsGpuHot", 88, id="hot for two minutes"),
    pytest.param(Given("MEMORY_TEMP", "96x40"), "EgsGpuMemoryHot", 96, id="hot memory"),
    pytest.param(Given("POWER_USAGE", "348x40", A100), "EgsGpuPowerHigh", 348, id="an A100's power"),
    pytest.param(Given("POWER_USAGE", "609x40"), "EgsGpuPowerHigh", 609, id="an H100's power"),
    pytest.param(Given("POWER_USAGE", "305x40", "NVIDIA H100 PCIe"), "EgsGpuPowerHigh", 305, id="a card's"),
    pytest.param(Given("POWER_USAGE", "141x40", "NVIDIA A10"), "EgsGpuPowerHigh", 141, id="an A10's"),
    pytest.param(Given("CLOCKS_EVENT_REASONS", "64x40"), "EgsGpuThrottled", 64, id="slowed down by heat"),
    pytest.param(
        Given("CLOCK_THROTTLE_REASONS", "36x40"),
        "EgsGpuThrottled",
        36,
        id="by the metric's old name, beside the cap",
    ),
    pytest.param(
        Given("CLOCKS_EVENT_REASONS", "136x40"), "EgsGpuPowerBrake", 136, id="power brake and hardware"
    ),
    pytest.param(Given("GPU_UTIL", "0x40", labels=USED), "EgsGpuIdle", 0, id="idle, labels renamed"),
    pytest.param(Given("GPU_UTIL", "4x40", labels=HONOURED), "EgsGpuIdle", 4, id="idle, labels honoured"),
    pytest.param(Given("XID_ERRORS", "0x30 79x10"), "EgsGpuXidFatal", 79, id="off the bus"),
    pytest.param(Given("XID_ERRORS", "0x35 74x5"), "EgsGpuXidHardware", 74, id="a link"),
    pytest.param(Given("XID_ERRORS", "0x35 31x5"), "EgsGpuXidApplication", 31, id="the application"),
    pytest.param(Given("ECC_DBE_VOL_TOTAL", "0x30 2x10"), "EgsGpuMemoryErrors", 2, id="memory errors"),
    pytest.param(Given("ROW_REMAP_FAILURE", "1x40"), "EgsGpuRemapFailure", 1, id="no spare rows"),
    pytest.param(Given("GPU_TEMP", "50x30 _x20", minute=45), "EgsGpuSilent", 50, id="silent"),
]
SILENT = [
    pytest.param(Given("GPU_TEMP", "86x40"), id="warm"),
    pytest.param(Given("GPU_TEMP", "70 90 70 90 70 90x0 70x34"), id="a peak of a minute"),
    pytest.param(Given("GPU_TEMP", f"{BLANK}x40"), id="a blank is not heat"),
    pytest.param(Given("MEMORY_TEMP", "95 94x39"), id="memory was hot for a moment"),
    pytest.param(Given("POWER_USAGE", "347x40", A100), id="an A100 at work"),
    pytest.param(Given("POWER_USAGE", "600x40"), id="an H100 at work"),
    pytest.param(Given("POWER_USAGE", "139x40", "NVIDIA A10"), id="an A10 at its usual maximum"),
    pytest.param(Given("POWER_USAGE", "999x40", "Unheard Of"), id="a board of unknown power"),
    pytest.param(Given("CLOCKS_EVENT_REASONS", "4x40"), id="the power cap is usual"),
    pytest.param(Given("CLOCKS_EVENT_REASONS", "1x40"), id="an idle GPU's clocks"),
    pytest.param(Given("CLOCKS_EVENT_REASONS", "256x40"), id="a higher bit"),
    pytest.param(Given("GPU_UTIL", "0x40"), id="free and idle"),
    pytest.param(Given("GPU_UTIL", "0x40", labels=FREE), id="free, and the exporter's pod is in its labels"),
    pytest.param(Given("GPU_UTIL", "0x12 90 0x27", labels=USED), id="used within half an hour"),
    pytest.param(Given("GPU_UTIL", "_x30 0x10", labels=USED), id="a pod that has just begun"),
    pytest.param(Given("XID_ERRORS", "0x40"), id="no error"),
    pytest.param(Given("XID_ERRORS", "31x40"), id="an old error of an application"),
    pytest.param(Given("XID_ERRORS", "0x35 43x5"), id="an error that tells nothing"),
    pytest.param(Given("ECC_DBE_VOL_TOTAL", f"{BLANK}x40"), id="no memory that counts errors"),
]


def tried(folder: Path, given: list[dict[str, str]], minute: int, **told: dict[str, Any]) -> str:
    """What promtool finds wrong with these alerts, and with no others; empty: nothing."""
    needs_prometheus()
    case = {
        "interval": "1m",
        "input_series": given,
        "alert_rule_test": [
            {
                "eval_time": f"{minute}m",
                "alertname": alert.name,
                "exp_alerts": [told[alert.name]] if alert.name in told else [],
            }
            for alert in ALERTS
        ],
    }
    file = folder / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]})
    )
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def expected(name: str, value: float, model: str) -> dict[str, Any]:
    rule = next(alert for alert in ALERTS if alert.name == name).rule()
    labels = {"gpu": "3", "UUID": "GPU-3", "modelName": model, "Hostname": "h100-1", "cluster": "east"}
    texts = {
        key: re.sub(
            r"{{ \$value[^}]*}}", str(value), re.sub(r"{{ \$labels\.(\w+) }}", lambda m: labels[m[1]], text)
        )
        for key, text in rule["annotations"].items()
    }
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": texts}


@pytest.mark.parametrize(("given", "name", "value"), TOLD)
def test_it_is_told_once_for_each_gpu(tmp_path: Path, given: Given, name: str, value: float) -> None:
    """Series double while pods of a GPU change."""
    twice = [
        given.series(),
        given.series(", ".join(filter(None, (given.labels, 'DCGM_FI_DRIVER_VERSION="575"')))),
    ]
    assert tried(tmp_path, twice, given.minute, **{name: expected(name, value, given.model)}) == ""


@pytest.mark.parametrize("given", SILENT)
def test_nothing_is_told_of_healthy_gpus(tmp_path: Path, given: Given) -> None:
    assert tried(tmp_path, [given.series()], given.minute) == ""


def test_a_board_of_unknown_name_has_the_limit_that_it_reports(tmp_path: Path) -> None:
    drawn = Given("POWER_USAGE", "270x40", "Unheard Of")
    limit = Given("ENFORCED_POWER_LIMIT", "300x40", "Unheard Of")
    told = expected("EgsGpuPowerHigh", 270, "Unheard Of")
    assert tried(tmp_path, [drawn.series(), limit.series()], 40, EgsGpuPowerHigh=told) == ""


def test_every_alert_is_raised_by_a_test() -> None:
    assert {alert.name for alert in ALERTS} == {case.values[1] for case in TOLD}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_is_documented_with_what_to_do(alert: Any) -> None:
    found = re.search(rf"^### {alert.name}\n\n(\w+)\. \S", DOCS, re.MULTILINE)
    assert found is not None, "docs/reference/gpu-alerts.md does not say what to do"
    assert found[1].lower() == alert.severity
    assert alert.advice


def test_the_docs_explain_no_alert_that_is_not_there() -> None:
    assert re.findall(r"^### (EgsGpu\w+)$", DOCS, re.MULTILINE) == [alert.name for alert in ALERTS]
