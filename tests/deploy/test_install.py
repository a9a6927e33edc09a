"""`egs install` on a real API server: every object is accepted, again is the upgrade, others' objects stay theirs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import typer
import yaml

from egs.commands.output import Form
from reconciler.cli.answers.installation import InstallOptions, Own, put_in, show
from reconciler.clusters.kubernetes.rbac import RULES
from reconciler.deploying.install import Step, budgets_of, install
from reconciler.deploying.install_values import read
from reconciler.deploying.installed_objects import namespace, objects
from reconciler.deploying.object_kinds import path_of
from reconciler.deploying.part_names import Place
from schemas.errors import UserError
from tests.deploy.cases import CASES, PULL, REPO, Json
from tests.deploy.snapshot import everything
from tests.support.kube import Plane, eventually

PLACE = Place("0.1.0")
REMOTE = InstallOptions(("git@forge.example.com:team/fleet.git",), None, None, None, None, "none", None)


def place_in(kube: Plane) -> Place:
    return Place("0.1.0", budgets=budgets_of(kube.api))


def counted(steps: list[Step]) -> Counter[str]:
    return Counter(step.done for step in steps)


def tried(kube: Plane, path: str, item: Json) -> None:
    """Would be accepted; the server judges and keeps nothing."""
    params = {"fieldManager": "egs", "force": "true", "dryRun": "All"}
    kube.api._json("PATCH", path, params, json.dumps(item).encode(), "application/apply-patch+yaml")


def test_every_object_of_every_set_of_values_is_accepted(kube: Plane) -> None:
    """A12."""
    kube.api.create("/api/v1/namespaces", namespace(PLACE))
    for given in CASES.values():
        for item in objects(read(given), place_in(kube)):
            tried(kube, path_of(item, PLACE.namespace), item)


def at_rest(deployment: Json) -> bool:
    """Its controller has told of every replica, and writes no more."""
    return deployment.get("status", {}).get("updatedReplicas", 0) == deployment["spec"]["replicas"]


def test_it_makes_the_namespace_and_all_objects_and_again_changes_nothing(kube: Plane) -> None:
    values, place = read(CASES["a controller with all that can be said"]), place_in(kube)
    first = list(install(kube.api, values, place))
    assert counted(first) == {"created": len(objects(values, place)) + 1}
    eventually(lambda: all(map(at_rest, kube.api.items("/apis/apps/v1/deployments"))), "controllers at rest")
    there = everything(kube.api)
    again = list(install(kube.api, values, place))
    assert counted(again) == {"unchanged": len(first)}
    assert everything(kube.api) == there


def test_an_upgrade_changes_what_is_other_and_removes_what_is_no_more(kube: Plane) -> None:
    place = place_in(kube)
    list(install(kube.api, read(CASES["pull mode with every part and two replicas"]), place))
    steps = {step.what: step.done for step in install(kube.api, read({**PULL, "image": {"tag": "2"}}), place)}
    assert steps["Deployment egs-apply"] == "changed"
    assert steps["Deployment egs-door"] == steps["DaemonSet egs-agents"] == "removed"
    assert steps["Service egs-admission"] == steps["PodDisruptionBudget egs-apply"] == "removed"
    assert steps["ClusterRole egs-door"] == "removed"
    assert steps["ClusterRole egs-apply"] == "unchanged"


def test_an_upgrade_leaves_the_custom_resource_with_its_objects(kube: Plane) -> None:
    """They go with `egs uninstall` alone, which asks."""
    place = place_in(kube)
    list(install(kube.api, read(CASES["a door that commits"]), place))
    list(install(kube.api, read(REPO), place))
    assert kube.api.find("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gprs.egs.dev") is not None


def test_what_somebody_else_changed_is_put_back_and_what_they_added_stays(kube: Plane) -> None:
    place = place_in(kube)
    list(install(kube.api, read(REPO), place))
    path = f"/apis/apps/v1/namespaces/{place.namespace}/deployments/egs-controller"
    kube.api.merge(path, {"metadata": {"labels": {"team": "gpu"}}, "spec": {"replicas": 7}})
    steps = {step.what: step.done for step in install(kube.api, read(REPO), place)}
    assert steps["Deployment egs-controller"] == "changed"
    found = kube.api.get(path)
    assert (found["spec"]["replicas"], found["metadata"]["labels"]["team"]) == (2, "gpu")


@pytest.mark.parametrize(
    ("manager", "reason"),
    [
        pytest.param("Helm", "InstalledByHelm", id="a release of Helm's is not taken over"),
        pytest.param("argocd", "NameTaken", id="an object of somebody else's is not taken over"),
        pytest.param(None, "NameTaken", id="an object of nobody's is not taken over"),
    ],
)
def test_what_is_not_ours_is_refused_before_anything_is_written(
    kube: Plane, manager: str | None, reason: str
) -> None:
    labels = {} if manager is None else {"app.kubernetes.io/managed-by": manager}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "egs-controller", "labels": labels},
    }
    kube.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    before = everything(kube.api)
    try:
        with pytest.raises(UserError) as refused:
            list(install(kube.api, read(REPO), place_in(kube)))
        assert refused.value.reason == reason
        assert everything(kube.api) == before
    finally:
        kube.api.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/egs-controller")


def test_a_driver_may_do_exactly_the_rows_of_its_table_and_an_agent_nothing() -> None:
    """A11: least privilege."""
    found = objects(read(CASES["pull mode with every part and two replicas"]), PLACE)
    rules = [
        rule for item in found if item["metadata"]["name"] == "egs-apply" for rule in item.get("rules", ())
    ]
    rows = [
        {"apiGroups": [row.group], "resources": [row.resource], "verbs": list(row.verbs)}
        | ({"resourceNames": list(row.names)} if row.names else {})
        for row in RULES
    ]
    leases = [rule for rule in rules if rule["resources"] == ["leases"]]
    assert sorted(map(json.dumps, rules)) == sorted(map(json.dumps, [*rows, *leases]))
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in leases] == [
        (["create"], None),
        (["get", "update"], ["egs-apply"]),
    ]
    agent = [item for item in found if item["metadata"]["name"] == "egs-agents"]
    assert {item["kind"] for item in agent} == {"ServiceAccount", "NetworkPolicy", "DaemonSet"}


def test_a_controller_of_other_clusters_has_no_rights_in_its_own() -> None:
    found = objects(read(CASES["a controller of two repositories"]), PLACE)
    assert "ClusterRole" not in {item["kind"] for item in found}
    (role,) = (item for item in found if item["kind"] == "Role")
    assert {rule["resources"][0]: rule.get("resourceNames") for rule in role["rules"]}["secrets"] == [
        "west",
        "north",
    ]


@pytest.mark.parametrize("given", CASES.values(), ids=CASES.keys())
def test_every_pod_is_confined(given: Json) -> None:
    """A11: no root, no capability, nothing to write to but what may be lost; a profile for system calls."""
    for item in objects(read(given), PLACE):
        if item["kind"] not in {"Deployment", "DaemonSet"}:
            continue
        pod = item["spec"]["template"]["spec"]
        of_kubelet = "--pod-resources" in pod["containers"][0]["args"]
        assert pod["securityContext"]["runAsNonRoot"] is not of_kubelet
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        of_node = [v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v]
        assert of_node == ["/var/lib/kubelet/pod-resources"] * of_kubelet
        assert all(m["readOnly"] for m in pod["containers"][0]["volumeMounts"] if m["name"] == "kubelet")
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "PYTHONSAFEPATH", "value": "1"} in container["env"]
        assert all(v["secret"]["defaultMode"] == 0o400 for v in pod["volumes"] if "secret" in v)


@pytest.mark.parametrize("given", CASES.values(), ids=CASES.keys())
def test_every_command_line_is_one_that_the_programs_understand(given: Json) -> None:
    from agent.main import app as agent
    from portal.main import app as portal
    from reconciler.main import app as reconciler

    programs = {"egs-reconciler": reconciler, "egs-agent": agent, "egs-portal": portal}
    for item in objects(read(given), PLACE):
        if item["kind"] not in {"Deployment", "DaemonSet"}:
            continue
        (container,) = item["spec"]["template"]["spec"]["containers"]
        (name,), args = container["command"], list(container["args"])
        if name == "egs-agent":
            args += ["--node", "h100-1"]  # from EGS_NODE
        group = typer.main.get_command(programs[name])
        if name == "egs-portal":  # it does one thing, and has no commands
            group.make_context(name, args)
            continue
        sub = group.commands[args[0]]  # type: ignore[attr-defined]
        sub.make_context(args[0], args[1:])


def test_the_objects_can_be_shown_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    show(REMOTE, "egs", Form.YAML)
    shown = list(yaml.safe_load_all(capsys.readouterr().out))
    assert shown == [namespace(PLACE), *objects(read(REPO), PLACE)]


def test_what_is_typed_counts_more_than_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        "repositories: [/a]\ntrust: {level: none}\ncontroller: {replicas: 1}\n"
        "image: {repository: one, pullPolicy: Always}\n"
    )
    show(InstallOptions(("/b",), None, None, "two:3", "keys", "none", file), "egs", Form.JSON)
    (deployment,) = (item for item in json.loads(capsys.readouterr().out) if item["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["imagePullPolicy"], container["args"][2]) == (
        "two:3",
        "Always",
        "/b",
    )
    assert deployment["spec"]["replicas"] == 1


def test_the_command_installs_and_says_what_it_did(kube: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    put_in(REMOTE, "egs", Own(str(kube.kubeconfig)), Form.JSON)
    done = json.loads(capsys.readouterr().out)
    assert done[0] == {"what": "Namespace egs-system", "done": "created"}
    assert {"what": "Deployment egs-controller", "done": "created"} in done
