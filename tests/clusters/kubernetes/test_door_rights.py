"""The door's rights in a cluster are the least that works: enough as they are, and each one missed by name."""

from __future__ import annotations

import pytest
import yaml

from reconciler.clusters.kubernetes.connect import from_text
from reconciler.clusters.kubernetes.rbac import DOOR_RULES
from schemas.errors import Fault
from tests.support.door import PATH, SPEC
from tests.support.kube import FAST, eventually
from tests.support.world import at

LEAST = [(rule, verb) for rule in DOOR_RULES for verb in rule.verbs]


def account(plane, rules):
    """A client that may do this and nothing else."""
    name = "egs-door"
    labels = {"name": name, "labels": {"app.kubernetes.io/managed-by": "egs"}}
    role = {
        "rules": [
            {"apiGroups": [rule.group], "resources": [rule.resource], "verbs": list(verbs)}
            | ({"resourceNames": list(rule.names)} if rule.names else {})
            for rule, verbs in rules
            if verbs
        ]
    }
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    base = "/apis/rbac.authorization.k8s.io/v1"
    for path in (f"{base}/clusterroles", f"{base}/clusterrolebindings"):
        plane.api.delete(f"{path}/{name}")
    plane.api.delete(f"/api/v1/namespaces/default/serviceaccounts/{name}")
    plane.api.create(f"{base}/clusterroles", {"metadata": labels, **role})
    plane.api.create(
        f"{base}/clusterrolebindings", {"metadata": labels, "roleRef": reference, "subjects": [subject]}
    )
    plane.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": plane.api.create(path, asked)["status"]["token"]}
    return from_text("east", yaml.safe_dump(config), None, FAST)


def test_its_rights_are_enough(rig):
    """File, mirror, cancel, as the account of the chart would."""
    rig.close()
    client = account(rig.plane, [(rule, rule.verbs) for rule in DOOR_RULES])
    rig.plane.connect, connect = (lambda: client), rig.plane.connect
    try:
        rig.door = rig.opened()
    finally:
        rig.plane.connect = connect
    rig.train.apply("train", **SPEC)
    eventually(lambda: _tried(rig) and rig.train.status("train").get("phase") == "Filed", "it is filed")
    rig.train.delete("train")
    rig.pass_(gone=True)
    assert PATH not in rig.files()


def _tried(rig):
    """A pass; rights of a new account take a moment to be known."""
    try:
        rig.door.step(at(0))
    except Fault:
        return False
    return True


@pytest.mark.parametrize(("rule", "verb"), LEAST, ids=[f"{verb} {rule.resource}" for rule, verb in LEAST])
def test_one_right_less_is_not_enough_and_said(rig, rule, verb):
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.train.delete("train")
    rig.eval.apply("other", **SPEC)
    rig.close()
    fewer = [(r, tuple(v for v in r.verbs if (r, v) != (rule, verb))) for r in DOOR_RULES]
    client = account(rig.plane, fewer)
    rig.plane.connect, connect = (lambda: client), rig.plane.connect
    try:
        rig.door = rig.opened()
    finally:
        rig.plane.connect = connect

    def refused():
        watches = [rig.door._objects._trouble, rig.door._namespaces._trouble]
        try:
            rig.door.step(at(0))
        except Fault as fault:
            watches.append(fault)
        texts = [str(fault) for fault in watches if fault is not None]
        wanted = f'cannot {verb} resource "{rule.resource}"'
        return any(wanted in text and "grant the controller this verb" in text for text in texts)

    eventually(refused, f"{verb} {rule.resource} is missed and named")
