"""Workspaces, keys, templates, bindings and policies through the SDK, against a server. B7, C2, C4, C9, D19, G5, K1."""

from __future__ import annotations

from datetime import timedelta

import pytest

import egs
from egs import exceptions
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path, poll=timedelta(minutes=10))
    made.settle()
    yield made
    made.close()


@pytest.fixture
def url(site):
    with site.server() as address:
        yield address


@pytest.fixture(params=FACES)
def face(request):
    return FACES[request.param]


@pytest.fixture
def ada(face, url):
    """An admin's session."""
    return face("authenticate", url, KEYS["ada-owner"])


def test_a_workspace_from_its_making_to_its_end(face, ada, site):
    made = face("create_workspace", "speech", ["east"], ["speech-dev"], "Cy", "cy@example.com", ada)
    assert (made, made.change.way) == ("speech", "pushed")
    assert "cy@example.com" in (site.main("slices/speech/slice.yaml") or "")
    with pytest.raises(exceptions.WorkspaceAlreadyExists):
        face("create_workspace", "speech", ["east"], ["other"], "Cy", "cy@example.com", ada)
    with pytest.raises(exceptions.BadParameters):
        face("create_workspace", "talk", ["nowhere"], ["talk"], "Cy", "cy@example.com", ada)

    assert face("update_workspace", "speech", ["east", "west"], authenticated_session=ada) == "speech"
    workspace = face("get_workspace", "speech", ada)
    assert workspace.clusters == ("east", "west")
    assert [space.namespace for space in workspace.namespaces] == ["speech-dev"]
    assert face("detach_cluster_from_workspace", "speech", "west", ada) == "speech"
    with pytest.raises(ValueError, match="last"):
        face("detach_cluster_from_workspace", "speech", "east", ada)
    with pytest.raises(ValueError, match="there is no"):
        face("update_workspace", "nobodys", ["east"], authenticated_session=ada)
    with pytest.raises(exceptions.BadParameters):
        face("get_workspace_kubeconfig", "speech", "east", ada)

    assert face("delete_workspace", "speech", ada).workspace_name == "speech"
    assert [w.name for w in face("list_workspaces", ada).workspaces] == ["nlp", "vision"]


def test_who_is_no_admin_asks_for_a_workspace(face, url, site):
    bo = face("authenticate", url, KEYS["bo-owner"])
    made = face("create_workspace", "mine", ["east"], ["mine"], "Bo", "bo@example.com", bo)
    assert made.change.way in {"pushed", "pull-request", "branch"}
    assert site.main("slices/mine/slice.yaml") is None
    with pytest.raises(exceptions.Unauthorized):
        face("delete_workspace", "vision", bo)


def test_nodes(face, ada):
    nodes = face("inventory", None, ada)
    assert {node.cluster_name for node in nodes} == {"east", "west"}
    assert nodes[0].gpu_shape == "H100-80GB"
    assert nodes == face("inventory", ada) == nodes.managed_nodes
    found = face("workspace_inventory", "vision", ada).workspace_inventory
    assert [(row.cluster_name, row.total_gpu_nodes, row.gpu_per_node) for row in found] == [
        ("east", 4, 8),
        ("west", 2, 8),
    ]


def test_a_time_without_nodes_and_a_repaired_one(face, ada, site):
    """G4: the cluster's document has them, and nothing else in it changes."""
    before, times = site.main("clusters/east.yaml"), ("2099-12-01T06:00:00Z", "2099-12-01T08:00:00Z")
    assert face("plan_maintenance", "east", *times, ada, pools=["h100"], every="7d").change.way == "pushed"
    assert "every: 7d0h0m" in site.main("clusters/east.yaml")
    with pytest.raises(exceptions.ResourceNotFound):
        face("plan_maintenance", "nowhere", *times, ada)
    with pytest.raises(exceptions.BadParameters):
        face("plan_maintenance", "east", *times, ada, nodes=["nothing"])
    assert face("remove_maintenance", "east", *times, ada, pools=["h100"], every="7d") == "east"
    assert site.main("clusters/east.yaml") == before
    assert face("clear_node", "east", "h100-1", ada) == "east"
    assert "node: h100-1" in site.main("clusters/east.yaml")
    with pytest.raises(exceptions.ResourceNotFound):
        face("clear_node", "east", "nothing", ada)


def test_a_key_from_its_making_to_its_end(face, ada, url):
    key = face("create_api_key", "ci", "Editor", "2026-12-31", "bo@example.com", "nightly", "vision", ada)
    auth = face("authenticate", url, key)
    assert (auth.email, auth.role, auth.workspaces) == ("bo@example.com", "Editor", ("vision",))
    found = {row["name"]: row for row in face("list_api_keys", "vision", ada)["apiKeys"]}
    assert found["ci"]["role"] == "Editor"
    assert key not in str(found)
    face("delete_api_key", key, ada)
    with pytest.raises(exceptions.ApiKeyRevoked):
        face("authenticate", url, key)
    with pytest.raises(exceptions.ResourceNotFound):
        face("delete_api_key", name="nobodys", authenticated_session=ada)
    for role, workspace in (("Editor", None), ("Boss", "vision")):
        with pytest.raises(ValueError, match=role):
            face(
                "create_api_key",
                "ci",
                role,
                "2026-12-31",
                workspace_name=workspace,
                authenticated_session=ada,
            )


def test_an_owners_key_by_a_token(face, ada, url):
    key = face(
        "create_owner_api_key",
        egs_endpoint=url,
        egs_token=ada.connection.token.text,
        name="tomorrow",
        username="ada",
    )
    assert face("authenticate", url, key).role == "Owner"


def test_templates(face, ada):
    args = ("night", "east", 8, 1, 81920, "H100-80GB", "", "0d8h0m", 50, True, True, False)
    with pytest.raises(ValueError, match="idle_timeout_duration"):
        face("create_gpr_template", *args, None, ada)
    assert face("create_gpr_template", *args, "0d0h30m", ada) == "night"
    template = face("get_gpr_template", "night", ada)
    assert (template.name, template.number_of_gpus, template.number_of_gpu_nodes) == ("night", 8, 1)
    assert (template.memory_per_gpu, template.priority, template.exit_duration) == (80, 50, "0d8h0m")
    assert (template.enforce_idle_timeout, template.idle_timeout_duration) == (True, "0d0h30m")
    assert (template.enable_eviction, template.requeue_on_failure) == (True, False)
    face(
        "update_gpr_template",
        "night",
        "east",
        4,
        "",
        "0d9h0m",
        2,
        60,
        80,
        "H100-80GB",
        True,
        True,
        False,
        None,
        ada,
    )
    template = face("get_gpr_template", "night", ada)
    assert (template.number_of_gpus, template.number_of_gpu_nodes, template.priority) == (4, 2, 60)
    assert [t.name for t in face("list_gpr_templates", ada).items] == ["night", "small"]
    face("delete_gpr_template", "night", ada)
    with pytest.raises(exceptions.ResourceNotFound):
        face("get_gpr_template", "night", ada)


def test_bindings(face, ada):
    offered = [{"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}]
    assert face("create_gpr_template_binding", "vision", offered, False, ada) == "vision"
    binding = face("get_gpr_template_binding", "vision", ada)
    assert (binding.name, binding.enable_auto_gpr) == ("vision", False)
    assert binding.clusters[0].template_status == {"small": "Valid"}
    assert {name: binding.clusters[0][name] for name in ("clusterName", "defaultTemplateName")} == {
        "clusterName": "east",
        "defaultTemplateName": "small",
    }
    assert binding.clusters[0]["templates"] == ("small",)
    assert face("update_gpr_template_binding", "vision", [{**offered[0], "clusterName": "west"}], False, ada)
    assert face("list_gpr_template_bindings", ada)[0].clusters[0].cluster_name == "west"
    with pytest.raises(exceptions.BadParameters, match="author"):
        face("update_gpr_template_binding", "vision", offered, True, ada)
    assert face("delete_gpr_template_binding", "vision", ada) == "vision"
    assert face("list_gpr_template_bindings", ada) == []


def test_policies(face, ada):
    change = face(
        "update_workspace_policy",
        policy_name="vision",
        priorityRange="medium",
        maxGPRs=3,
        maxExitDurationPerGPR="1W",
        gpuShapes=["H100-80GB"],
        maxGpuPerGpr=16,
        maxMemoryPerGpr=80,
        authenticated_session=ada,
    )
    assert change.way == "pushed"
    policy = face("get_workspace_policy", policy_name="vision", authenticated_session=ada)
    assert (policy.priority_range, policy.max_gprs, policy.max_exit_duration_per_gpr) == ("medium", 3, "1W")
    assert (policy.PriorityRange, policy.maxGPRs, policy.maxExitDurationPerGPR) == ("medium", 3, "1W")
    held = policy.global_gpu_constraints
    assert (held.gpu_shapes, held.max_gpu_per_gpr, held.max_memory_per_gpr) == (("H100-80GB",), 16, 80)
    assert [p.workspace_name for p in face("list_workspace_policies", authenticated_session=ada)] == [
        "nlp",
        "vision",
    ]
    with pytest.raises(exceptions.BadParameters, match="enableAutoEviction"):
        face(
            "update_workspace_policy",
            policy_name="vision",
            enableAutoEviction=True,
            authenticated_session=ada,
        )
    with pytest.raises(exceptions.ResourceNotFound):
        face("get_workspace_policy", policy_name="no such?", authenticated_session=ada)


def test_by_what_the_planner_chooses(face, ada, site):
    base = {"workspace_name": "vision", "node_count": 1, "gpu_per_node_count": 8, "memory_per_gpu": 80}
    base |= {"exit_duration": "1h", "priority": 101, "authenticated_session": ada}
    shape = {"instance_type": "", "gpu_shape": "H100-80GB"}
    ids = [
        face("request_gpu_with_auto_selection", request_name="a", **base),
        face("request_gpu_with_auto_gpu_selection", request_name="b", preferred_clusters=["west"], **base),
        face("request_gpu_with_auto_cluster", request_name="c", **shape, **base),
        face("request_gpu_with_manual_selection", request_name="d", cluster_name="west", **shape, **base),
    ]
    found = [face("gpu_request_status", id_, ada) for id_ in ids]
    assert [request.gpu_shapes for request in found] == [(), (), ("H100-80GB",), ("H100-80GB",)]
    assert [request.preferred_clusters for request in found] == [(), ("west",), (), ("west",)]
    assert isinstance(found[0], egs.GpuRequestData)
