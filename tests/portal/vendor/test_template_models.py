"""Templates and their bindings by the API, in the vendor's words (A8, K1)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.durations import checked_duration
from portal.http.errors import ApiError
from portal.vendor.template_models import TemplateWish, template_of, wish_of
from schemas.documents.gpr import ModelInfo, Network, Wish
from tests.support.portal import Site
from tests.support.profile import law

TEMPLATES = "/api/v1/gpr-template"
BINDINGS = "/api/v1/gpr-template-binding"
BOUND = {"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}

NAMES = st.sampled_from(["east", "west", "north"])
SHAPES = st.sampled_from(["H100-80GB", "A100-80GB", "L40S"])
LASTING = st.integers(1, 100_000).map(lambda minutes: timedelta(minutes=minutes))
SPECS = st.builds(
    Wish,
    nodes=st.none() | st.integers(1, 100),
    gpus_per_node=st.none() | st.integers(1, 64),
    gpu_shape=st.none() | SHAPES | st.lists(SHAPES, min_size=2, max_size=3, unique=True).map(tuple),
    memory_per_gpu=st.none() | st.integers(1, 4096),
    instance_type=st.none() | st.just("p5.48xlarge"),
    clusters=st.none() | st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple),
    duration=st.none() | LASTING,
    priority=st.none() | st.integers(1, 300),
    sharing=st.none() | st.sampled_from(["dedicated", "mig:1g.10gb"]),
    preemptible=st.none() | st.booleans(),
    requeue_on_failure=st.none() | st.booleans(),
    idle_timeout=st.none() | LASTING,
    network=st.none() | st.builds(Network, rdma=st.booleans(), secondary=st.booleans()),
)


@law(200)
@given(SPECS)
def test_there_and_back_is_the_same(spec):
    shown = template_of("small", spec).model_dump(by_alias=True, exclude_none=True)
    assert wish_of(TemplateWish.model_validate(shown), Wish()) == spec


@law(100)
@given(SPECS)
def test_a_change_that_says_nothing_changes_nothing(spec):
    """Fields that the API does not have are kept too."""
    ours = spec.model_copy(update={"prefer": "price", "model": ModelInfo(name="llama")})
    assert wish_of(TemplateWish(name="small"), ours) == ours


def fields(**given):
    return wish_of(TemplateWish.model_validate({"name": "small", **given}), Wish())


@pytest.mark.parametrize(
    ("given_", "want"),
    [
        pytest.param({"memoryPerGPU": 81920}, {"memory_per_gpu": 80}, id="MiB are GB"),
        pytest.param(
            {"exitDuration": "6h0m0s"}, {"duration": timedelta(hours=6)}, id="a duration as answers have it"
        ),
        pytest.param({"gpuShape": "any"}, {}, id="any shape is none"),
        pytest.param({"gpuShape": "", "instanceType": "", "clusterName": ""}, {}, id="an empty text is none"),
        pytest.param(
            {"idleTimeOutDuration": "30m"},
            {"idle_timeout": timedelta(minutes=30)},
            id="a timeout is enforced",
        ),
        pytest.param(
            {"idleTimeOutDuration": "30m", "enforceIdleTimeOut": False},
            {},
            id="a timeout that is not enforced is none",
        ),
        pytest.param(
            {"clusterName": "west", "preferredClusters": ["east", "west"]},
            {"clusters": ("west", "east")},
            id="the one cluster comes first",
        ),
        pytest.param({"enableEviction": False}, {"preemptible": False}, id="eviction is preemption"),
    ],
)
def test_the_vendors_words_mean(given_, want):
    assert fields(**given_) == Wish.model_validate(want)


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        pytest.param(
            {"enforceIdleTimeOut": True}, "give idleTimeOutDuration too", id="enforced without a time"
        ),
        pytest.param({"exitDuration": "soon"}, "exitDuration: soon is not a duration", id="no duration"),
        pytest.param({"exitDuration": "1h0m30s"}, "whole minutes", id="seconds"),
        pytest.param({"exitDuration": "0m"}, "above zero", id="no time at all"),
        pytest.param({"gpuShape": "h 100"}, "gpuShape: h 100 is not valid", id="no shape"),
        pytest.param({"gpuSharingMode": "some"}, "gpuSharingMode: some is not valid", id="no way of sharing"),
        pytest.param(
            {"enableAutoGpuSelection": True, "gpuShape": "H100-80GB"},
            "leave gpuShape out",
            id="any GPU and this one",
        ),
        pytest.param({"clusterName": "East!"}, "clusterName: ", id="no name of a cluster"),
    ],
)
def test_what_makes_no_sense_is_refused_in_the_words_of_the_api(given_, sentence):
    with pytest.raises(ApiError) as caught:
        fields(**given_)
    assert caught.value.status == 422
    assert sentence in str(caught.value)


def test_durations_read_as_files_and_as_answers_have_them():
    assert checked_duration("exitDuration", "0d6h0m") == checked_duration("exitDuration", "6h0m00s")


# -- on a repository ---------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path)
    yield found
    found.close()


@pytest.fixture
def ada(site):
    with site.client("ada-owner") as client:
        yield client


def test_a_template_is_made_changed_and_taken_away(site, ada):
    made = ada.post(
        TEMPLATES, json={"name": "large", "clusterName": "east", "numberOfGPUNodes": 4, "exitDuration": "1W"}
    )
    assert made.status_code == 422  # "1W" is a policy's word
    made = ada.post(
        TEMPLATES, json={"name": "large", "clusterName": "east", "numberOfGPUNodes": 4, "exitDuration": "1w"}
    )
    assert made.json()["data"]["change"]["way"] == "pushed"
    commented = site.main("templates/large.yaml").replace("nodes: 4", "nodes: 4   # enough")
    site.commit({"templates/large.yaml": commented + "\n"})
    assert ada.put(TEMPLATES, json={"name": "large", "exitDuration": "2w"}).status_code == 200
    assert site.main("templates/large.yaml") == commented.replace("7d0h0m", "14d0h0m")
    shown = ada.get(TEMPLATES, params={"gprTemplateName": "large"}).json()["data"]
    assert (shown["numberOfGPUNodes"], shown["exitDuration"]) == (4, "14d0h0m")
    assert ada.request("DELETE", TEMPLATES, json={"gprTemplateName": "large"}).status_code == 200
    assert site.main("templates/large.yaml") is None
    assert ada.get(TEMPLATES, params={"gprTemplateName": "large"}).status_code == 404


def refused(answer, status, key):
    """It is refused so, with the keys of the envelope."""
    body = answer.json()
    assert (answer.status_code, body["error"]["errorKey"]) == (status, key), body
    assert body["message"] == body["error"]["message"]
    return body["message"]


def test_refusals_of_templates(site, ada):
    refused(ada.post(TEMPLATES, json={"name": "small"}), 409, "GprTemplateAlreadyExists")
    assert "acme-small would be valid" in refused(
        ada.post(TEMPLATES, json={"name": "Acme.small"}), 422, "BadParameters"
    )
    said = refused(ada.post(TEMPLATES, json={"name": "x", "clusterName": "north"}), 422, "BadParameters")
    assert "there is no cluster north; choose from east, west" in said
    refused(ada.put(TEMPLATES, json={"name": "none", "priority": 5}), 404, "NotFound")
    refused(ada.delete(TEMPLATES), 422, "BadParameters")
    with site.client("bo-editor") as bo:
        refused(bo.post(TEMPLATES, json={"name": "mine"}), 403, "Forbidden")
        assert bo.get(f"{TEMPLATES}/list").json()["data"]["items"][0]["name"] == "small"


def test_templates_come_in_portions(site, ada):
    for name in ("a", "b", "c"):
        assert ada.post(TEMPLATES, json={"name": name, "priority": 5}).status_code == 200
    found, cursor = [], ""
    while cursor is not None:
        page = ada.get(f"{TEMPLATES}/list", params={"limit": 2, "cursor": cursor}).json()["data"]
        found += [item["name"] for item in page["items"]]
        cursor = page["next"]
    assert found == ["a", "b", "c", "small"]


def test_a_binding_says_what_a_workspace_is_offered_and_whether_it_is_there(site, ada):
    assert ada.post(BINDINGS, json={"workspaceName": "vision", "clusters": [BOUND]}).status_code == 200
    shown = ada.get(BINDINGS, params={"bindingName": "vision"}).json()["data"]
    assert shown["clusters"][0]["templateStatus"] == {"small": "Valid"}
    refused(ada.delete(TEMPLATES, params={"gprTemplateName": "small"}), 409, "GprTemplateInUse")
    refused(
        ada.post(BINDINGS, json={"workspaceName": "vision", "clusters": [BOUND]}),
        409,
        "GprTemplateBindingAlreadyExists",
    )
    site.commit({"bindings/vision.yaml": "# for vision\n" + site.main("bindings/vision.yaml") + "\n"})
    two = [BOUND, {**BOUND, "clusterName": "west", "defaultTemplateName": ""}]
    assert ada.put(BINDINGS, json={"workspaceName": "vision", "clusters": two}).status_code == 200
    assert site.main("bindings/vision.yaml").startswith("# for vision\n")
    shown = ada.get(f"{BINDINGS}/list").json()["data"]["items"]
    assert [each["clusterName"] for each in shown[0]["clusters"]] == ["east", "west"]
    with site.client("cy-editor") as cy:
        assert cy.get(f"{BINDINGS}/list").json()["data"]["items"] == []
        refused(cy.get(BINDINGS, params={"bindingName": "vision"}), 404, "NotFound")
    assert ada.delete(BINDINGS, params={"bindingName": "vision"}).status_code == 200
    assert site.main("bindings/vision.yaml") is None


@pytest.mark.parametrize(
    ("clusters", "auto", "sentence"),
    [
        pytest.param([BOUND], True, "enableAutoGpr: requests are files", id="requests made from pods"),
        pytest.param(
            [{**BOUND, "clusterName": "north"}], False, "does not span north", id="a cluster that is not its"
        ),
        pytest.param([BOUND, BOUND], False, "is listed twice", id="a cluster twice"),
        pytest.param([{**BOUND, "templates": ["x"]}], False, "there is no template x", id="no such template"),
        pytest.param(
            [{**BOUND, "defaultTemplateName": "x"}],
            False,
            "x is not among the templates of east",
            id="a default of none",
        ),
    ],
)
def test_refusals_of_bindings(ada, clusters, auto, sentence):
    body = {"workspaceName": "vision", "clusters": clusters, "enableAutoGpr": auto}
    assert sentence in refused(ada.post(BINDINGS, json=body), 422, "BadParameters")


def test_a_binding_of_no_workspace_is_not_found(ada):
    refused(ada.post(BINDINGS, json={"workspaceName": "none", "clusters": [BOUND]}), 404, "NotFound")


def test_a_stranger_sees_no_templates(site):
    """eve is on no list."""
    with site.client("eve-editor") as eve:
        assert eve.get("/api/v1/gpr-template/list").json()["data"]["items"] == []
        assert eve.get("/api/v1/gpr-template", params={"gprTemplateName": "small"}).status_code == 404
        assert (
            eve.request("DELETE", "/api/v1/gpr-template", params={"gprTemplateName": "small"}).status_code
            == 404
        )
    with site.client("bo-viewer") as bo:
        assert bo.get("/api/v1/gpr-template", params={"gprTemplateName": "small"}).status_code == 200
