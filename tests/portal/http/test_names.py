"""Names that the vendor takes and we cannot, and what is said of them (K1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.http.names import checked_address, checked_name, listed, nearest
from tests.support.profile import law


@pytest.mark.parametrize(
    ("text", "near"),
    [
        pytest.param("acme.vision", "acme-vision", id="a dot"),
        pytest.param("Vision", "vision", id="upper case"),
        pytest.param("llm_gpt_4o", "llm-gpt-4o", id="underscores"),
        pytest.param("-vision-", "vision", id="hyphens at the ends"),
        pytest.param("a" * 64, "a" * 63, id="too long by one"),
        pytest.param("vision\n", "vision", id="a line break at the end"),
        pytest.param("../../etc", "etc", id="a way out of the folder"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_with_one_that_can(text, near):
    with pytest.raises(ApiError) as caught:
        checked_name("workspaceName", text)
    assert caught.value.status == 422
    assert caught.value.reason == "BadParameters"
    assert str(caught.value).startswith("workspaceName: ")
    assert f"{near} would be valid" in str(caught.value)


def test_of_a_name_without_any_letter_nothing_is_proposed():
    with pytest.raises(ApiError) as caught:
        checked_name("namespaces", "中文")
    assert "would do" not in str(caught.value)


@law(200)
@given(st.text(max_size=80))
def test_what_is_proposed_is_a_name(text):
    near = nearest(text)
    assert near == "" or checked_name("name", near) == near


@pytest.mark.parametrize(
    "text", ["", "bo", "bo@", "@example.com", "bo@example.com\n", "b\u043e@example.com", "b o@e.com"]
)
def test_what_names_nobody_is_no_address(text):
    with pytest.raises(ApiError):
        checked_address("email", text)


def test_a_sentence_lists_a_few_names_only():
    assert listed([]) == "none"
    assert listed(["west", "east"]) == "east, west"
    assert listed(str(i) for i in range(25)).endswith("and 5 more")
