"""Words of PromQL that rules and dashboards share: one series for each GPU, and what is blank left out. Pure.

Series double while pods of a GPU change, and DCGM writes numbers beyond all sense for "not there"
(`reconciler.telemetry.prometheus_queries` says the same for the portal's questions).
"""

from __future__ import annotations

import re

from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.prometheus_queries import MOST, SENSIBLE
from reconciler.telemetry.telemetry_port import Metric

GPU_LABELS = "cluster, Hostname, UUID, gpu, modelName"


def by_gpu(metric: Metric, where: str = "") -> str:
    """The metric's highest present value of each GPU, in DCGM's unit; `where` are matchers."""
    selector = f"{{{where}}}" if where else ""
    found = " or ".join(name + selector for name in NAMES[metric].names)
    if len(NAMES[metric].names) > 1:
        found = f"({found})"
    return f"max by ({GPU_LABELS}) ({found} < {MOST.get(metric, SENSIBLE)})"


NOT_THE_EXPORTER = 'container!~".*exporter.*|egs-agent"'
"""A scrape that does not honour labels gives a free GPU to the pod of its exporter."""


EXPORTED, PLAIN = 'exported_namespace!=""', f'exported_namespace="", pod!="", {NOT_THE_EXPORTER}'
"""Series of GPUs that a pod uses: as a scrape names it that does not honour labels, and as one that does."""


def namespaces() -> str:
    """One series for each namespace whose pods use GPUs."""
    name = NAMES[Metric.TEMPERATURE].names[0]
    renamed = f'label_replace({name}{{{EXPORTED}}}, "namespace", "$1", "exported_namespace", "(.+)")'
    return f"count by (namespace) ({renamed} or {name}{{{PLAIN}}})"


def of_slice(metric: Metric, chosen: str) -> str:
    """`by_gpu` of the GPUs that pods of these namespaces use."""
    name = NAMES[metric].names[0]
    found = (
        f'{name}{{{EXPORTED}, exported_namespace=~"{chosen}"}} or {name}{{{PLAIN}, namespace=~"{chosen}"}}'
    )
    return f"max by ({GPU_LABELS}) (({found}) < {MOST.get(metric, SENSIBLE)})"


def model_pattern(shape: str) -> str:
    """Matches `modelName` of a product, by the start of its shape: `H100-PCIE` is NVIDIA's "H100 PCIe"."""
    words = [re.escape(word) for word in shape.split("-")]
    return f"(?i:(.*[ -])?{'[ -](.*[ -])?'.join(words)}([ -].*)?)"
