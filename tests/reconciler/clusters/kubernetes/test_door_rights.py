"""The door's rights in a cluster are the least that works: enough as they are, and each one missed by name."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.rbac import DOOR_RULES
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.shipped import account, called, each
from tests.support.door import SPEC
from tests.support.kube import eventually
from tests.support.world import at


def test_its_rights_are_enough(rig):
    """File, mirror, end, as the account of the chart would."""
    rig.close()
    client = account(rig.plane, "door", DOOR_RULES)
    rig.plane.connect, connect = (lambda: client), rig.plane.connect
    try:
        rig.door = rig.opened()
    finally:
        rig.plane.connect = connect
    rig.train.apply("train", **SPEC)
    eventually(lambda: _tried(rig) and rig.train.status("train").get("phase") == "Filed", "it is filed")
    rig.train.delete("train")
    rig.pass_(gone=True)
    assert "earlyRelease: true" in rig.file()


def _tried(rig):
    """A pass; rights of a new account take a moment to be known."""
    try:
        rig.door.step(at(0))
    except Fault:
        return False
    return True


@pytest.mark.parametrize("right", each(DOOR_RULES), ids=called)
def test_one_right_less_is_not_enough_and_said(rig, right):
    rule, verb = right
    rig.train.apply("train", **SPEC)
    rig.pass_()
    rig.train.delete("train")
    rig.eval.apply("other", **SPEC)
    rig.close()
    client = account(rig.plane, "door", DOOR_RULES, right)
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
