"""Values out of answers: the documented fields, what they are also called, and how they are shown. D16, K2."""

from __future__ import annotations

import dataclasses

import pytest

from egs.data.fleet import (
    GlobalGPUConstraints,
    GprTemplateBinding,
    GpuSlicingProfile,
    Inventory,
    ListWorkspacesResponse,
    Workspace,
    WorkspacePolicy,
    read_inventory,
)
from egs.data.gpr import GpuRequestData, GpuRequestStatus, WaitTime, read_gpr
from egs.data.records import Answered, Change, Items, Named, camel, each, of
from portal.views.inventories import SlicingProfile

DOCUMENTED = """
    request_id workspace_name cluster_name number_of_gpus number_of_gpu_nodes instance_type memory_per_gpu priority
    gpu_sharing_mode estimated_start_time estimated_wait_time exit_duration early_release gpr_name gpu_shape multi_node
    dedicated_nodes enable_rdma enable_secondary_network status
"""
STATUS = """
    provisioning_status failure_reason num_gpus_allocated start_timestamp completion_timestamp cost nodes internal_state
    retry_count delayed_count warned_at checkpointed_at
"""
WIRE = {
    "gprId": "gpr-7c29e338-ebda",
    "name": "vision/train",
    "gprName": "train",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 2,
    "instanceType": "p5",
    "memoryPerGPU": 80,
    "priority": 201,
    "gpuSharingMode": "dedicated",
    "estimatedStartTime": "2026-03-02T08:00:00Z",
    "estimatedWaitTime": "0h2m40s",
    "exitDuration": "6h0m0s",
    "earlyRelease": True,
    "gpuShape": "H100-80GB",
    "multiNode": True,
    "dedicatedNodes": True,
    "enableRDMA": True,
    "enableSecondaryNetwork": True,
    "idleTimeOutDuration": "0h30m0s",
    "enforceIdleTimeOut": True,
    "phase": "Provisioned",
    "somethingNewer": {"of": "a later server"},
    "forecast": None,
    "status": {
        "provisioningStatus": "Successful",
        "failureReason": "none",
        "numGPUsAllocated": 16,
        "startTimestamp": "2026-03-02T08:00:00Z",
        "completionTimestamp": "2026-03-02T14:00:00Z",
        "cost": "12.34 USD",
        "nodes": ["h100-1", "h100-2"],
        "internalState": "Reserved",
        "retryCount": 1,
        "delayedCount": 2,
        "warnedAt": "2026-11-21T13:50:00Z",
        "checkpointedAt": "2026-11-21T13:42:00Z",
    },
}


def test_all_documented_fields_in_the_documented_order():
    assert [f.name for f in dataclasses.fields(GpuRequestData)][:20] == DOCUMENTED.split()
    assert [f.name for f in dataclasses.fields(GpuRequestStatus)] == STATUS.split()


def test_every_documented_field_is_read():
    request = read_gpr(WIRE)
    empty = GpuRequestData()
    assert [name for name in DOCUMENTED.split() if getattr(request, name) == getattr(empty, name)] == []
    assert [
        name for name in STATUS.split() if getattr(request.status, name) == getattr(empty.status, name)
    ] == []
    assert (request.status.nodes, request.status.cost) == (["h100-1", "h100-2"], "12.34 USD")


def test_other_names_of_the_same():
    request = read_gpr(WIRE)
    assert (request.gpr_id, request.slice_name, request.number_of_gp_us, request.cost) == (
        request.request_id,
        request.workspace_name,
        request.number_of_gpus,
        request.status.cost,
    )


def test_values_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        read_gpr(WIRE).priority = 3


@pytest.mark.parametrize("data", [{}, None, [], {"status": None}, {"gprId": None}])
def test_an_answer_that_says_less_is_understood(data):
    assert read_gpr(data).request_id == ""


def test_what_is_shown_is_what_was_said():
    request = of(GpuRequestData, {"gprId": "gpr-1", "phase": "Queued", "slips": []})
    assert repr(request) == "GpuRequestData(request_id='gpr-1', phase='Queued')"
    assert request._repr_html_() == (
        "<table><caption>GpuRequestData</caption><tr><th>request_id</th><td>gpr-1</td></tr>"
        "<tr><th>phase</th><td>Queued</td></tr></table>"
    )


USUAL = {
    "gpuSharingMode": "dedicated",
    "estimatedWaitTime": "0h0m0s",
    "dedicatedNodes": True,
    "requeueOnFailure": True,
    "enableEviction": True,
    "start": "asap",
    "prefer": "earliest",
    "extend": "0h0m0s",
    "model": {"name": "", "framework": "", "parameters": {}},
    "gpuShape": "H100-80GB",
    "gpuShapes": ["H100-80GB"],
    "clusterName": "east",
    "preferredClusters": ["east"],
    "specDigest": "sha256:0123",
}


def test_what_goes_without_saying_is_not_shown():
    assert repr(of(GpuRequestData, USUAL)) == "GpuRequestData(cluster_name='east', gpu_shape='H100-80GB')"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("gpuSharingMode", "shared", "gpu_sharing_mode='shared'"),
        ("requeueOnFailure", False, "requeue_on_failure=False"),
        ("enableEviction", False, "enable_eviction=False"),
        ("start", "fixed", "start='fixed'"),
        ("prefer", "cheapest", "prefer='cheapest'"),
        ("extend", "1h0m0s", "extend='0d1h0m'"),
        ("model", {"name": "llama"}, "model={'name': 'llama'}"),
        ("gpuShapes", ["H100-80GB", "A100-80GB"], "gpu_shapes=('H100-80GB', 'A100-80GB')"),
        ("preferredClusters", ["east", "west"], "preferred_clusters=('east', 'west')"),
    ],
)
def test_what_is_unusual_is_shown(name, value, shown):
    assert shown in repr(of(GpuRequestData, USUAL | {name: value}))


def test_a_list_is_also_under_items_and_a_table_in_a_notebook():
    rows = each(GpuRequestData)([{"gprId": "gpr-1"}, {"gprId": "gpr-2", "gprName": "<b>"}])
    assert rows.items is rows
    assert repr(rows).splitlines()[1] == "  GpuRequestData(request_id='gpr-1'),"
    assert repr(rows[:1]) == "[GpuRequestData(request_id='gpr-1')]"
    html = rows._repr_html_()
    assert "<th>request_id</th><th>gpr_name</th>" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_a_long_table_ends():
    html = Items(WaitTime(pool=str(n)) for n in range(1000))._repr_html_()
    assert html.count("<tr>") == 201
    assert "800 more" in html


def test_an_inventory_is_indexed_and_has_both_parts():
    nodes = read_inventory(
        {
            "managedNodes": [
                {"gpuNodeName": "n1", "instanceType": "p5", "gpuShape": "H100", "availableGPUs": 8}
            ],
            "unmanagedNodes": [
                {"gpuNodeName": "n2", "allocation": [{"gprName": "x", "totalGPUsAllocated": 3}]}
            ],
        }
    )
    assert nodes[0].instance_type == "p5"
    assert nodes[0].availableGPUs == 8
    assert len(nodes) == 1
    assert nodes.managed_nodes == list(nodes) == nodes.items
    assert nodes.unmanaged_nodes[0].allocation[0].total_gpus_allocated == 3
    assert "unmanaged_nodes" in nodes._repr_html_()


def test_lists_under_their_vendors_names():
    found = ListWorkspacesResponse([of(Workspace, {"name": "vision", "namespaces": [{"namespace": "v"}]})])
    assert found.workspaces[0].namespaces[0].namespace == "v"
    assert isinstance(found, list)


POLICY = {
    "workspaceName": "vision",
    "PriorityRange": "high",
    "maxGPRs": 3,
    "maxExitDurationPerGPR": "6h0m0s",
    "requeueOnFailure": True,
    "enableAutoEviction": True,
    "enforceIdleTimeOut": False,
}
CONSTRAINTS = {"gpuShapes": ("H100",), "maxGPUPerGpr": 8, "maxMemoryPerGpr": 80}


def test_a_policy_under_the_documented_names():
    policy = of(WorkspacePolicy, {**POLICY, "globalGPUConstraints": CONSTRAINTS})
    assert {name: getattr(policy, name) for name in POLICY} == POLICY
    found = policy.globalGPUConstraints
    assert isinstance(found, GlobalGPUConstraints)
    assert {name: getattr(found, name) for name in CONSTRAINTS} == CONSTRAINTS


def test_the_clusters_of_a_binding_under_the_documented_names():
    row = {"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}
    found = of(GprTemplateBinding, {"name": "vision", "clusters": [row]}).clusters[0]
    assert (found["clusterName"], found["defaultTemplateName"], found["templates"]) == (
        "east",
        "small",
        ("small",),
    )
    assert (found.cluster_name, found.default_template_name) == ("east", "small")
    with pytest.raises(KeyError):
        found["cluster_name"]


def test_a_name_is_text_that_knows_where_its_change_is():
    name = Named("gpr-1", Change("pushed", "c1"))
    assert name == "gpr-1"
    assert repr(name) == "'gpr-1'"
    assert name.change.commit == "c1"


def test_reports_are_dicts_that_are_shown():
    assert "<td>3</td>" in Answered({"requests": 3})._repr_html_()


def test_a_part_of_a_gpu_has_the_fields_that_the_server_has():
    """G5: no field of it is passed over."""
    names = {f.metadata.get("wire") or camel(f.name) for f in dataclasses.fields(GpuSlicingProfile)}
    assert names == {field.alias for field in SlicingProfile.model_fields.values()}


def test_every_field_has_a_default():
    assert Inventory().allocation == ()
