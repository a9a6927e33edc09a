"""Whose commits and reports count: by the trust folder, by the cluster's manifest, and never by a revoked key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.model.evidence import HEALTH
from reconciler.store.store_port import Commit, Person
from reconciler.trust.machines import KeptKeys, Machines, Signed
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from tests.support import world
from tests.support.machinekeys import key, keyring, line, machines

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
BODY = b"kind: AgentReport\n"
CONTROLLER, AGENT, APPLIER = line("controller"), line("agent:east/h100-1"), line("applier:east")


def spec(**more) -> ClusterSpec:
    return world.parsed("clusters/east.yaml", world.cluster(**more)).spec


def commit(signature: str, payload: bytes = b"a commit") -> Commit:
    return Commit("1" * 40, (), Person("x", "x@x.com"), NOW, "m", {}, signature, payload)


def by(name: str, payload: bytes = b"a commit", namespace: str = "git") -> Commit:
    return commit(key(name).sign(namespace, payload), payload)


@pytest.mark.parametrize(
    ("lines", "signed", "counts"),
    [
        pytest.param([CONTROLLER], by("controller"), True, id="the key that is named"),
        pytest.param([CONTROLLER, line("controller", "2")], by("2"), True, id="one of two that are named"),
        pytest.param([CONTROLLER], by("eve"), False, id="a key that nobody named"),
        pytest.param([CONTROLLER, line("ada@x.com")], by("ada@x.com"), False, id="a person's key"),
        pytest.param([CONTROLLER, AGENT], by("agent:east/h100-1"), False, id="an agent's key"),
        pytest.param([CONTROLLER], commit(""), False, id="no signature"),
        pytest.param([CONTROLLER], commit("-----BEGIN PGP SIGNATURE-----\n"), False, id="OpenPGP"),
        pytest.param([CONTROLLER], by("controller", namespace=HEALTH), False, id="for another purpose"),
        pytest.param(
            [CONTROLLER],
            commit(key("controller").sign("git", b"another commit")),
            False,
            id="of another commit",
        ),
        pytest.param(
            [line("controller", options='namespaces="egs-approval"')],
            by("controller"),
            False,
            id="a key that may sign other things",
        ),
        pytest.param(
            [line("controller", options='valid-before="20260101"')],
            by("controller"),
            False,
            id="a key that was over then",
        ),
        pytest.param(
            [line("controller", options='valid-before="20261122"')],
            by("controller"),
            True,
            id="a key that is over later",
        ),
    ],
)
def test_commits_of_controllers(lines, signed, counts):
    assert machines(*lines).controllers()(signed) is counts


def test_a_revoked_key_counts_for_nobody():
    cluster = spec(applierKeys=[key("a").public], agentKeys=[{"agent": "*", "key": key("a").public}])
    trusting = machines(line("controller", "a"), revoked=("a",))
    assert not trusting.controllers()(by("a"))
    assert not trusting.applier("east", cluster)(by("a"))
    assert not trusting.believes(report("a"), cluster)


@pytest.mark.parametrize("dates", ['valid-before="20261120"', 'valid-after="20261122"'])
def test_the_folders_dates_hold_for_keys_that_the_manifest_lists(dates):
    cluster = spec(applierKeys=[key("a").public], agentKeys=[{"agent": "*", "key": key("a").public}])
    trusting = machines(line("other", "a", dates))
    assert not trusting.applier("east", cluster)(by("a"))
    assert not trusting.believes(report("a"), cluster)
    assert machines().believes(report("a"), cluster)


def report(by_: str, cluster: str = "east", agent: str = "h100-1", namespace: str = HEALTH) -> Signed:
    return Signed(cluster, agent, BODY, key(by_).sign(namespace, BODY), NOW)


LISTED = {"agentKeys": [{"agent": "h100-1", "key": f"{key('n1').public} agent@h100-1"}]}
SHARED = {"agentKeys": [{"agent": "*", "key": key("all").public}]}


@pytest.mark.parametrize(
    ("lines", "manifest", "signed", "counts"),
    [
        pytest.param([AGENT], {}, report("agent:east/h100-1"), True, id="the folder names it"),
        pytest.param([line("agent:east/*")], {}, report("agent:east/*"), True, id="or all of the cluster"),
        pytest.param([], LISTED, report("n1"), True, id="the manifest names it"),
        pytest.param([], SHARED, report("all"), True, id="or all of the cluster there"),
        pytest.param([], LISTED, report("n1", agent="h100-2"), False, id="on another agent's branch"),
        pytest.param(
            [AGENT], {}, report("agent:east/h100-1", "west"), False, id="on another cluster's branch"
        ),
        pytest.param([line("agent:east/*")], {}, report("agent:east/*", "west"), False, id="also of all"),
        pytest.param([], LISTED, report("eve"), False, id="by a stranger's key"),
        pytest.param([CONTROLLER], LISTED, report("controller"), False, id="by the controller's key"),
        pytest.param([], LISTED, report("n1", namespace="git"), False, id="signed for another purpose"),
    ],
)
def test_reports_of_agents(lines, manifest, signed, counts):
    assert machines(*lines).believes(signed, spec(**manifest)) is counts


def test_one_byte_more_is_another_report():
    signed = report("n1")
    changed = Signed("east", "h100-1", BODY + b"\n", signed.signature, NOW)
    assert not machines().believes(changed, spec(**LISTED))


@pytest.mark.parametrize(
    ("level", "lines", "manifest", "asked"),
    [
        pytest.param("none", [], {}, False, id="nobody has a key at level none"),
        pytest.param("none", [AGENT], {}, True, id="the folder names the key of one of them"),
        pytest.param("none", [line("agent:east/*")], {}, True, id="or one for all"),
        pytest.param(
            "none", [line("agent:east2/*")], {}, False, id="another cluster's is none of its affair"
        ),
        pytest.param("none", [], LISTED, True, id="the manifest lists a key"),
        pytest.param("signature", [], {}, True, id="any other level"),
        pytest.param("forge", [], {}, True, id="also where people are known by the forge"),
    ],
)
def test_who_has_to_sign(level, lines, manifest, asked):
    assert machines(*lines, level=level).asks("east", spec(**manifest)) is asked


@pytest.mark.parametrize(
    ("level", "lines", "asked"),
    [("none", [], False), ("none", [AGENT], False), ("none", [CONTROLLER], True), ("signature", [], True)],
)
def test_whether_controllers_have_to_sign(level, lines, asked):
    assert (machines(*lines, level=level).controllers() is not None) is asked


@pytest.mark.parametrize(
    ("level", "lines", "manifest", "asked"),
    [
        ("none", [], {}, False),
        ("none", [APPLIER], {}, True),
        ("none", [], {"applierKeys": [key("p").public]}, True),
        ("both", [], {}, True),
    ],
)
def test_whether_appliers_have_to_sign(level, lines, manifest, asked):
    assert (machines(*lines, level=level).applier("east", spec(**manifest)) is not None) is asked


@pytest.mark.parametrize(
    ("lines", "manifest", "signed", "counts"),
    [
        pytest.param([APPLIER], {}, by("applier:east"), True, id="the folder names it"),
        pytest.param([], {"applierKeys": [key("p").public]}, by("p"), True, id="the manifest names it"),
        pytest.param([line("applier:west")], {}, by("applier:west"), False, id="another cluster's"),
        pytest.param([AGENT], {}, by("agent:east/h100-1"), False, id="an agent's"),
        pytest.param([APPLIER], {}, commit(""), False, id="nobody's"),
    ],
)
def test_reports_of_appliers(lines, manifest, signed, counts):
    assert machines(*lines).applier("east", spec(**manifest))(signed) is counts


@pytest.mark.parametrize(
    ("lines", "own", "reason"),
    [
        pytest.param([], None, None, id="nothing is asked"),
        pytest.param([], "controller", None, id="a key that nobody asks for does no harm"),
        pytest.param([CONTROLLER], "controller", None, id="the key that is named"),
        pytest.param([CONTROLLER], None, "KeyMissing", id="no key"),
        pytest.param([CONTROLLER], "eve", "KeyNotTrusted", id="another key"),
    ],
)
def test_a_controller_that_would_not_believe_itself_does_not_start(lines, own, reason):
    trusting, mine = machines(*lines, level="none"), None if own is None else key(own)
    if reason is None:
        trusting.check_own(mine, NOW)
        return
    with pytest.raises(UserError) as caught:
        trusting.check_own(mine, NOW)
    assert caught.value.reason == reason


def test_a_folder_that_cannot_be_read_leaves_the_keys_of_before(caplog):
    states = [keyring(CONTROLLER), Fault("allowed_signers:3: no key", "BadTrustFolder"), keyring()]

    def read():
        if isinstance(states[0], Fault):
            raise states[0]
        return states[0]

    kept = Machines(KeptKeys(read), "signature")
    states.pop(0)
    assert kept.controllers()(by("controller"))
    assert kept.controllers()(by("controller"))
    assert caplog.text.count("keys not read") == 1
    states.pop(0)
    assert not kept.controllers()(by("controller"))
