"""Arguments of a wrong type: told before anything is sent, by what is wanted, never by what was given."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import timedelta

import pytest

import egs
from egs import aio
from egs.data.fleet import read_inventory
from egs.data.gpr import read_gpr, span
from tests.support.sdk import FACES, session

S = "authenticated_session"
TEN = ("train", "vision", "east", 1, 8, 80, "", "H100-80GB", "0d6h0m", 150)


def ten(place, value):
    return (*TEN[:place], value, *TEN[place + 1 :])


@pytest.mark.parametrize("call", FACES.values(), ids=FACES)
@pytest.mark.parametrize(
    ("name", "args", "more", "wanted"),
    [
        pytest.param(
            "request_gpu", ten(3, "1"), {}, "node_count to be a whole number (int)", id="a text for a number"
        ),
        pytest.param("request_gpu", ten(4, True), {}, "not a value of type bool", id="true is no number"),
        pytest.param("request_gpu", ten(3, 1.5), {}, "not a value of type float", id="half a node"),
        pytest.param(
            "request_gpu",
            ten(8, 6),
            {},
            "exit_duration to be text (str) or a timedelta",
            id="a number for a duration",
        ),
        pytest.param(
            "request_gpu", ten(9, "high"), {}, "priority to be a whole number", id="a word for a priority"
        ),
        pytest.param("request_gpu", ten(0, None), {}, "needs request_name", id="None for what is needed"),
        pytest.param(
            "request_gpu",
            TEN,
            {"enable_rdma": "yes"},
            "enable_rdma to be True or False",
            id="a text for a flag",
        ),
        pytest.param(
            "request_gpu",
            TEN,
            {"preferred_clusters": "east"},
            "to be a list of texts",
            id="a text for a list",
        ),
        pytest.param(
            "request_gpu", TEN, {S: "key"}, "a session from egs.authenticate", id="a key for a session"
        ),
        pytest.param("cancel_gpu_request", (5,), {}, "request_id to be text (str)", id="a number for an id"),
        pytest.param(
            "extend", ("gpr-1", 30), {}, "by to be text (str) or a timedelta", id="minutes for a duration"
        ),
        pytest.param(
            "update_gpu_request",
            ("gpr-1",),
            {"node_count": "2"},
            "update_gpu_request() needs",
            id="a keyword",
        ),
        pytest.param(
            "inventory", ("x",), {}, "a session from egs.authenticate or None", id="a text for a session"
        ),
        pytest.param(
            "authenticate", ("https://egs", b"egs_secret"), {}, "api_key to be text", id="bytes for a key"
        ),
        pytest.param(
            "wait_for",
            ("gpr-1", "Queued", "soon"),
            {},
            "timeout to be a number or None",
            id="a text for seconds",
        ),
    ],
)
def test_a_wrong_type_is_told(call, name, args, more, wanted):
    with pytest.raises(TypeError) as caught:
        call(name, *args, **more)
    assert wanted in str(caught.value)
    assert "egs_secret" not in str(caught.value)


def test_what_is_wrong_with_no_argument_is_a_python_error_of_that_function():
    with pytest.raises(TypeError, match="nodes"):
        egs.update_gpu_request("gpr-1", nodes=2, authenticated_session=session())


def test_options_are_shown_with_their_types():
    import inspect

    shown = inspect.signature(egs.request_gpu).parameters
    assert "Any" not in {str(parameter.annotation) for parameter in shown.values()}
    assert shown["enable_rdma"].annotation == "bool | None"
    assert shown["exit_duration"].annotation == "Span"


@pytest.mark.parametrize("face", [egs, aio], ids=["egs", "egs.aio"])
def test_the_interface_alone_is_listed(face):
    assert dir(face) == sorted(face.__all__)


@pytest.mark.parametrize("held", [session(), session().connection], ids=["the session", "its connection"])
def test_a_session_says_that_it_is_not_for_pickling(held):
    with pytest.raises(TypeError, match=r"cannot be pickled.*egs\.authenticate"):
        pickle.dumps(held)


def test_a_copy_of_a_session_is_the_session():
    auth = session()
    assert copy.copy(auth) is auth
    assert copy.deepcopy([auth])[0] is auth


@pytest.mark.parametrize(
    ("told", "wanted"),
    [("6h0m0s", "0d6h0m"), ("49h30m0s", "2d1h30m"), ("0d6h0m", "0d6h0m"), ("0h2m40s", "0h2m40s")],
)
def test_a_duration_comes_back_as_it_was_given(told, wanted):
    assert span(told) == wanted
    assert read_gpr({"exitDuration": told}).exit_duration == wanted


@pytest.mark.parametrize("minutes", [1, 59, 60, 1440, 1441, 525_600])
def test_every_duration_that_was_given_comes_back(minutes):
    from egs.asking.wishes import span_text

    given = span_text(timedelta(minutes=minutes))
    assert span(f"{minutes // 60}h{minutes % 60}m0s") == given


def test_a_record_is_a_dictionary_that_json_takes():
    data = {
        "gprId": "gpr-1",
        "slips": [{"was": "x"}],
        "status": {"nodes": ["n1"], "provisioningStatus": "Queued"},
    }
    found = read_gpr(data).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["request_id"], found["status"]["nodes"]) == ("gpr-1", ["n1"])
    assert set(found) == set(egs.GpuRequestData.__dataclass_fields__)


def test_what_a_record_holds_are_dictionaries_too():
    nodes = read_inventory({"managedNodes": [{"gpuNodeName": "n1", "allocation": [{"gprName": "a"}]}]})
    assert nodes[0].to_dict()["allocation"][0]["gpr_name"] == "a"
