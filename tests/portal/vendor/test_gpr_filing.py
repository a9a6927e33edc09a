"""Requests in the vendor's words, as files: K2, D16, A7."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.vendor.gpr_filing import asked, file_name, gpr_file, nonce_of
from portal.vendor.gpr_models import GprAsk, GprEdit
from schemas.documents.gpr import GPR, resolve
from schemas.documents.identity import NONCE
from schemas.reading.reader import read_document
from schemas.reading.units import format_instant, instant
from tests.support.profile import law

LEAST: dict[str, Any] = {"sliceName": "vision", "numberOfGPUNodes": 1, "exitDuration": "1h"}


def fields_of(**sent: Any) -> dict[str, Any]:
    """What the file of a request says that was sent so."""
    return asked(GprAsk.model_validate({**LEAST, **sent})).spec


@pytest.mark.parametrize(
    ("sent", "field", "value"),
    [
        pytest.param({"memoryPerGPU": 81920}, "memoryPerGpu", 80, id="memory above 4096 is MiB"),
        pytest.param({"memoryPerGPU": 80}, "memoryPerGpu", 80, id="memory below is GB"),
        pytest.param({"memoryPerGPU": 0}, "memoryPerGpu", None, id="no memory is any memory"),
        pytest.param({"priority": 301}, "priority", 300, id="a priority above the highest is the highest"),
        pytest.param(
            {"gpuShape": "any"}, "gpuShape", "any", id="any shape is said, whatever a template says"
        ),
        pytest.param({"gpuShape": ""}, "gpuShape", "any", id="an empty shape is any"),
        pytest.param({"gpuShape": ["a", "b"]}, "gpuShape", ["a", "b"], id="several shapes keep their order"),
        pytest.param({"instanceType": ""}, "instanceType", None, id="an empty machine type is any"),
        pytest.param({"clusterName": ""}, "clusters", None, id="an empty cluster is any"),
        pytest.param({"clusterName": "east"}, "clusters", ["east"], id="a cluster is the only one"),
        pytest.param(
            {"preferredClusters": ["west", "east"]},
            "clusters",
            ["west", "east"],
            id="preferences keep their order",
        ),
        pytest.param(
            {"enableAutoGpuSelection": True, "gpuShape": ""},
            "gpuShape",
            "any",
            id="auto selection is any shape",
        ),
        pytest.param({"exitDuration": "0d6h0m"}, "duration", "0d6h0m", id="the vendor's duration"),
        pytest.param({"exitDuration": "6h0m0s"}, "duration", "0d6h0m", id="a duration as answers give it"),
        pytest.param(
            {"idleTimeOutDuration": "0d0h30m"},
            "idleTimeout",
            "0d0h30m",
            id="an idle timeout counts by itself",
        ),
        pytest.param(
            {"idleTimeOutDuration": "0d0h30m", "enforceIdleTimeOut": False},
            "idleTimeout",
            None,
            id="an idle timeout that is not enforced is none",
        ),
        pytest.param({"model": "llama"}, "model", {"name": "llama"}, id="a model's name alone"),
        pytest.param({"enableEviction": False}, "preemptible", False, id="no eviction"),
        pytest.param({"gprName": ""}, "displayName", None, id="no name"),
    ],
)
def test_each_field_lies_where_files_have_it(sent: dict[str, Any], field: str, value: Any) -> None:
    """K2, and the traps of the vendor's examples."""
    assert fields_of(**sent).get(field) == value


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        pytest.param(
            {"enableAutoGpuSelection": True, "gpuShape": "H100-80GB"}, "gpuShape", id="any GPU and this one"
        ),
        pytest.param(
            {"enableAutoClusterSelection": True, "clusterName": "east"},
            "clusterName",
            id="any cluster and this one",
        ),
        pytest.param(
            {"enableAutoClusterSelection": True, "preferredClusters": ["east"]},
            "preferredClusters",
            id="any cluster and these",
        ),
        pytest.param(
            {"clusterName": "east", "preferredClusters": ["west"]},
            "preferredClusters",
            id="two orders of clusters",
        ),
        pytest.param(
            {"enforceIdleTimeOut": True}, "idleTimeOutDuration", id="an idle timeout without a time"
        ),
        pytest.param({"exitDuration": "6"}, "exitDuration", id="a duration without a unit"),
        pytest.param({"exitDuration": "1h0m30s"}, "exitDuration", id="a duration with seconds"),
        pytest.param({"exitDuration": "0h"}, "exitDuration", id="no time at all"),
        pytest.param({"notBefore": "tomorrow"}, "notBefore", id="a time in words"),
    ],
)
def test_what_contradicts_itself_is_refused(sent: dict[str, Any], word: str) -> None:
    """K2: never guessed."""
    with pytest.raises(ApiError) as refused:
        fields_of(**sent)
    assert (refused.value.status, refused.value.reason) == (422, "BadParameters")
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("sent", "note"),
    [
        pytest.param({"priority": 301}, "300", id="a priority that was lowered"),
        pytest.param({"dedicatedNodes": False}, "dedicatedNodes", id="nodes are never shared"),
        pytest.param({"multiNode": True}, "multiNode", id="one node is not many"),
        pytest.param({"priority": 300, "multiNode": False}, "", id="nothing to tell"),
    ],
)
def test_what_is_not_taken_as_sent_is_told(sent: dict[str, Any], note: str) -> None:
    """K2: a warning, and no refusal."""
    notes = asked(GprAsk.model_validate({**LEAST, **sent})).notes
    assert bool(notes) == bool(note)
    assert note in " ".join(notes)


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        pytest.param({"priority": 180}, {("priority",): 180}, id="only what is named"),
        pytest.param({"gprName": "b"}, {("displayName",): "b"}, id="the name people see"),
        pytest.param({"earlyRelease": True}, {("earlyRelease",): True}, id="released"),
        pytest.param({"stopped": False}, {("stopped",): None}, id="started again"),
        pytest.param({"notBefore": None}, {("notBefore",): None}, id="null takes a field out"),
        pytest.param({"enableRDMA": True}, {("network", "rdma"): True}, id="inside of another field"),
        pytest.param({"clusterName": ""}, {("clusters",): None}, id="no cluster any more"),
        pytest.param({"extend": "30m"}, {("extend",): "0d0h30m"}, id="grace"),
    ],
)
def test_an_edit_touches_what_it_names(sent: dict[str, Any], fields: dict[tuple[str, ...], Any]) -> None:
    """A7, D13: and no other field."""
    edit = GprEdit.model_validate({"gprId": "gpr-0", **sent})
    assert asked(edit).fields == fields


def test_a_name_is_made_of_what_people_call_it_and_never_taken_twice() -> None:
    """A7: two requests of one name are two files."""
    ask = GprAsk.model_validate({**LEAST, "gprName": "GPT 4o: Second Try!"})
    one, other = (file_name(ask, nonce_of(f"{who} key", "x")) for who in ("bo", "cy"))
    assert one.startswith("gpt-4o-second-try-")
    assert one != other
    assert one == file_name(ask, nonce_of("bo key", "x"))
    assert file_name(ask.model_copy(update={"name": "train"}), "n") == "train"
    assert file_name(ask.model_copy(update={"gpr_name": "日本"}), "n").startswith("gpr-")


SHAPES = st.lists(st.sampled_from(["A100-40GB", "H100-80GB", "any", ""]), min_size=1, max_size=2)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=40)
SPANS = st.integers(1, 60 * 24 * 30).map(lambda minutes: f"{minutes}m")
TIMES = st.integers(1_800_000_000, 1_900_000_000).map(lambda at: format_instant(instant(at)))
ASKS = st.fixed_dictionaries(
    {"sliceName": st.just("vision"), "numberOfGPUNodes": st.integers(1, 100), "exitDuration": SPANS},
    optional={
        "gprName": WORDS,
        "numberOfGPUs": st.integers(1, 64),
        "memoryPerGPU": st.integers(0, 4096),
        "instanceType": st.sampled_from(["", "a2-highgpu-2g"]),
        "gpuShape": SHAPES,
        "priority": st.integers(1, 400),
        "idleTimeOutDuration": SPANS,
        "enableEviction": st.booleans(),
        "requeueOnFailure": st.booleans(),
        "enableRDMA": st.booleans(),
        "enableSecondaryNetwork": st.booleans(),
        "preferredClusters": st.lists(st.sampled_from(["east", "west"]), unique=True),
        "start": st.sampled_from(["asap", "ready", "promised"]),
        "prefer": st.sampled_from(["earliest", "price", "memory"]),
        "maxWait": SPANS,
        "model": st.fixed_dictionaries(
            {}, optional={"name": WORDS, "parameters": st.dictionaries(WORDS, WORDS)}
        ),
        "notBefore": TIMES,
    },
)


@given(ASKS)
@law(60)
def test_every_field_of_a_request_comes_back_as_it_was_sent(sent: dict[str, Any]) -> None:
    """D16, K2: through its file and back, whatever people put into their names."""
    wanted = asked(GprAsk.model_validate(sent))
    path, nonce = "slices/vision/gprs/train.yaml", "0123456789abcdef"
    document = read_document(path, gpr_file("vision", "train", nonce, wanted.spec))
    assert isinstance(document, GPR), document
    assert document.metadata.labels == {NONCE: nonce}
    spec = resolve(document.spec, None)
    assert not isinstance(spec, str)
    shapes = sent.get("gpuShape", [])
    expected = {
        "display_name": sent.get("gprName") or None,
        "nodes": sent["numberOfGPUNodes"],
        "gpus_per_node": sent.get("numberOfGPUs", 1),
        "memory_per_gpu": sent.get("memoryPerGPU", 0),
        "instance_type": sent.get("instanceType") or None,
        "gpu_shapes": () if {"any", ""} & set(shapes) else tuple(shapes),
        "priority": min(300, sent.get("priority", 101)),
        "preemptible": sent.get("enableEviction", True),
        "requeue_on_failure": sent.get("requeueOnFailure", True),
        "clusters": tuple(sent.get("preferredClusters", ())),
        "start": sent.get("start", "asap"),
        "prefer": sent.get("prefer", "earliest"),
    }
    assert {name: getattr(spec, name) for name in expected} == expected
    assert (spec.network.rdma, spec.network.secondary) == (
        sent.get("enableRDMA", False),
        sent.get("enableSecondaryNetwork", False),
    )
    assert _minutes(spec.duration) == sent["exitDuration"]
    assert _minutes(spec.idle_timeout) == sent.get("idleTimeOutDuration")
    assert _minutes(spec.max_wait) == sent.get("maxWait")
    assert spec.model.model_dump(exclude_defaults=True) == {
        name: value for name, value in sent.get("model", {}).items() if value
    }
    assert (None if spec.not_before is None else format_instant(spec.not_before)) == sent.get("notBefore")


def _minutes(length: Any) -> str | None:
    return None if length is None else f"{int(length.total_seconds()) // 60}m"
