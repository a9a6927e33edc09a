"""The custom resource on a real API server: what it takes, what it refuses, and what kubectl shows; A8."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from reconciler.clusters.kubernetes.api.api_client import Rejected
from schemas.export.crds import gpr_crd
from tests.support.kube import eventually
from tests.support.requests import CRDS, GPRS, Objects, install, namespace

EXAMPLES = sorted((Path(__file__).parents[4] / "examples" / "repo").rglob("gprs/*.yaml"))
GOOD = {"nodes": 2, "duration": "0d6h0m"}


@pytest.fixture(scope="module")
def objects(new_plane):
    """A namespace with the custom resource, for all tests of this module."""
    new_plane.wipe()
    install(new_plane)
    namespace(new_plane, "vision-train", "vision")
    return Objects(new_plane.api, "vision-train")


def test_the_server_finds_nothing_wrong_with_it(objects):
    def conditions() -> dict[str, str]:
        found = objects.api.get(f"{CRDS}/gprs.egs.dev")
        return {c["type"]: c["status"] for c in found["status"]["conditions"]}

    eventually(lambda: conditions().get("Established") == "True", "it is established")
    assert conditions()["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_accepted_as_it_is(objects, path):
    body = yaml.safe_load(path.read_text())
    made = objects.api.create(objects.path, body)
    assert made["spec"] == body["spec"], "nothing is added and nothing dropped"


def test_the_namespace_says_the_slice(objects):
    objects.apply("without-slice", **GOOD)
    assert "slice" not in objects.get("without-slice")["spec"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({}, "spec.template", id="neither a template nor how much"),
        pytest.param({"nodes": 2}, "spec.template", id="no duration and no template"),
        pytest.param(GOOD | {"nodes": 0}, "spec.nodes", id="no nodes"),
        pytest.param(GOOD | {"nodes": "2"}, "spec.nodes", id="text for a number"),
        pytest.param(GOOD | {"duration": "6 hours"}, "spec.duration", id="a duration that reads otherwise"),
        pytest.param(GOOD | {"duration": "0d0h0m"}, "spec.duration", id="a duration of nothing"),
        pytest.param(GOOD | {"duration": "d"}, "spec.duration", id="a unit without a number"),
        pytest.param(GOOD | {"duration": ""}, "spec.duration", id="an empty duration"),
        pytest.param(GOOD | {"priority": 301}, "spec.priority", id="a priority beyond the bands"),
        pytest.param(GOOD | {"start": "soon"}, "spec.start", id="a start mode that is none"),
        pytest.param(GOOD | {"sharing": "mig"}, "spec.sharing", id="a sharing that is none"),
        pytest.param(GOOD | {"notBefore": "tomorrow"}, "spec.notBefore", id="a time that is none"),
        pytest.param(GOOD | {"network": {"rdma": "yes"}}, "spec.network.rdma", id="text for a truth value"),
        pytest.param(GOOD | {"slice": "Vision!"}, "spec.slice", id="a slice that cannot be"),
    ],
)
def test_a_bad_one_is_refused_with_the_field(objects, spec, said):
    with pytest.raises(Rejected, match=said) as refused:
        objects.apply("bad", **spec)
    assert refused.value.status == 422


def test_a_name_that_no_file_can_have_is_refused(objects):
    with pytest.raises(Rejected, match=r"metadata\.name"):
        objects.apply("with.dots", **GOOD)


def test_shapes_may_be_one_or_several(objects):
    for name, shape in (("one", "H100-80GB"), ("several", ["H100-80GB", "A100-80GB"])):
        objects.apply(name, **GOOD, gpuShape=shape)
        assert objects.get(name)["spec"]["gpuShape"] == shape


def test_kubectl_shows_what_people_look_for(objects):
    objects.apply("shown", **GOOD, gpuShape="H100-80GB")
    status = {"phase": "Queued", "start": "2026-11-21T09:00:00Z", "reason": "NeedsApproval"}
    objects.api.patch(f"{objects.path}/shown/status", [{"op": "add", "path": "/status", "value": status}])
    table = _table(objects)
    names = [column["name"] for column in table["columnDefinitions"]]
    (cells,) = [row["cells"] for row in table["rows"] if row["cells"][0] == "shown"]
    shown = dict(zip(names, cells, strict=True))
    assert shown | {"Age": ""} == {
        "Name": "shown", "Phase": "Queued", "Start": "2026-11-21T09:00:00Z", "End": None, "Nodes": 2,
        "Shape": "H100-80GB", "Age": "", "Reason": "NeedsApproval",
    }  # fmt: skip


def _table(objects):
    """What `kubectl get gprs` asks for."""
    client = objects.api._client
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    client.update_params_for_auth(headers, [], ["BearerToken"], "", "GET", None)
    url = f"{client.configuration.host}{GPRS}/namespaces/vision-train/gprs"
    return json.loads(client.call_api("GET", url, header_params=headers).response.data)


def test_a_change_of_the_spec_counts_and_a_status_does_not(objects):
    """The door tells by the generation whether an object asks for something new."""
    objects.apply("counted", **GOOD)
    objects.api.patch(
        f"{objects.path}/counted/status", [{"op": "add", "path": "/status", "value": {"phase": "Queued"}}]
    )
    objects.annotate("counted", "note", "x")
    assert objects.get("counted")["metadata"]["generation"] == 1
    objects.apply("counted", nodes=1, duration="1h")
    assert objects.get("counted")["metadata"]["generation"] == 2
    assert objects.status("counted") == {"phase": "Queued"}


def test_the_oldest_server_takes_the_definition_too(kube):
    """1.20: it checks the schema when the definition is made, whatever it can do with objects."""
    kube.api.create(CRDS, gpr_crd())
    path = f"{CRDS}/gprs.egs.dev"

    def conditions():
        found = kube.api.get(path).get("status", {}).get("conditions") or ()
        return {c["type"]: c["status"] for c in found}

    eventually(lambda: conditions().get("Established") == "True", "it is established", 90)
    assert "NonStructuralSchema" not in conditions()
