"""Edits of YAML files: the lines of the field and no others, and always exactly the intended data."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.changes.yaml_list import with_item, without_item
from reconciler.documents.yaml_edit import with_field
from schemas.reading.strict_yaml import Refused, load
from schemas.reading.yaml_text import dump

TEXT = """\
# Ünïcödé before everything, so that characters and bytes differ
kind: GPR   # kind
metadata: {name: a}
spec:
  nodes: 2  # two
  clusters:
    # first
    - east
    - west   # then
  network: {rdma: true}
  notBefore:
  # about the name
  displayName: |
    long
    text

# tail
"""


@pytest.mark.parametrize(
    ("field", "value", "lines"),
    [
        pytest.param(
            "spec.nodes", 3, ["-  nodes: 2  # two", "+  nodes: 3  # two"], id="a number, its comment stays"
        ),
        pytest.param("spec.nodes", None, ["-  nodes: 2  # two"], id="a field that goes takes its line"),
        pytest.param(
            "spec.priority", 200, ["+  priority: 200"], id="a new field stands last, before what follows"
        ),
        pytest.param(
            "spec.clusters",
            ["west"],
            [
                "-  clusters:",
                "-    # first",
                "-    - east",
                "-    - west   # then",
                "+  clusters: [west]   # then",
            ],
            id="a list of lines becomes one line",
        ),
        pytest.param(
            "spec.network.secondary",
            True,
            ["-  network: {rdma: true}", "+  network: {rdma: true, secondary: true}"],
            id="inside braces",
        ),
        pytest.param(
            "spec.network.rdma", None, ["-  network: {rdma: true}", "+  network: {}"], id="out of braces"
        ),
        pytest.param(
            "spec.notBefore", "x", ["-  notBefore:", "+  notBefore: x"], id="a key that had no value"
        ),
        pytest.param(
            "spec.displayName",
            "a: b",
            ["-  displayName: |", "-    long", "-    text", '+  displayName: "a: b"'],
            id="a block of text",
        ),
        pytest.param(
            "spec.model.name", "m", ["+  model: {name: m}"], id="a field in a mapping that is not there"
        ),
        pytest.param("spec.model.name", None, [], id="nothing to take out"),
        pytest.param(
            "metadata.labels.x",
            "y, z",
            ["-metadata: {name: a}", '+metadata: {name: a, labels: {x: "y, z"}}'],
            id="text that braces would break",
        ),
    ],
)
def test_only_the_lines_of_the_field_change(field: str, value: Any, lines: list[str]) -> None:
    """A4: a person's file stays a person's file."""
    edited = with_field(TEXT.encode(), tuple(field.split(".")), value).decode()
    changes = difflib.unified_diff(TEXT.splitlines(), edited.splitlines(), lineterm="", n=0)
    assert [line for line in changes if not line.startswith(("---", "+++", "@@"))] == lines


def test_a_file_without_a_last_line_break_gets_one() -> None:
    assert with_field(b"spec:\n  a: 1", ("spec", "b"), 2) == b"spec:\n  a: 1\n  b: 2\n"


def test_a_document_in_one_line_is_edited_in_it() -> None:
    assert with_field(b"{spec: {a: 1}} # x\n", ("spec", "b"), "c") == b"{spec: {a: 1, b: c}} # x\n"


def test_the_last_field_of_a_mapping_leaves_it_empty() -> None:
    assert load(with_field(b"spec:\n  a:\n    b: 1\n", ("spec", "a", "b"), None)) == {"spec": {"a": {}}}


_SCALARS = st.one_of(st.integers(-99, 99), st.booleans(), st.text("ab:#'\"{}[], -\n", max_size=6), st.none())
_KEYS = st.sampled_from("abcd")
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(
    st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4),
    st.lists(_KEYS, min_size=1, max_size=3),
    _VALUES.filter(lambda value: value is not None),
)
def test_the_result_always_reads_as_the_intended_data(document: Any, field: list[str], value: Any) -> None:
    data = dump(document).encode()
    want = load(data)
    inner = want
    for step in field[:-1]:
        if not isinstance(inner.get(step), dict):  # type: ignore[attr-defined]
            inner[step] = {}  # type: ignore[index]
        inner = inner[step]  # type: ignore[index]
    inner[field[-1]] = value  # type: ignore[index]
    assert load(with_field(data, tuple(field), value)) == want


LISTS = """\
spec:
  # who
  block:
    - email: a@b.c   # first
    # the second
    - {email: b@c.d}
  flow: [one, two]   # on one line
  empty: []
tail: here  # stays
"""


@pytest.mark.parametrize(
    ("name", "item", "lines"),
    [
        pytest.param(
            "block", {"email": "c@d.e"}, ["    - email: c@d.e"], id="on lines of its own: one more line"
        ),
        pytest.param(
            "flow", "three", ["  flow: [one, two, three]   # on one line"], id="on one line: that line"
        ),
        pytest.param("empty", "x", ["  empty: [x]"], id="an empty list"),
        pytest.param("new", "x", ["  new: [x]"], id="a list that was not there"),
    ],
)
def test_an_entry_is_added_and_every_other_line_stays(name: str, item: Any, lines: list[str]) -> None:
    edited = with_item(LISTS.encode(), ("spec", name), item).decode()
    assert [line for line in edited.splitlines() if line not in LISTS.splitlines()] == lines


def test_an_entry_is_taken_out_and_every_other_line_stays() -> None:
    edited = without_item(LISTS.encode(), ("spec", "block"), 1).decode()
    assert edited == LISTS.replace("    - {email: b@c.d}\n", "")
    assert load(without_item(edited.encode(), ("spec", "block"), 0)) == {
        "spec": {"flow": ["one", "two"], "empty": []}, "tail": "here",
    }  # fmt: skip


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["email", "name", "x"]), st.text(max_size=8), min_size=1), max_size=4
    ),
    st.data(),
)
def test_whatever_the_list_its_meaning_is_exact(people: list[dict[str, str]], data: st.DataObject) -> None:
    document = {"spec": {"members": people, "z": 1}}
    try:
        text = dump(document).encode()
        load(text)
    except (ValueError, Refused):
        return  # texts that no file of ours can hold
    item = {"email": "new@example.com", "keys": ["a b", "c: d"]}
    added = load(with_item(text, ("spec", "members"), item))
    assert added == {"spec": {"members": [*people, item], "z": 1}}
    if people:
        place = data.draw(st.integers(0, len(people) - 1))
        left = [*people[:place], *people[place + 1 :]]
        want = {"members": left, "z": 1} if left else {"z": 1}
        assert load(without_item(text, ("spec", "members"), place)) == {"spec": want}
