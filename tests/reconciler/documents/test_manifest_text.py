"""Objects as people write them (J1): what no file could carry is refused, and no text costs more than a file may."""

from __future__ import annotations

import pytest
import yaml

from reconciler.documents.manifest_text import NotManifests, checked, manifests_of, workload_file

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)

MERGES = "x0: &x0 {a: 1}\n" + "".join(
    f"x{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 10)}]}}\n" for n in range(1, 9)
)
BACKWARDS = (
    "a: [[["
    + ", ".join(["&x0 {a: 1}", *(f"&x{n} {{<<: *x{n - 1}}}" for n in range(1, 2000))])
    + "]]]\nb: {<<: *x1999}\n"
)


def test_documents_become_objects_and_aliases_their_content() -> None:
    found = manifests_of("a: &x {b: 1}\n---\n---\nc: *x\n".replace("*x", "{b: 1}"))
    assert found == [{"a": {"b": 1}}, {"c": {"b": 1}}]
    text = workload_file("vision", "train", "mine", None, manifests_of("a: &x [1]\nb: *x\n")).decode()
    assert yaml.safe_load(text)["spec"] == {
        "slice": "vision",
        "gpr": "mine",
        "manifests": [{"a": [1], "b": [1]}],
    }
    assert manifests_of("a: &x {b: 1}\nc: {<<: *x, d: &y 2}\ne: *y\n") == [
        {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": 2}
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "no Kubernetes objects", id="nothing"),
        pytest.param("[1]", "no Kubernetes objects", id="a list"),
        pytest.param("a: [b", "not YAML", id="broken"),
        pytest.param("on: 1", "the key True", id="a word that readers disagree about"),
        pytest.param("a: 2026-11-21", "quote it", id="a date"),
        pytest.param("a: .nan", "quote it", id="not a number"),
        pytest.param(f"a: 0x{'f' * 4000}", "more than 64 bits", id="a number that Python does not write"),
        pytest.param(f"? 0x{'f' * 4000}\n: 1", "the key of type int", id="such a number as a key"),
        pytest.param(f"a: !!set {{0x{'f' * 4000}}}", "of type set", id="such a number in a set"),
        pytest.param("a: " + "[" * 5000, "nest more than 32 deep", id="deep"),
        pytest.param("a: &a [*a]", "nest more than 32 deep", id="in itself"),
        pytest.param(BOMB, "more than 20000 values", id="a bomb"),
        pytest.param(MERGES, "more than 20000 values", id="a bomb of merges"),
        pytest.param(BACKWARDS, "32 deep", id="a chain of merges"),
        pytest.param("a: " + "x" * 70_000, "at most 65536", id="long"),
    ],
)
def test_a_text_is_refused(text: str, said: str) -> None:
    with pytest.raises(NotManifests, match=said):
        manifests_of(text)


def test_a_list_is_bounded_too() -> None:
    deep: list[object] = []
    for _ in range(50):
        deep = [deep]
    for value in (deep, "\ud800", float("inf")):
        with pytest.raises(NotManifests):
            checked([{"a": value}])
