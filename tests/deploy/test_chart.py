"""The chart, by the real Helm: it makes the very objects of `egs install`, refuses what cannot work, and goes again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from reconciler.clusters.kubernetes.names import MANAGED_BY
from reconciler.deploying.install import budgets_of
from reconciler.deploying.install_values import read
from reconciler.deploying.installed_objects import objects
from reconciler.deploying.part_names import Place
from tests.deploy.cases import CASES, MISSPELT, REFUSED, REPO
from tests.deploy.helm import CHART, NAMESPACE, Helm
from tests.deploy.snapshot import everything
from tests.support.kube import Plane, eventually

Json = dict[str, Any]

VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
WATCHED = {
    **CASES["a controller with all that can be said"],
    "monitoring": {"enabled": True, "labels": {"team": "gpu"}},
}
NEWEST = ("--kube-version", "1.36.0")


@pytest.mark.parametrize("given", CASES.values(), ids=CASES.keys())
def test_it_makes_the_objects_of_egs_install(helm: Helm, given: Json) -> None:
    """A10: two ways to install, one installation."""
    made = _by_name(helm.template(given, *NEWEST))
    wanted = _by_name(objects(read(given), Place(VERSION)))
    assert made.keys() == wanted.keys()
    for key, item in wanted.items():
        assert made[key] == item, key


def test_monitoring_adds_two_objects_and_changes_no_other(helm: Helm) -> None:
    plain = _by_name(helm.template({**WATCHED, "monitoring": {"enabled": False}}, *NEWEST))
    watched = _by_name(helm.template(WATCHED, *NEWEST))
    more = {key: watched.pop(key) for key in watched.keys() - plain.keys()}
    assert watched == plain
    assert {kind for kind, _ in more} == {"ServiceMonitor", "PrometheusRule"}
    rule = more["PrometheusRule", "egs-controller"]
    assert rule["spec"] == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    assert rule["metadata"]["labels"]["team"] == "gpu"
    monitor = more["ServiceMonitor", "egs-controller"]
    service = plain["Service", "egs-controller"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]


def test_alerts_about_gpus_are_a_rule_of_their_own(helm: Helm) -> None:
    """H7: clusters that a controller elsewhere drives have GPUs too."""
    given = {"gpuAlerts": True, "labels": {"team": "gpu"}}
    for case in (REPO, CASES["pull mode with every part and two replicas"]):
        plain = _by_name(helm.template(case, *NEWEST))
        watched = _by_name(helm.template({**case, "monitoring": given}, *NEWEST))
        rule = watched.pop(("PrometheusRule", "egs-gpus"))
        assert watched == plain
        assert rule["spec"] == yaml.safe_load((CHART / "files" / "gpu_alerts.yaml").read_text())
        assert rule["metadata"]["labels"]["team"] == "gpu"


def test_dashboards_are_config_maps_that_grafana_s_sidecar_finds(helm: Helm) -> None:
    """H8: word for word, although Grafana's own variables look like a template's."""
    plain = _by_name(helm.template(REPO, *NEWEST))
    shown = _by_name(helm.template({**REPO, "monitoring": {"dashboards": True}}, *NEWEST))
    more = {key: shown.pop(key) for key in shown.keys() - plain.keys()}
    assert shown == plain
    assert {item["metadata"]["labels"]["grafana_dashboard"] for item in more.values()} == {"1"}
    texts = {name: text for item in more.values() for name, text in item["data"].items()}
    files = {path.name: path.read_text() for path in (CHART / "files" / "dashboards").glob("*.json")}
    assert {name: json.loads(text) for name, text in texts.items()} == {
        name: json.loads(text) for name, text in files.items()
    }


def test_agents_that_show_telemetry_are_scraped_with_the_labels_of_pods(helm: Helm) -> None:
    """H7: otherwise the agent's own pod would stand where the GPU's does."""
    agents = {"cluster": "east", "agents": {"enabled": True, "telemetry": {"enabled": True}}}
    found = _by_name(helm.template({**WATCHED, **agents}, *NEWEST))
    (endpoint,) = found["PodMonitor", "egs-agents"]["spec"]["podMetricsEndpoints"]
    pod = found["DaemonSet", "egs-agents"]["spec"]["template"]
    assert endpoint["port"] == pod["spec"]["containers"][0]["ports"][0]["name"]
    assert endpoint["honorLabels"] is True
    picked = found["PodMonitor", "egs-agents"]["spec"]["selector"]["matchLabels"]
    assert picked.items() <= pod["metadata"]["labels"].items()


def test_a_cluster_that_knows_no_newer_budgets_gets_the_older(helm: Helm) -> None:
    """1.20 serves policy/v1beta1 alone."""
    old = Place(VERSION, budgets="policy/v1beta1")
    wanted = _by_name(objects(read(REPO), old))["PodDisruptionBudget", "egs-controller"]
    text = helm.run(
        "template", "egs", str(CHART), "-n", NAMESPACE, "-f", helm.values(REPO), "--kube-version", "1.20.0"
    )
    made = _by_name([item for item in yaml.load_all(text.stdout, yaml.CSafeLoader) if item])
    # Helm asks the cluster for what it serves; without one it believes itself to be the newest.
    assert made["PodDisruptionBudget", "egs-controller"]["spec"] == wanted["spec"]


@pytest.mark.parametrize("given", [*CASES.values(), WATCHED], ids=[*CASES.keys(), "with monitoring"])
def test_helm_finds_nothing_to_complain_of(helm: Helm, given: Json) -> None:
    helm.run("lint", "--strict", str(CHART), "-n", NAMESPACE, "-f", helm.values(given))


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_is_refused_in_the_same_words(helm: Helm, given: Json, words: str) -> None:
    done = helm.run("template", "egs", str(CHART), "-n", NAMESPACE, "-f", helm.values(given), check=False)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize("given", MISSPELT.values(), ids=MISSPELT.keys())
def test_what_is_misspelt_is_refused(helm: Helm, given: Json) -> None:
    done = helm.run("template", "egs", str(CHART), "-n", NAMESPACE, "-f", helm.values(given), check=False)
    assert done.returncode != 0


def test_another_namespace_is_refused(helm: Helm) -> None:
    done = helm.run("template", "egs", str(CHART), "-n", "default", "-f", helm.values(REPO), check=False)
    assert "namespace egs-system" in done.stderr


def test_it_is_installed_upgraded_and_removed_with_nothing_left(kube: Plane, helm: Helm) -> None:
    """A12."""
    _namespace(kube)
    _monitoring(kube)
    before = everything(kube.api)
    where = ("-n", NAMESPACE, "--kubeconfig", str(kube.kubeconfig))
    helm.run("install", "egs", str(CHART), *where, "-f", helm.values(REPO))
    # An API server of 1.20 that was built with a newer Go dies of any custom resource that is applied with labels.
    full = WATCHED if budgets_of(kube.api) == "policy/v1" else {**WATCHED, "monitoring": {"enabled": False}}
    for given in (full, CASES["pull mode with every part and two replicas"], REPO):
        helm.run("upgrade", "egs", str(CHART), *where, "-f", helm.values(given))
        made = _by_name(helm.template(given))
        there = everything(kube.api)
        assert [key for key in made if not any(path.endswith(f"/{key[1]}") for path in there)] == []
    helm.run("uninstall", "egs", *where)
    eventually(lambda: everything(kube.api).keys() == before.keys(), "everything to be as before")
    assert everything(kube.api) == before


def _namespace(kube: Plane) -> None:
    kube.api.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    eventually(lambda: kube.api.find(f"{accounts}/default"), "the namespace's own objects")


def _monitoring(kube: Plane) -> None:
    """The kinds of the Prometheus operator, as far as an API server needs them."""
    for kind, plural in (("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")):
        spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"type": "object", "properties": {"spec": spec}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        group = "monitoring.coreos.com"
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [version],
            },
        }
        kube.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        path = f"/apis/{group}/v1/{plural}"
        eventually(lambda path=path: kube.api.find(path), f"{plural} to be served")  # type: ignore[misc]


def _by_name(items: list[Json]) -> dict[tuple[str, str], Json]:
    """Who manages an object is the one thing that may differ."""
    found = {}
    for item in items:
        text = yaml.safe_dump(item).replace(f"{MANAGED_BY}: Helm", f"{MANAGED_BY}: egs")
        found[item["kind"], item["metadata"]["name"]] = yaml.load(text, yaml.CSafeLoader)
    assert len(found) == len(items)
    return found
