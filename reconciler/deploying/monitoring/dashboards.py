"""The dashboards: fleet, cluster, slice, node, GPU. Pure.

They read the controller's own metrics (docs/reference/metrics.md) and dcgm-exporter's, which our agents serve too.
Nothing of them needs the rules. Held by tests/deploy/test_dashboards.py: a real Prometheus answers every expression.
"""

from __future__ import annotations

from reconciler.deploying.monitoring.grafana import Ask, Dashboard, Panel, Variable
from reconciler.deploying.monitoring.promql import GPU_LABELS, by_gpu, namespaces, of_slice
from reconciler.telemetry.telemetry_port import Metric

HOT, PERCENT = (80.0, 87.0), "percent"
NODE_AND_GPU = "{{Hostname}} GPU {{gpu}}"
EQUIPMENT = 'cause=~"NodeLost|NodeReplaced|ChecksFailed|ClusterUnreachable|ControllerAbsent"'
"""Causes of slips that no person asked for."""

REPO = Variable("repo", "egs_leading", "Repository")
CLUSTER = Variable("cluster", "egs_nodes", "Cluster")
SLICE = Variable("slice", "egs_requests", "Slice")
GPU_CLUSTER = Variable("cluster", "DCGM_FI_DEV_GPU_TEMP", "Cluster")
NODE = Variable("node", 'DCGM_FI_DEV_GPU_TEMP{cluster=~"$cluster"}', "Node", "Hostname")
GPU = Variable("gpu", 'DCGM_FI_DEV_GPU_TEMP{Hostname=~"$node"}', "GPU", "UUID")
NAMESPACE = Variable("namespace", namespaces(), "Namespaces of the slice", is_expr=True)

OF_CLUSTER, OF_NODE, OF_GPU = 'cluster=~"$cluster"', 'Hostname=~"$node"', 'UUID=~"$gpu"'

_ENERGY = f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{OF_GPU}}}"  # mJ; 3.6e9 of them are one kWh
_REPLAYS = f"DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{OF_GPU}}}"


def _one(title: str, expr: str, text: str, unit: str = "short", steps: tuple[float, ...] = ()) -> Panel:
    """One number."""
    return Panel(title, (Ask(expr),), text, "stat", unit, width=4, height=4, steps=steps)


def _kept(where: str) -> tuple[Panel, ...]:
    """Promises: were starts kept, and if not, why."""
    slips = f"sum by (cause) (increase(egs_slips_total{{{where}}}[$__range]))"
    starts = f'sum(increase(egs_events_total{{{where}, reason="GPRProvisioned"}}[$__range]))'
    late = f"sum(increase(egs_slips_total{{{where}, {EQUIPMENT}}}[$__range]))"
    return (
        Panel(
            "Promises kept",
            (Ask(f"clamp_min(1 - {late} / ({starts} > 0), 0)"),),
            "Share of hand-overs in this time without a slip for nodes, checks, clusters or the controller.",
            "stat",
            "percentunit",
            4,
            8,
        ),
        Panel(
            "Promises that moved later, by cause",
            (Ask(slips, "{{cause}}"),),
            "Slips in this time. `egs get events` names the requests.",
            "bargauge",
            width=10,
        ),
        Panel(
            "Hand-over after the committed start",
            tuple(
                Ask(
                    f"histogram_quantile({share}, sum by (le) "
                    f"(rate(egs_start_delay_seconds_bucket{{{where}}}[$__rate_interval])))",
                    name,
                )
                for share, name in ((0.5, "half"), (0.9, "nine of ten"))
            ),
            "Time from a committed start until all its nodes are handed over.",
            unit="s",
            width=10,
        ),
    )


def _charts(title: str, where: str, legend: str) -> tuple[Panel, ...]:
    """What GPUs do: use, heat, power, memory."""
    rows = (
        ("Use", Metric.UTILISATION, PERCENT, (), 100.0, "Share of time in which a kernel ran."),
        ("Temperature", Metric.TEMPERATURE, "celsius", HOT, None, "The second line is where alerts begin."),
        (
            "Memory temperature",
            Metric.MEMORY_TEMPERATURE,
            "celsius",
            (90.0, 95.0),
            None,
            "Where there is HBM.",
        ),
        ("Power", Metric.POWER, "watt", (), None, "What the board draws."),
        ("Memory used", Metric.MEMORY_USED, "decmbytes", (), None, "Allocated by processes."),
        ("SM clock", Metric.SM_CLOCK, "rotmhz", (), None, "It falls when heat or power slow a GPU down."),
    )
    return tuple(
        Panel(
            f"{name}{title}", (Ask(by_gpu(metric, where), legend),), text, unit=unit, steps=steps, most=most
        )
        for name, metric, unit, steps, most, text in rows
    )


def _errors(where: str) -> Panel:
    return Panel(
        "Errors",
        (
            Ask(f"{by_gpu(Metric.XID, where)} > 0", f"{NODE_AND_GPU} last Xid"),
            Ask(f"{by_gpu(Metric.ECC_UNCORRECTABLE, where)} > 0", f"{NODE_AND_GPU} ECC"),
            Ask(f"{by_gpu(Metric.REMAPPED_UNCORRECTABLE, where)} > 0", f"{NODE_AND_GPU} remapped rows"),
        ),
        "Only GPUs that have some. NVIDIA's Xid catalog explains the numbers.",
    )


def _slowed(where: str) -> Panel:
    bits = by_gpu(Metric.THROTTLE, where)
    return Panel(
        "Slowed down",
        (
            Ask(f"{bits} % 128 >= bool 32", f"{NODE_AND_GPU} heat"),
            Ask(f"{bits} % 256 >= bool 128", f"{NODE_AND_GPU} power brake"),
            Ask(f"{bits} % 8 >= bool 4", f"{NODE_AND_GPU} power cap"),
        ),
        "1 while it is. The power cap is usual under full load; heat and the brake are not.",
        most=1,
    )


FLEET = Dashboard(
    "egs-fleet",
    "EGS / Fleet",
    "Is the fleet used, and are promises kept?",
    (REPO,),
    (
        _one("Nodes", 'sum(egs_nodes{repo=~"$repo"})', "All nodes of all pools."),
        _one("Leased", 'sum(egs_leased_nodes{repo=~"$repo"})', "Nodes that requests hold."),
        _one(
            "Out of service",
            'sum(egs_nodes{repo=~"$repo", state!="Ready"})',
            "Nodes that the planner may not use. `egs get nodes` says why.",
            steps=(1, 5),
        ),
        _one(
            "Waiting",
            'sum(egs_requests{repo=~"$repo", phase="Queued"}) or vector(0)',
            "Requests without a node.",
        ),
        _one(
            "Starts overdue",
            'sum(egs_starts_overdue{repo=~"$repo"})',
            "Committed starts without a hand-over.",
            steps=(1, 1),
        ),
        _one(
            "Ends overdue",
            'sum(egs_ends_overdue{repo=~"$repo"})',
            "Leases with nodes after their end.",
            steps=(1, 1),
        ),
        *_kept('repo=~"$repo"'),
        Panel(
            "Leased share by pool",
            (
                Ask(
                    'sum by (cluster, pool) (egs_leased_nodes{repo=~"$repo"}) / '
                    'sum by (cluster, pool) (egs_nodes{repo=~"$repo"})',
                    "{{cluster}}/{{pool}}",
                ),
            ),
            "Beside the use of GPUs it shows what is held and not used.",
            unit="percentunit",
            most=1,
        ),
        Panel(
            "Use of GPUs by cluster",
            (Ask(f"avg by (cluster) ({by_gpu(Metric.UTILISATION)})", "{{cluster}}"),),
            "The mean of all GPUs that are measured.",
            unit=PERCENT,
            most=100,
        ),
        Panel(
            "Requests by phase",
            (Ask('sum by (phase) (egs_requests{repo=~"$repo"})', "{{phase}}"),),
            "The queue is those that are Queued.",
            stacked=True,
        ),
        Panel(
            "The ten hottest GPUs",
            (Ask(f"topk(10, {by_gpu(Metric.TEMPERATURE)})", f"{{{{cluster}}}} {NODE_AND_GPU}"),),
            "Heat now.",
            "bargauge",
            "celsius",
            steps=HOT,
        ),
        Panel(
            "Power by cluster",
            (Ask(f"sum by (cluster) ({by_gpu(Metric.POWER)})", "{{cluster}}"),),
            "All boards together.",
            unit="watt",
            stacked=True,
        ),
        Panel(
            "One cycle of the controller",
            (
                Ask(
                    "histogram_quantile(0.9, sum by (repo, le) "
                    '(rate(egs_cycle_duration_seconds_bucket{repo=~"$repo"}[$__rate_interval])))',
                    "{{repo}}",
                ),
            ),
            "Nine of ten take less.",
            unit="s",
        ),
    ),
)

CLUSTERS = Dashboard(
    "egs-cluster",
    "EGS / Cluster",
    "One cluster: its pools, and its GPUs.",
    (CLUSTER,),
    (
        _one("Answers", f"min(egs_cluster_reachable{{{OF_CLUSTER}}})", "1 while every one chosen answers."),
        _one("Nodes", f"sum(egs_nodes{{{OF_CLUSTER}}})", "All nodes of its pools."),
        _one("Leased", f"sum(egs_leased_nodes{{{OF_CLUSTER}}})", "Nodes that requests hold."),
        _one("Ends overdue", f"sum(egs_ends_overdue{{{OF_CLUSTER}}})", "See the alert EgsEndOverdue."),
        _one("GPUs measured", f"count({by_gpu(Metric.TEMPERATURE, OF_CLUSTER)})", "By an exporter or agent."),
        _one(
            "GPUs hot",
            f"count({by_gpu(Metric.TEMPERATURE, OF_CLUSTER)} >= {HOT[1]:g}) or vector(0)",
            "At 87 °C or above.",
            steps=(1, 1),
        ),
        Panel(
            "Nodes by state",
            (
                Ask(
                    f"sum by (pool, state) (egs_nodes{{{OF_CLUSTER}}}) > 0",
                    "{{pool}} {{state}}",
                ),
            ),
            "What is not Ready is not planned with.",
            stacked=True,
        ),
        Panel(
            "Leased nodes by pool",
            (Ask(f"sum by (pool) (egs_leased_nodes{{{OF_CLUSTER}}})", "{{pool}}"),),
            "Nodes that requests hold.",
            stacked=True,
        ),
        Panel(
            "Use by node",
            (Ask(f"avg by (Hostname) ({by_gpu(Metric.UTILISATION, OF_CLUSTER)})", "{{Hostname}}"),),
            "The mean of the node's GPUs.",
            unit=PERCENT,
            most=100,
        ),
        Panel(
            "Hottest GPU by node",
            (Ask(f"max by (Hostname) ({by_gpu(Metric.TEMPERATURE, OF_CLUSTER)})", "{{Hostname}}"),),
            "A node that is hotter than its neighbours needs its cooling checked.",
            unit="celsius",
            steps=HOT,
        ),
        Panel(
            "Power by node",
            (Ask(f"sum by (Hostname) ({by_gpu(Metric.POWER, OF_CLUSTER)})", "{{Hostname}}"),),
            "All boards of the node.",
            unit="watt",
            stacked=True,
        ),
        _slowed(OF_CLUSTER),
        _errors(OF_CLUSTER),
    ),
)

SLICES = Dashboard(
    "egs-slice",
    "EGS / Slice",
    "One slice: its requests, and the GPUs that pods in its namespaces use.",
    (SLICE, NAMESPACE),
    (
        Panel(
            "Requests by phase",
            (Ask('sum by (phase) (egs_requests{slice=~"$slice"})', "{{phase}}"),),
            "The queue is those that are Queued.",
            width=24,
            stacked=True,
        ),
        *(
            Panel(title, (Ask(of_slice(metric, "$namespace"), NODE_AND_GPU),), text, unit=unit)
            for title, metric, unit, text in (
                ("Use", Metric.UTILISATION, PERCENT, "A GPU at 0 is held and not used."),
                ("Memory used", Metric.MEMORY_USED, "decmbytes", "Allocated by processes."),
                ("Temperature", Metric.TEMPERATURE, "celsius", "Heat slows work down."),
                ("Power", Metric.POWER, "watt", "Work that draws little waits for something."),
            )
        ),
    ),
)

NODES = Dashboard(
    "egs-node",
    "EGS / Node",
    "One node: all its GPUs beside each other.",
    (GPU_CLUSTER, NODE),
    (*_charts("", f"{OF_CLUSTER}, {OF_NODE}", NODE_AND_GPU), _slowed(OF_NODE), _errors(OF_NODE)),
)

GPUS = Dashboard(
    "egs-gpu",
    "EGS / GPU",
    "One GPU: what it does, how hot it is, what went wrong.",
    (GPU_CLUSTER, NODE, GPU),
    (
        *_charts("", OF_GPU, NODE_AND_GPU),
        Panel(
            "Energy",
            (Ask(f"max by ({GPU_LABELS}) (increase({_ENERGY}[$__range])) / 3.6e9", NODE_AND_GPU),),
            "What it took in this time.",
            "bargauge",
            "kwatth",
        ),
        Panel(
            "PCIe replays",
            (
                Ask(
                    f"max by ({GPU_LABELS}) (increase({_REPLAYS}[$__rate_interval]))",
                    NODE_AND_GPU,
                ),
            ),
            "Traffic that was sent again: many of them mean a bad seat or riser.",
        ),
        _slowed(OF_GPU),
        _errors(OF_GPU),
    ),
)

DASHBOARDS = (FLEET, CLUSTERS, SLICES, NODES, GPUS)
